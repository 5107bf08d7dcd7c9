#include "domain/redis_script.h"

#include <string.h>

#include "lua_scripts.h"

/* Above any limit, and exact in a double: never passes. */
#define COST_MAX (ALGORITHM_PRODUCT_MAX + 1)
/* What a check's key has to hold something else for. */
#define WAIT_NO_STATE (-2)

static const struct redis_script scripts[] = {
	[REDIS_SCRIPT_CHECK] = { STR(lua_check), STR(LUA_check_SHA1) },
	[REDIS_SCRIPT_REFUND] = { STR(lua_refund), STR(LUA_refund_SHA1) },
};

const struct redis_script *
redis_script(enum redis_script_name name)
{
	return &scripts[name];
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
put_check(struct buf *b, const struct check *c)
{
	int64_t cost = c->cost < COST_MAX ? c->cost : COST_MAX;
	int64_t unit = 1, r, p;

	buf_add_char(b,
	    (char)((unsigned)c->algorithm + 4 * (unsigned)c->align +
		(c->observe ? 16 : 0)));
	switch (c->algorithm) {
	case ALGORITHM_TOKEN_BUCKET:
		algorithm_lowest_terms(c->count, c->period_us, &r, &p);
		put_double(b, r);
		put_double(b, p);
		put_double(b, cost);
		put_double(b, c->burst);
		return;
	case ALGORITHM_SLIDING_WINDOW:
		unit = 1000;
		break;
	case ALGORITHM_FIXED_WINDOW:
		break;
	}
	put_double(b, c->count);
	put_double(b, c->period_us / unit);
	put_double(b, cost);
	put_double(b, c->offset_us / unit);
}

void
redis_script_put(struct buf *argument, enum redis_script_name name,
    const struct store_question *q, int64_t taken_us)
{
	buf_add_char(argument, (char)q->n);
	if (name == REDIS_SCRIPT_REFUND)
		put_double(argument, taken_us);
	for (size_t i = 0; i < q->n; i++)
		put_check(argument, &q->check[i].check);
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

static bool
read_verdict(
    struct str figures, int64_t limit, struct verdict *v, const char **reason)
{
	int64_t wait_us;

	if (figures.len != 32 || !get_double(figures.p, &wait_us) ||
	    !get_double(figures.p + 8, &v->remaining) ||
	    !get_double(figures.p + 16, &v->next_us) ||
	    !get_double(figures.p + 24, &v->full_us))
		return false;
	/* What our scripts never say, whoever answers in their place. */
	if (v->remaining < 0 || v->remaining > limit || v->next_us < 0 ||
	    v->full_us < 0 || wait_us < WAIT_NO_STATE)
		return false;
	v->limit = limit;
	v->retry_us = wait_us;
	v->kind = wait_us == 0 ? VERDICT_ALLOWED : VERDICT_REFUSED;
	if (wait_us == WAIT_NO_STATE) {
		v->kind = VERDICT_ERROR;
		v->retry_us = 0;
		*reason = "a key in Redis holds something else";
	}
	return true;
}

const struct redis_trouble *
redis_script_read(struct redis_script_reader *r, const int64_t *limit, size_t n,
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
			limit[i], &answer->verdict[i], &answer->reason);
	return NULL;
}
