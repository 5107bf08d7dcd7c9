#include "domain/redis_script.h"

#include <string.h>

#include "lua_scripts.h"

/* Above any limit, and exact in a double: never passes. */
#define COST_MAX (ALGORITHM_PRODUCT_MAX + 1)
/* What a check's key has to hold something else for. */
#define WAIT_NO_STATE (-2)
/* What a kind adds to a law. */
#define KIND_FIRST   8U
#define KIND_OBSERVE 16U
#define KIND_OWN     32U
#define KIND_PENALTY 64U
#define KIND_LEASE   128U
/* Of a request: its checks, its keys, and its bytes in two. */
#define HEADER_SIZE 4

static const struct redis_script scripts[] = {
	[REDIS_SCRIPT_CHECK] = { STR(lua_check), STR(LUA_check_SHA1) },
	[REDIS_SCRIPT_SETTLE] = { STR(lua_settle), STR(LUA_settle_SHA1) },
	[REDIS_SCRIPT_RENEW] = { STR(lua_renew), STR(LUA_renew_SHA1) },
};

const struct redis_script *
redis_script(enum redis_script_name name)
{
	return &scripts[name];
}

const struct redis_script *
redis_script_fingerprint(void)
{
	static const struct redis_script script = { STR(lua_fingerprint),
		STR(LUA_fingerprint_SHA1) };

	return &script;
}

/* As struct.pack's '<d' has it. */
static void
put_double(struct buf *b, int64_t value)
{
	double d = (double)value;
	uint64_t bits;
	char bytes[8];

	memcpy(&bits, &d, sizeof(bits));
	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (char)(bits >> (8 * i) & 0xff);
	buf_add(b, bytes, sizeof(bytes));
}

static bool
get_double(const char *p, int64_t *value)
{
	uint64_t bits = 0;
	double d;

	for (unsigned i = 0; i < 8; i++)
		bits |= (uint64_t)(unsigned char)p[i] << (8 * i);
	memcpy(&d, &bits, sizeof(d));
	if (!(d >= -2 && d <= (double)ALGORITHM_PRODUCT_MAX))
		return false;
	*value = (int64_t)d;
	return true;
}

static void
put_four(struct buf *b, int64_t p, int64_t q, int64_t r, int64_t s)
{
	put_double(b, p);
	put_double(b, q);
	put_double(b, r);
	put_double(b, s);
}

static void
put_window(struct buf *b, const struct check *c, int64_t unit, int64_t cost)
{
	put_four(b, c->count, c->period_us / unit, cost, c->offset_us / unit);
}

static void
put_bucket(struct buf *b, const struct check *c, int64_t cost)
{
	int64_t r, p;

	algorithm_lowest_terms(c->count, c->period_us, &r, &p);
	put_four(b, r, p, cost, c->burst);
}

static void
put_calendar(struct buf *b, const struct check *c, int64_t cost)
{
	put_four(b, c->count, c->boundary_us[0], cost, c->boundary_us[1]);
	put_double(b, c->boundary_us[2]);
	put_double(b, c->boundary_us[3]);
}

static void
put_text(struct buf *b, struct str text)
{
	buf_add_char(b, (char)text.len);
	buf_add_str(b, text);
}

/* As lua/laws.lua and wide.lua number them. */
static unsigned
law_of(const struct check *c)
{
	switch (c->algorithm) {
	case ALGORITHM_SLIDING_WINDOW:
		return 0;
	case ALGORITHM_FIXED_WINDOW:
		if (c->align == ALIGN_CALENDAR)
			return 6;
		return c->align == ALIGN_FIRST ? 1 + KIND_FIRST : 1;
	case ALGORITHM_TOKEN_BUCKET:
		return 2;
	case ALGORITHM_SLIDING_LOG:
		return 3;
	case ALGORITHM_LEAKY_BUCKET:
		return 4;
	case ALGORITHM_CONCURRENCY:
		return 5;
	}
	return 0;
}

