/*
 * Of JSON, a problem (RFC 9457) of the type that draft-ietf-httpapi-
 * ratelimit-headers-11 registers.
 */
#include "pure/reply_body.h"

#include <inttypes.h>
#include <stdio.h>

#include "pure/json.h"
#include "pure/template.h"

#define QUOTA_TYPE                                        \
	"https://iana.org/assignments/http-problem-types" \
	"#quota-exceeded"
#define QUOTA_TITLE                                               \
	"Request cannot be satisfied as assigned quota has been " \
	"exceeded"

static void
add_text(struct buf *out, const struct reply *reply, int64_t seconds)
{
	buf_addf(out, "%d %s\n", reply->status, reply_reason(reply->status));
	if (reply->message != NULL)
		buf_addf(out, "%s\n", reply->message);
	if (reply->has_retry)
		buf_addf(out, "Try again in %" PRId64 " s.\n", seconds);
}

static void
add_html(struct buf *out, const struct reply *reply, int64_t seconds)
{
	const char *reason = reply_reason(reply->status);

	buf_addf(out,
	    "<!DOCTYPE html>\n"
	    "<html lang=\"en\">\n"
	    "<head>\n"
	    "<meta charset=\"utf-8\">\n"
	    "<title>%d %s</title>\n"
	    "</head>\n"
	    "<body>\n"
	    "<h1>%d %s</h1>\n",
	    reply->status, reason, reply->status, reason);
	if (reply->message != NULL) {
		buf_addf(out, "<p>");
		template_add_html(out, str_of(reply->message));
		buf_addf(out, "</p>\n");
	}
	if (reply->has_retry)
		buf_addf(out, "<p>Try again in %" PRId64 " s.</p>\n", seconds);
	buf_addf(out, "</body>\n</html>\n");
}

static bool
is_violated(const struct numbers_rate *rate)
{
	return rate->verdict.kind == VERDICT_REFUSED;
}

/* By the names that RateLimit-Policy gives them. */
static void
add_violated(struct buf *out, const struct reply *reply)
{
	size_t n = reply->numbers == NULL ? 0 : reply->numbers->n;
	const char *separator = "";

	buf_addf(out, ",\"violated-policies\":[");
	for (size_t i = 0; i < n; i++) {
		if (!is_violated(&reply->numbers->rate[i]))
			continue;
		buf_addf(out, "%s\"", separator);
		numbers_add_name(out, &reply->numbers->rate[i]);
		buf_add_char(out, '"');
		separator = ",";
	}
	buf_add_char(out, ']');
}

static void
add_detail(struct buf *out, const struct reply *reply, int64_t seconds)
{
	if (reply->message == NULL && !reply->has_retry)
		return;
	buf_addf(out, ",\"detail\":\"");
	if (reply->message != NULL)
		json_add_escaped(out, str_of(reply->message));
	else
		buf_addf(out, "Try again in %" PRId64 " s.", seconds);
	buf_add_char(out, '"');
}

static void
add_problem(struct buf *out, const struct reply *reply, int64_t seconds)
{
	buf_addf(out, "{\"type\":\"%s\",\"title\":\"%s\",\"status\":%d",
	    reply->is_refusal ? QUOTA_TYPE : "about:blank",
	    reply->is_refusal ? QUOTA_TITLE : reply_reason(reply->status),
	    reply->status);
	add_detail(out, reply, seconds);
	if (reply->is_refusal)
		add_violated(out, reply);
	if (reply->has_retry)
		buf_addf(out, ",\"retry-after\":%" PRId64, seconds);
	buf_addf(out, "}\n");
}

static void
fill(struct buf *out, const struct reply *reply, enum accept_type type,
    int64_t seconds)
{
	char digits[32];
	struct template_values values = {
		.limit = str_of(reply->limit),
		.message = str_of(reply->message != NULL
			? reply->message
			: reply_reason(reply->status)),
		.request_id = reply->request_id,
	};

	snprintf(digits, sizeof(digits), "%" PRId64, seconds);
	values.retry_after = str_of(digits);
	template_fill(out, reply->style->body[type], type, &values);
}

void
reply_body_write(struct buf *out, const struct reply *reply,
    enum accept_type type, int64_t retry_seconds)
{
	if (reply->is_refusal && reply->style->body[type].p != NULL) {
		fill(out, reply, type, retry_seconds);
		return;
	}
	switch (type) {
	case ACCEPT_JSON:
		add_problem(out, reply, retry_seconds);
		break;
	case ACCEPT_HTML:
		add_html(out, reply, retry_seconds);
		break;
	case ACCEPT_TEXT:
	case ACCEPT_TYPES:
		add_text(out, reply, retry_seconds);
		break;
	}
}
