#include "pure/reply.h"

int64_t
reply_retry_seconds(int64_t retry_us)
{
	int64_t seconds = numbers_seconds(retry_us);

	if (retry_us == ALGORITHM_NEVER)
		return REPLY_NEVER_SECONDS;
	return seconds < 1 ? 1 : seconds;
}

const char *
reply_reason(int status)
{
	switch (status) {
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
add_body(struct buf *out, const struct reply *reply)
{
	buf_addf(out, "%d %s\n", reply->status, reply_reason(reply->status));
	if (reply->message != NULL)
		buf_addf(out, "%s\n", reply->message);
	if (reply->has_retry)
		buf_addf(out, "Try again in %lld s.\n",
		    (long long)reply_retry_seconds(reply->retry_us));
}

/* Status stands first: an authorizer's other lines are lost before it. */
void
reply_write(struct buf *out, const struct reply *reply)
{
	struct buf body;

	buf_init(&body);
	if (!reply->without_body)
		add_body(&body, reply);
	buf_addf(out, "Status: %d %s\r\n", reply->status,
	    reply_reason(reply->status));
	buf_addf(out, "Content-Type: text/plain; charset=utf-8\r\n");
	if (!reply->without_body)
		buf_addf(out, "Content-Length: %zu\r\n", body.len);
	buf_addf(out, "Cache-Control: no-store\r\n");
	if (reply->has_retry)
		buf_addf(out, "Retry-After: %lld\r\n",
		    (long long)reply_retry_seconds(reply->retry_us));
	if (reply->numbers != NULL)
		numbers_write(out, reply->numbers, reply->style);
	buf_addf(out, "\r\n");
	buf_add_str(out, buf_str(&body));
	out->failed = out->failed || body.failed;
	buf_release(&body);
}