static void
put_law(struct buf *b, const struct store_check *check, bool settles)
{
	const struct check *c = &check->check;
	int64_t cost = c->cost < COST_MAX ? c->cost : COST_MAX;

	switch (c->algorithm) {
	case ALGORITHM_SLIDING_WINDOW:
		put_window(b, c, 1000, cost);
		break;
	case ALGORITHM_FIXED_WINDOW:
		if (c->align == ALIGN_CALENDAR)
			put_calendar(b, c, cost);
		else
			put_window(b, c, 1, cost);
		break;
	case ALGORITHM_SLIDING_LOG:
		put_window(b, c, 1, cost);
		break;
	case ALGORITHM_TOKEN_BUCKET:
		put_bucket(b, c, cost);
		if (settles)
			put_double(b, c->full_us);
		break;
	case ALGORITHM_LEAKY_BUCKET:
		put_bucket(b, c, cost);
		put_double(b, settles ? c->full_us : c->delay_max_us);
		break;
	case ALGORITHM_CONCURRENCY:
		put_window(b, c, 1, cost);
		put_text(b, check->slot);
		break;
	}
}

static void
put_key(struct buf *keys, struct str prefix, struct str suffix)
{
	size_t len = prefix.len + suffix.len;

	buf_add_char(keys, (char)(len & 0xff));
	buf_add_char(keys, (char)(len >> 8 & 0xff));
	buf_add_str(keys, prefix);
	buf_add_str(keys, suffix);
}

/* Returns how many keys go with it. */
static size_t
put_check(struct buf *b, struct buf *keys, const struct store_check *check,
    bool settles)
{
	const struct check *c = &check->check;
	bool penalty = c->penalty_us > 0 && !settles;
	bool lease = c->most > c->cost && !settles;
	bool own = check->own_key.p != NULL;

	buf_add_char(b,
	    (char)(law_of(c) + (c->observe ? KIND_OBSERVE : 0) +
		(own ? KIND_OWN : 0) + (penalty ? KIND_PENALTY : 0) +
		(lease ? KIND_LEASE : 0)));
	put_law(b, check, settles);
	put_key(keys, check->key, STR_NONE);
	if (own) {
		buf_add_char(b, (char)check->own_at);
		put_double(b, c->count);
		put_key(keys, check->own_key, STR_NONE);
	}
	if (penalty) {
		put_double(b, c->penalty_us);
		put_key(keys, check->key, STR(":p"));
	}
	if (lease)
		put_double(b, c->most);
	return 1 + (own ? 1U : 0U) + (penalty ? 1U : 0U);
}

/* A header, of which two bytes tell how long what follows is. */
static size_t
put_request(struct buf *b, struct buf *keys, const struct store_question *q)
{
	size_t start = b->len, n = 0, size;

	buf_add_char(b, (char)q->n);
	buf_add(b, "\0\0", 3);
	for (size_t i = 0; i < q->n; i++)
		n += put_check(b, keys, &q->check[i], false);
	if (b->failed)
		return 0;
	size = b->len - start - HEADER_SIZE;
	b->p[start + 1] = (char)n;
	b->p[start + 2] = (char)(size & 0xff);
	b->p[start + 3] = (char)(size >> 8 & 0xff);
	return n;
}

/* What was taken at one time goes under one head. */
static size_t
put_settlement(struct buf *b, struct buf *keys, const struct store_question *q)
{
	size_t n = 0, same;

	for (size_t i = 0; i < q->n; i += same) {
		int64_t taken_us = q->check[i].taken_us;

		same = 1;
		while (
		    i + same < q->n && q->check[i + same].taken_us == taken_us)
			same++;
		buf_add_char(b, (char)same);
		put_double(b, taken_us);
		for (size_t k = 0; k < same; k++)
			n += put_check(b, keys, &q->check[i + k], true);
	}
	return n;
}

size_t
redis_script_put(struct buf *argument, struct buf *keys,
    enum redis_script_name name, const struct store_question *q)
{
	switch (name) {
	case REDIS_SCRIPT_CHECK:
		return put_request(argument, keys, q);
	case REDIS_SCRIPT_SETTLE:
		return put_settlement(argument, keys, q);
	case REDIS_SCRIPT_RENEW:
		break;
	}
	for (size_t i = 0; i < q->n; i++) {
		put_text(argument, q->check[i].slot);
		put_key(keys, q->check[i].key, STR_NONE);
	}
	return q->n;
}

struct str
redis_script_next_key(struct str *keys)
{
	const unsigned char *p = (const unsigned char *)keys->p;
	struct str key = { keys->p + 2, p[0] | (size_t)p[1] << 8 };

	keys->p += 2 + key.len;
	keys->len -= 2 + key.len;
	return key;
}

