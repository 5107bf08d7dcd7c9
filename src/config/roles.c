#include "config/roles.h"

bool
roles_has(const struct config_gateway *gateway, enum config_role role)
{
	return (gateway->roles >> (role - CONFIG_ROLE_RESPONDER) & 1) != 0;
}
