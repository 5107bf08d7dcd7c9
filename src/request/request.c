#include "request/request.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "pure/fcgi_record.h"

static void
request_free(struct request *r)
{
	front_free(r->front);
	body_release(&r->body);
	generation_unref(r->generation);
	arena_release(&r->arena);
	free(r);
}

/* Without its params, which it gets next. */
static struct request *
begin(struct generation *generation, const struct stores *stores, uint16_t id)
{
	struct request *r = calloc(1, sizeof(*r));

	if (r == NULL) {
		generation_unref(generation);
		return NULL;
	}
	arena_init(&r->arena);
	r->generation = generation;
	r->stores = stores;
	r->id = id;
	r->started_us = clock_mono_us();
	body_init(&r->body, id);
	return r;
}

struct request *
request_new(const struct guard *guard, struct generation *generation,
    const struct stores *stores, int *memfd)
{
	struct request *r = begin(generation, stores, guard->id);

	if (r == NULL)
		return NULL;
	r->keep = guard->keep;
	r->role = guard->role == FCGI_AUTHORIZER ? CONFIG_ROLE_AUTHORIZER
						 : CONFIG_ROLE_RESPONDER;
	r->front =
	    front_new(memfd, buf_str(&guard->head), &r->params, &r->arena);
	if (r->front == NULL) {
		request_free(r);
		return NULL;
	}
	counter_add(COUNTER_requests, 1);
	return r;
}

struct request *
request_new_cgi(char *const *envp, struct generation *generation,
    const struct stores *stores)
{
	struct request *r = begin(generation, stores, 0);

	if (r == NULL)
		return NULL;
	r->role = CONFIG_ROLE_CGI;
	if (!params_read(&r->params, envp, &r->arena)) {
		request_free(r);
		return NULL;
	}
	return r;
}

const struct config_gateway *
request_gateway(const struct request *r)
{
	return &r->generation->config->gateway;
}

static void
count(const struct request *r)
{
	const struct decision *d = &r->decision;

	switch (d->kind) {
	case DECISION_UNDECIDED:
		break;
	case DECISION_UNLIMITED:
		counter_add(COUNTER_requests_unlimited, 1);
		break;
	case DECISION_ALLOWED:
		counter_add(COUNTER_requests_allowed, 1);
		if (d->outage)
			counter_add(COUNTER_requests_outage_allowed, 1);
		break;
	case DECISION_REFUSED:
	case DECISION_FORBIDDEN:
	case DECISION_AMBIGUOUS:
		counter_add(COUNTER_requests_refused, 1);
		if (d->cached)
			counter_add(COUNTER_requests_refused_cached, 1);
		break;
	case DECISION_OUTAGE:
		counter_add(COUNTER_requests_outage_denied, 1);
		break;
	}
}

static bool
is_refusal(const struct request *r)
{
	return !decision_passes(&r->decision);
}

static void
log_numbers(struct log_line *line, const struct decision *d)
{
	if (d->limit != NULL)
		log_text(line, "limit", d->limit->name);
	if (d->has_numbers)
		log_number(line, "remaining", d->verdict.remaining);
	if (d->kind == DECISION_REFUSED)
		log_number(line, "retry_us", d->retry_us);
	if (d->outage || d->reason != NULL)
		log_text(line, d->outage ? "outage" : "reason",
		    d->reason == NULL ? "no answer" : d->reason);
	log_number(line, "store_us", d->store_wait_us);
	if (d->cached)
		log_text(line, "cached", "yes");
}

/* What went wrong is logged whatever the access log shows. */
static bool
is_logged(const struct request *r)
{
	switch ((enum config_access)r->generation->config->log.access) {
	case CONFIG_ACCESS_ALL:
		return true;
	case CONFIG_ACCESS_DENIED:
		/* An outage has its own two lines, not one a request. */
		return (is_refusal(r) && r->decision.kind != DECISION_OUTAGE) ||
		    r->error.text[0] != '\0';
	case CONFIG_ACCESS_OFF:
		break;
	}
	return r->error.text[0] != '\0';
}

void
request_log(const struct request *r, int status)
{
	struct log_line line;

	if (!is_logged(r))
		return;
	log_begin(&line, LOG_LEVEL_INFO, is_refusal(r) ? "refused" : "request");
	if (status != REQUEST_BECOMES_SCRIPT)
		log_number(&line, "status", status);
	log_str(&line, "client", r->subject.client_text);
	log_str(&line, "method", r->subject.method);
	log_str(&line, "host", r->subject.host);
	log_str(&line, "path", r->subject.path);
	if (r->role != CONFIG_ROLE_RESPONDER)
		log_text(&line, "role",
		    r->role == CONFIG_ROLE_CGI ? "cgi" : "authorizer");
	if (r->told_id.len > 0)
		log_str(&line, "request_id", r->told_id);
	log_numbers(&line, &r->decision);
	if (r->subject.backend != NULL)
		log_text(&line, "backend", r->subject.backend->name);
	log_number(&line, "backend_us", r->backend_us);
	log_number(&line, "total_us", clock_mono_us() - r->started_us);
	if (r->error.text[0] != '\0')
		log_text(&line, "error", r->error.text);
	log_end(&line);
}

void
request_end(struct request *r, int status)
{
	decision_settle(&r->decision, r->stores,
	    status == REQUEST_CLIENT_GONE ? 0 : status);
	decision_release(&r->decision, r->stores);
	count(r);
	request_log(r, status);
	request_free(r);
}