bool
redis_script_read_begin(
    struct redis_script_reader *r, const struct redis_reply *reply)
{
	struct str now;

	r->reply = reply;
	r->at = 1;
	if (redis_reply_count(reply) == 0)
		return false;
	now = redis_reply_string(redis_reply_at(reply, 0));
	return now.len == 8 && get_double(now.p, &r->now_us);
}

/* Without that of a penalty. */
static bool
is_number_of_figures(size_t n, bool lease)
{
	return lease ? n == 8 : n == 4 || n == 6 || n == 7;
}

/*
 * Four figures, six or seven, and one more of a penalty, or eight of a lease;
 * four alone where the key holds something else.
 */
static bool
get_figures(struct str figures, const struct redis_script_bounds *bounds,
    int64_t value[9])
{
	size_t all = figures.len / 8;
	size_t n = all > 4 && bounds->penalty_us > 0 ? all - 1 : all;

	if (figures.len % 8 != 0 ||
	    (all != 4 && !is_number_of_figures(n, bounds->taken > 0)))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!get_double(figures.p + 8 * i, &value[i]))
			return false;
	return n == all || get_double(figures.p + 8 * n, &value[8]);
}

struct redis_script_bounds
redis_script_bounds_of(const struct check *check)
{
	return (struct redis_script_bounds){
		.limit = algorithm_limit(check),
		.delay_us = check->algorithm == ALGORITHM_LEAKY_BUCKET
		    ? check->delay_max_us
		    : 0,
		.penalty_us = check->penalty_us,
		.taken = check->most > check->cost ? check->most : 0,
	};
}

static bool
read_verdict(struct str figures, const struct redis_script_bounds *bounds,
    struct verdict *v, const char **reason)
{
	int64_t value[9] = { 0, 0, 0, 0, 0, bounds->limit, 0, 0, 0 };

	if (!get_figures(figures, bounds, value))
		return false;
	/* What our scripts never say, whoever answers in their place. */
	if (value[1] < 0 || value[1] > value[5] || value[2] < 0 ||
	    value[3] < 0 || value[4] < 0 || value[4] > bounds->delay_us ||
	    value[0] < WAIT_NO_STATE || value[6] < 0 || value[7] < 0 ||
	    value[7] > bounds->taken || value[8] < 0 ||
	    value[8] > bounds->penalty_us)
		return false;
	*v = (struct verdict){
		.kind = value[0] == 0 ? VERDICT_ALLOWED : VERDICT_REFUSED,
		.retry_us = value[0],
		.remaining = value[1],
		.next_us = value[2],
		.full_us = value[3],
		.delay_us = value[4],
		.limit = value[5],
		.own_count = value[6],
		.taken = value[7],
		.penalty_us = value[8],
	};
	if (value[0] == WAIT_NO_STATE) {
		v->kind = VERDICT_ERROR;
		v->retry_us = 0;
		*reason = "a key in Redis holds something else";
	}
	return true;
}

const struct redis_trouble *
redis_script_read(struct redis_script_reader *r,
    const struct redis_script_bounds *bounds, size_t n,
    struct store_answer *answer, bool *ok)
{
	size_t count = redis_reply_count(r->reply);
	struct str error;

	*ok = r->at < count;
	if (!*ok)
		return NULL;
	error = redis_reply_error(redis_reply_at(r->reply, r->at));
	if (error.p != NULL) {
		const struct redis_trouble *t = redis_trouble_of(error);

		r->at++;
		answer->status = STORE_OUT;
		answer->reason = t->reason;
		return t;
	}
	answer->status = STORE_ANSWERED;
	answer->taken_us = r->now_us;
	answer->reason = NULL;
	for (size_t i = 0; *ok && i < n; i++)
		*ok = r->at < count &&
		    read_verdict(
			redis_reply_string(redis_reply_at(r->reply, r->at++)),
			&bounds[i], &answer->verdict[i], &answer->reason);
	return NULL;
}

bool
redis_script_read_settled(
    const struct redis_reply *reply, int64_t *cut, size_t n)
{
	struct str units = redis_reply_string(reply);

	if (units.p == NULL || units.len != 8 * n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!get_double(units.p + 8 * i, &cut[i]))
			return false;
	return true;
}
