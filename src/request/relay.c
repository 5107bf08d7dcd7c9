#include "request/relay.h"

#include "base/clock.h"
#include "base/counter.h"
#include "domain/backend.h"
#include "domain/forward.h"
#include "request/request.h"

static int
status_of(enum exchange_end end)
{
	switch (end) {
	case EXCHANGE_NOT_FOUND:
		return 404;
	case EXCHANGE_FORBIDDEN:
		return 403;
	case EXCHANGE_OVERLOADED:
		return 503;
	case EXCHANGE_TIMED_OUT:
		return 504;
	case EXCHANGE_NO_MEMORY:
		return 500;
	case EXCHANGE_BROKEN:
	case EXCHANGE_DONE:
	case EXCHANGE_CUT:
	case EXCHANGE_CLIENT_GONE:
		break;
	}
	return 502;
}

static void
count_end(enum exchange_end end)
{
	switch (end) {
	case EXCHANGE_CUT:
		counter_add(COUNTER_backend_cut, 1);
		break;
	case EXCHANGE_CLIENT_GONE:
		counter_add(COUNTER_clients_gone, 1);
		break;
	case EXCHANGE_BROKEN:
	case EXCHANGE_OVERLOADED:
		counter_add(COUNTER_backend_failures, 1);
		break;
	case EXCHANGE_TIMED_OUT:
		counter_add(COUNTER_backend_timeouts, 1);
		break;
	case EXCHANGE_DONE:
	case EXCHANGE_NOT_FOUND:
	case EXCHANGE_FORBIDDEN:
	case EXCHANGE_NO_MEMORY:
		break;
	}
}

static void
on_head(void *context, int status)
{
	struct request *r = context;

	decision_settle(&r->decision, r->stores, status);
}

/* Who has seen the end of a response may count on its slot. */
static void
on_end(void *context)
{
	struct request *r = context;

	decision_release(&r->decision, r->stores);
}

static enum exchange_end
run_exchange(struct connection *c, int stop, int *status)
{
	struct request *r = c->request;
	struct params forwarded;
	struct exchange x = {
		.backend = r->subject.backend,
		.addresses =
		    generation_backend(r->generation, r->subject.backend)
			->addresses,
		.subject = &r->subject,
		.params = &forwarded,
		.body = &r->body.spool,
		.arena = &r->arena,
		.front = c->fd,
		.stop = stop,
		.on_head = on_head,
		.on_end = on_end,
		.context = r,
	};
	int64_t begun_us = clock_mono_us();
	enum exchange_end end = EXCHANGE_NO_MEMORY;

	response_init(&x.response, r->id,
	    str_eq(r->subject.method, STR("HEAD")), &r->decision,
	    &r->generation->config->response);
	if (forward_params(&r->params, r->body.announced < 0,
		r->body.spool.bytes, &r->arena, &forwarded))
		end = backend_run(&x);
	*status = x.response.head.status;
	r->error = x.error;
	response_release(&x.response);
	r->backend_us = clock_mono_us() - begun_us;
	return end;
}

enum next
relay_run(struct connection *c, int stop)
{
	struct request *r = c->request;
	bool keep = r->keep;
	int status;
	enum exchange_end end = run_exchange(c, stop, &status);

	count_end(end);
	switch (end) {
	case EXCHANGE_DONE:
		answer_nothing(c, status);
		return keep ? NEXT_KEEP : NEXT_CLOSE;
	case EXCHANGE_CUT:
		return answer_nothing(c, status);
	case EXCHANGE_CLIENT_GONE:
		return answer_nothing(c, REQUEST_CLIENT_GONE);
	case EXCHANGE_OVERLOADED:
		return answer_send(c, 503, ANSWER_BUSY_RETRY_US);
	case EXCHANGE_NOT_FOUND:
	case EXCHANGE_FORBIDDEN:
	case EXCHANGE_BROKEN:
	case EXCHANGE_TIMED_OUT:
	case EXCHANGE_NO_MEMORY:
		break;
	}
	return answer_send(c, status_of(end), ANSWER_NO_RETRY);
}
