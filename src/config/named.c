#include "config/named.h"

struct config_limit *
named_limit(const struct config *config, struct str name)
{
	for (size_t i = 0; i < config->n_limits; i++)
		if (str_eq(str_of(config->limit[i].name), name))
			return &config->limit[i];
	return NULL;
}

struct config_backend *
named_backend(const struct config *config, struct str name)
{
	for (size_t i = 0; i < config->n_backends; i++)
		if (str_eq(str_of(config->backend[i].name), name))
			return &config->backend[i];
	return NULL;
}
