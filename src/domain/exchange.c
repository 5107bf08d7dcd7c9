#include "domain/exchange.h"

#include "base/log.h"

/* What one request may write to the log through its backend. */
#define COMPLAINTS_MAX 8192

/* The last bytes and the end go out in one write. */
enum exchange_end
exchange_finish(struct exchange *x, struct pump *pump)
{
	x->on_end(x->context);
	response_end(&x->response, &pump->down);
	if (pump->down.failed) {
		err_set(&x->error, "out of memory");
		return EXCHANGE_CUT;
	}
	if (!pump_flush(pump))
		return EXCHANGE_CLIENT_GONE;
	return EXCHANGE_DONE;
}

enum exchange_end
exchange_give_up(struct exchange *x, const struct pump *pump, enum pump_end end)
{
	bool head = x->response.has_head;

	switch (end) {
	case PUMP_END_CLIENT_GONE:
		return EXCHANGE_CLIENT_GONE;
	case PUMP_END_NO_HEAD:
		err_set(&x->error, "no response in time");
		return EXCHANGE_TIMED_OUT;
	case PUMP_END_STALLED:
		err_set(&x->error, "the response stalled");
		return pump->begun ? EXCHANGE_CUT : EXCHANGE_TIMED_OUT;
	case PUMP_END_BROKEN:
		if (!head && x->response.head.error.text[0] != '\0')
			err_set(&x->error, "bad response head: %.400s",
			    x->response.head.error.text);
		break;
	case PUMP_END_WHOLE:
	case PUMP_END_EOF:
		break;
	}
	if (x->error.text[0] == '\0')
		err_set(&x->error,
		    head ? "the response ended too early"
			 : "closed before a response head");
	return pump->begun ? EXCHANGE_CUT : EXCHANGE_BROKEN;
}

void
exchange_begun(struct exchange *x)
{
	x->on_head(x->context, x->response.head.status);
}

static void
log_complaint(const struct exchange *x, struct str text)
{
	struct log_line line;

	log_begin(&line, LOG_LEVEL_WARN, "backend_stderr");
	log_text(&line, "backend", x->backend->name);
	log_str(&line, "path", x->subject->path);
	log_str(&line, "msg", text);
	log_end(&line);
}

void
exchange_complain(struct exchange *x, struct str bytes)
{
	while (bytes.p != NULL && x->complaints_bytes < COMPLAINTS_MAX) {
		struct str text = str_cut(&bytes, '\n');

		if (text.len > 1000)
			text.len = 1000;
		x->complaints_bytes += text.len + 1;
		if (text.len > 0)
			log_complaint(x, text);
	}
}
