#include "domain/response.h"

#include "pure/fcgi_record.h"

void
response_init(struct response *r, uint16_t id, bool without_body,
    struct decision *decision, const struct config_response *style)
{
	*r = (struct response){
		.id = id,
		.without_body = without_body,
		.decision = decision,
		.style = style,
		.body_left = -1,
	};
	cgi_head_init(&r->head);
}

void
response_release(struct response *r)
{
	cgi_head_release(&r->head);
}

static void
add_stdout(const struct response *r, struct str bytes, struct buf *down)
{
	while (bytes.len > 0) {
		struct str piece = { bytes.p,
			bytes.len > FCGI_CONTENT_MAX ? FCGI_CONTENT_MAX
						     : bytes.len };

		fcgi_add_record(down, FCGI_STDOUT, r->id, piece);
		bytes.p += piece.len;
		bytes.len -= piece.len;
	}
}

/* What belongs to one hop, or would be said twice. */
static bool
is_dropped(struct str name)
{
	static const struct str hop[] = {
		{ "Connection", 10 },
		{ "Keep-Alive", 10 },
		{ "Proxy-Connection", 16 },
		{ "Transfer-Encoding", 17 },
		{ "TE", 2 },
		{ "Trailer", 7 },
		{ "Upgrade", 7 },
	};

	for (size_t i = 0; i < sizeof(hop) / sizeof(hop[0]); i++)
		if (str_eq_nocase(name, hop[i]))
			return true;
	return false;
}

/* Does any list item of a Cache-Control say that shared caches may keep? */
static bool
is_public(const struct cgi_head *head)
{
	for (size_t i = 0; i < head->n_fields; i++) {
		struct str rest = head->field[i].value;

		if (!str_eq_nocase(head->field[i].name, STR("Cache-Control")))
			continue;
		while (rest.p != NULL) {
			struct str item = str_trim(str_cut(&rest, ','));

			if (str_eq_nocase(item, STR("public")) ||
			    (item.len > 9 &&
				str_eq_nocase((struct str){ item.p, 9 },
				    STR("s-maxage="))))
				return true;
		}
	}
	return false;
}

/*
 * Do the application's own rate-limit fields go out? They stay unless ours
 * are stricter, and as a whole: whichever families there are, those of two
 * limiters are never mixed.
 */
static bool
own_stay(const struct response *r)
{
	const struct cgi_head *head = &r->head;
	int64_t least = INT64_MAX;
	bool has_own = false;
	bool is_comparable = false;

	for (size_t i = 0; i < head->n_fields; i++) {
		const struct cgi_field *f = &head->field[i];
		int64_t left;

		if (!numbers_is_field(f->name))
			continue;
		has_own = true;
		if (!numbers_remaining(f->name, f->value, &left))
			continue;
		is_comparable = true;
		least = left < least ? left : least;
	}
	return has_own &&
	    (!is_comparable || least <= r->decision->verdict.remaining);
}

static bool
ours_go_out(const struct response *r)
{
	return r->decision->has_numbers &&
	    r->style->reply.numbers.families != 0 &&
	    r->style->headers_on == CONFIG_HEADERS_ON_ALL &&
	    !is_public(&r->head) && !own_stay(r);
}

static bool
has_no_body(const struct response *r)
{
	return r->without_body || r->head.status == 204 ||
	    r->head.status == 304;
}

/* A 204 may not even tell the length of a body (RFC 9110, 8.6). */
static bool
goes_out(const struct response *r, struct str name, bool ours)
{
	if (is_dropped(name) || (ours && numbers_is_field(name)))
		return false;
	return r->head.status != 204 ||
	    !str_eq_nocase(name, STR("Content-Length"));
}

/* What the application says of the cost is for us alone. */
static void
take_costs(struct response *r)
{
	struct cgi_head *head = &r->head;
	size_t n = 0;

	for (size_t i = 0; i < head->n_fields; i++) {
		struct cgi_field field = head->field[i];

		if (!decision_take_cost(r->decision, field.name, field.value))
			head->field[n++] = field;
	}
	head->n_fields = n;
}

/*
 * 200 and 302 that the backend left to us get their phrase as well: nginx
 * makes "HTTP/1.1 200" of a status without one, which is no status line.
 */
static struct str
phrase(const struct cgi_head *head)
{
	if (head->reason.len > 0)
		return head->reason;
	switch (head->status) {
	case 200:
		return STR("OK");
	case 302:
		return STR("Found");
	default:
		return STR("");
	}
}

static void
write_head(const struct response *r, struct buf *down)
{
	const struct cgi_head *head = &r->head;
	bool ours = ours_go_out(r);
	struct str reason = phrase(head);
	struct buf text;

	buf_init(&text);
	buf_add_str(&text, STR("Status: "));
	buf_add_i64(&text, head->status);
	if (reason.len > 0) {
		buf_add_char(&text, ' ');
		buf_add_str(&text, reason);
	}
	buf_add(&text, "\r\n", 2);
	for (size_t i = 0; i < head->n_fields; i++) {
		const struct cgi_field *f = &head->field[i];

		if (!goes_out(r, f->name, ours))
			continue;
		buf_add_str(&text, f->name);
		buf_add(&text, ": ", 2);
		buf_add_str(&text, f->value);
		buf_add(&text, "\r\n", 2);
	}
	if (ours)
		numbers_write(
		    &text, &r->decision->numbers, &r->style->reply.numbers);
	buf_add(&text, "\r\n", 2);
	add_stdout(r, buf_str(&text), down);
	down->failed = down->failed || text.failed;
	buf_release(&text);
}

static void
pass_body(struct response *r, struct str bytes, struct buf *down)
{
	if (r->body_left >= 0 && bytes.len > (uint64_t)r->body_left)
		bytes.len = (size_t)r->body_left;
	if (r->body_left >= 0)
		r->body_left -= (int64_t)bytes.len;
	r->body_bytes += bytes.len;
	add_stdout(r, bytes, down);
}

enum pump_verdict
response_take(struct response *r, struct str bytes, struct buf *down)
{
	if (r->has_head) {
		pass_body(r, bytes, down);
		return PUMP_GO_ON;
	}
	switch (cgi_head_feed(&r->head, bytes.p, bytes.len)) {
	case CGI_HEAD_MORE:
		return PUMP_HEAD_MORE;
	case CGI_HEAD_BAD:
		return PUMP_BROKEN;
	case CGI_HEAD_DONE:
		break;
	}
	r->has_head = true;
	take_costs(r);
	r->body_left = has_no_body(r) ? 0 : r->head.content_length;
	write_head(r, down);
	pass_body(r,
	    (struct str){ r->head.raw.p + r->head.body_at,
		r->head.raw.len - r->head.body_at },
	    down);
	return PUMP_GO_ON;
}

bool
response_is_whole(const struct response *r)
{
	return r->has_head && r->body_left <= 0;
}

void
response_end(const struct response *r, struct buf *down)
{
	fcgi_add_record(down, FCGI_STDOUT, r->id, STR_NONE);
	fcgi_add_end(down, r->id, 0, FCGI_REQUEST_COMPLETE);
}
