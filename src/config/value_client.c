#include "config/value_client.h"

#define HEADER STR("header:")

bool
value_set_client(
    struct str text, struct config_client_address *field, struct err *err)
{
	struct config_client_address client = { .form = FORWARDED_LIST };
	struct str header = text;
	struct err why;

	if (str_eq(text, STR("remote_addr"))) {
		*field = client;
		return true;
	}
	if (str_eq(text, STR("forwarded"))) {
		client.form = FORWARDED_ELEMENTS;
	} else if (str_starts(text, HEADER)) {
		header.p += HEADER.len;
		header.len -= HEADER.len;
	} else if (!str_eq(text, STR("x-forwarded-for"))) {
		return err_set(err,
		    "`%.*s` is none of remote_addr, x-forwarded-for, "
		    "forwarded, header:NAME",
		    STR_ARG(text));
	}
	if (!key_header_param(header, client.param, &why))
		return err_set(err, "`%.*s`: %s", STR_ARG(text), why.text);
	*field = client;
	return true;
}
