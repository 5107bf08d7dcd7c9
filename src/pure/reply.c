/*
 * Retry-After is a promise: who keeps to it is not refused by the same
 * count again. So every rounding, and the jitter, makes it longer.
 *
 * A body of JSON is a problem (RFC 9457), of the type that draft-ietf-httpapi-
 * ratelimit-headers-11 registers.
 */
#include "pure/reply.h"

#include <inttypes.h>
#include <stdio.h>

#include "pure/field.h"
#include "pure/json.h"
#include "pure/template.h"

#define QUOTA_TYPE                                        \
	"https://iana.org/assignments/http-problem-types" \
	"#quota-exceeded"
#define QUOTA_TITLE                                               \
	"Request cannot be satisfied as assigned quota has been " \
	"exceeded"

/* The extra seconds: up to that share of the wait, rounded up. */
static int64_t
jitter(const struct reply *reply, int64_t seconds)
{
	uint64_t percent = reply->style->jitter_percent;
	uint64_t most = (uint64_t)seconds / 100 * percent +
	    ((uint64_t)seconds % 100 * percent + 99) / 100;

	return (int64_t)(reply->lot % (most + 1));
}

static int64_t
at_least_one(int64_t seconds)
{
	return seconds < 1 ? 1 : seconds;
}

int64_t
reply_retry_seconds(const struct reply *reply)
{
	int64_t seconds;

	if (reply->retry_us == ALGORITHM_NEVER)
		return at_least_one(numbers_seconds(reply->style->never_us));
	seconds = at_least_one(numbers_seconds(reply->retry_us));
	return seconds + jitter(reply, seconds);
}

const char *
reply_reason(int status)
{
	switch (status) {
	case 204:
		return "No Content";
	case 400:
		return "Bad Request";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 408:
		return "Request Timeout";
	case 413:
		return "Content Too Large";
	case 429:
		return "Too Many Requests";
	case 431:
		return "Request Header Fields Too Large";
	case 500:
		return "Internal Server Error";
	case 502:
		return "Bad Gateway";
	case 503:
		return "Service Unavailable";
	case 504:
		return "Gateway Timeout";
	default:
		return "Error";
	}
}

