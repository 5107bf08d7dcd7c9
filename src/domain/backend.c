#include "domain/backend.h"

#include "domain/backend_cgi.h"
#include "domain/backend_fastcgi.h"

enum exchange_end
backend_run(struct exchange *x)
{
	switch ((enum config_backend_type)x->backend->type) {
	case CONFIG_BACKEND_FASTCGI:
		return backend_fastcgi_run(x);
	case CONFIG_BACKEND_CGI:
		return backend_cgi_run(x);
	case CONFIG_BACKEND_ANSWER: /* there is nothing to run */
		break;
	}
	return EXCHANGE_BROKEN;
}