static void
add_text(struct buf *out, const struct reply *reply, int64_t seconds)
{
	buf_add_i64(out, reply->status);
	buf_add_char(out, ' ');
	buf_add_str(out, str_of(reply_reason(reply->status)));
	buf_add_char(out, '\n');
	if (reply->message != NULL) {
		buf_add_str(out, str_of(reply->message));
		buf_add_char(out, '\n');
	}
	if (reply->has_retry) {
		buf_add_str(out, STR("Try again in "));
		buf_add_i64(out, seconds);
		buf_add_str(out, STR(" s.\n"));
	}
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

/* By the names that RateLimit-Policy gives them, where there are numbers. */
static void
add_violated(struct buf *out, const struct reply *reply)
{
	const char *separator = "";

	if (reply->numbers == NULL) {
		buf_addf(out, ",\"violated-policies\":[\"%s\"]", reply->limit);
		return;
	}
	buf_addf(out, ",\"violated-policies\":[");
	for (size_t i = 0; i < reply->numbers->n; i++) {
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

static void
add_body(struct buf *out, const struct reply *reply, enum accept_type type,
    int64_t seconds)
{
	if (reply->is_refusal && reply->style->body[type].p != NULL) {
		fill(out, reply, type, seconds);
		return;
	}
	switch (type) {
	case ACCEPT_JSON:
		add_problem(out, reply, seconds);
		break;
	case ACCEPT_HTML:
		add_html(out, reply, seconds);
		break;
	case ACCEPT_TEXT:
	case ACCEPT_TYPES:
		add_text(out, reply, seconds);
		break;
	}
}

/* The next whole second of a clock that is past the wait. */
static void
add_retry_date(struct buf *out, const struct reply *reply, int64_t seconds)
{
	field_add_date(out, numbers_seconds(reply->now_us) + seconds);
}

static void
add_retry(struct buf *out, const struct reply *reply, int64_t seconds)
{
	if (!reply->has_retry)
		return;
	buf_add_str(out, STR("Retry-After: "));
	if (reply->style->retry_after == REPLY_RETRY_DATE)
		add_retry_date(out, reply, seconds);
	else
		buf_add_i64(out, seconds);
	buf_add(out, "\r\n", 2);
}

static bool
is_for_all(const struct reply_style *style)
{
	return style->n_origins == 1 &&
	    str_eq(str_of(style->origin[0]), STR("*"));
}

static bool
is_allowed(const struct reply_style *style, struct str origin)
{
	for (size_t i = 0; i < style->n_origins; i++)
		if (str_eq(str_of(style->origin[i]), origin))
			return true;
	return false;
}

/* Without these a script sees no answer at all, only a failed request. */
static void
add_cors(struct buf *out, const struct reply *reply)
{
	const struct reply_style *style = reply->style;
	bool for_all = is_for_all(style);

	if (!for_all && !is_allowed(style, reply->origin))
		return;
	buf_addf(out, "Access-Control-Allow-Origin: ");
	buf_add_str(out, for_all ? STR("*") : reply->origin);
	buf_addf(out, "\r\nAccess-Control-Expose-Headers: ");
	numbers_add_field_names(out, style->numbers.families);
	buf_addf(out, "\r\n");
}

static const char *
content_type(const struct reply *reply, enum accept_type type)
{
	switch (type) {
	case ACCEPT_JSON:
		/* A template need not be a problem. */
		return reply->is_refusal && reply->style->body[type].p != NULL
		    ? "application/json"
		    : "application/problem+json";
	case ACCEPT_HTML:
		return "text/html; charset=utf-8";
	case ACCEPT_TEXT:
	case ACCEPT_TYPES:
		break;
	}
	return "text/plain; charset=utf-8";
}

bool
reply_has_request_id(const struct reply *reply)
{
	return reply->is_refusal && !reply->without_body &&
	    template_has_request_id(
		reply->style->body[accept_choose(reply->accept)]);
}

/* A 204 has none, and may not even tell its length (RFC 9110, 8.6). */
static bool
has_content(const struct reply *reply)
{
	return reply->status != 204;
}

static void
add_content(struct buf *out, const struct reply *reply, enum accept_type type,
    size_t body_bytes)
{
	const struct reply_style *style = reply->style;
	bool by_origin = style->n_origins > 0 && !is_for_all(style);

	if (has_content(reply)) {
		buf_add_str(out, STR("Content-Type: "));
		buf_add_str(out, str_of(content_type(reply, type)));
		if (!reply->without_body) {
			buf_add_str(out, STR("\r\nContent-Length: "));
			buf_add_i64(out, (int64_t)body_bytes);
		}
		buf_add(out, "\r\n", 2);
	}
	buf_add_str(out, STR("Cache-Control: no-store\r\n"));
	if (has_content(reply))
		buf_add_str(out,
		    by_origin ? STR("Vary: Accept, Origin\r\n")
			      : STR("Vary: Accept\r\n"));
	else if (by_origin)
		buf_add_str(out, STR("Vary: Origin\r\n"));
}

/* Status stands first: an authorizer's other lines are lost before it. */
static void
add_head(struct buf *out, const struct reply *reply, enum accept_type type,
    int64_t seconds, size_t body_bytes)
{
	const struct reply_style *style = reply->style;

	buf_add_str(out, STR("Status: "));
	buf_add_i64(out, reply->status);
	buf_add_char(out, ' ');
	buf_add_str(out, str_of(reply_reason(reply->status)));
	buf_add(out, "\r\n", 2);
	add_content(out, reply, type, body_bytes);
	add_retry(out, reply, seconds);
	if (reply->tells_numbers && reply->numbers != NULL)
		numbers_write(out, reply->numbers, &style->numbers);
	add_cors(out, reply);
	buf_add_str(out, style->lines);
	buf_add(out, "\r\n", 2);
}

void
reply_write(struct buf *out, const struct reply *reply)
{
	enum accept_type type = accept_choose(reply->accept);
	int64_t seconds = reply->has_retry ? reply_retry_seconds(reply) : 0;
	struct buf body;

	buf_init(&body);
	if (!reply->without_body && has_content(reply))
		add_body(&body, reply, type, seconds);
	add_head(out, reply, type, seconds, body.len);
	buf_add_str(out, buf_str(&body));
	out->failed = out->failed || body.failed;
	buf_release(&body);
}

void
reply_write_pass(struct buf *out, const struct numbers *numbers,
    const struct numbers_style *style)
{
	buf_add_str(out, STR("Status: 200 OK\r\n"));
	if (numbers != NULL)
		numbers_write_variables(out, numbers, style);
	buf_add(out, "\r\n", 2);
}
