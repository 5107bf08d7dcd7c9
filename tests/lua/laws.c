/*
 * Drawn traces (see ../unit/law_run.h) as what Redis is to be sent, by the
 * encoder that the gateway has, and what it is to answer: what the store in
 * memory did, once the oracle has agreed to it.
 *
 * Usage: laws KIND SEED STEPS        KIND: a number, see law_draw.h
 *
 *	new
 *	ask NOW ARGUMENT KEYS FIGURES...  six for each check: wait, remaining,
 *	                                  next, full, delay, limit
 *	renew NOW ARGUMENT KEYS           as slots would go after 15 s
 *	settle NOW ARGUMENT KEYS          something is given back
 *	drop KEY...                       these are over
 *
 * ARGUMENT is in hexadecimal. KEYS is their number, then for each its name
 * and the milliseconds that it is to be given when it is written: exactly so
 * many, at most so many where it is below 0, none where it is not to be.
 */
#include <inttypes.h>

#include "../unit/law_run.h"
#include "base/buf.h"
#include "domain/redis_script.h"

static int64_t
ceil_ms(int64_t us)
{
	return (us + 999) / 1000;
}

/* PEXPIREAT = ceil(end / 1000) + 1 ms, as seen from now. */
static int64_t
lasts_ms(int64_t end_us, int64_t now_us)
{
	return ceil_ms(end_us) + 1 - now_us / 1000;
}

static int64_t
last_of(const struct trace *t)
{
	return t->now_us > t->latest_us ? t->now_us : t->latest_us;
}

/* All that is kept is gone by then. */
static int64_t
latest_end(const struct trace *t)
{
	int64_t end_us = last_of(t);

	for (size_t i = 0; i < t->n; i++)
		if (last_of(t) + t->limit[i].bound_us > end_us)
			end_us = last_of(t) + t->limit[i].bound_us;
	return end_us + ORACLE_HOLD_US;
}

/* Exact, but where it is beyond what a double holds, and for slots. */
static int64_t
count_lasts_ms(const struct trace *t, size_t i, const struct verdict *v)
{
	const struct law_limit *l = &t->limit[i];
	int64_t end_us =
	    oracle_end_us(&l->check, &l->oracle, t->now_us, v->full_us);

	if (trace_is_slots(l))
		return -lasts_ms(last_of(t) + ORACLE_HOLD_US, t->now_us);
	if (end_us > ALGORITHM_PRODUCT_MAX)
		return -lasts_ms(end_us + 1000, t->now_us);
	return lasts_ms(end_us, t->now_us);
}

static int64_t
penalty_lasts_ms(const struct trace *t, size_t i, const struct verdict *v)
{
	const struct law_limit *l = &t->limit[i];

	if (v->kind != VERDICT_REFUSED ||
	    oracle_penalty_left(&l->check, &l->oracle, t->now_us) > 0)
		return 0;
	return lasts_ms(t->now_us + l->check.penalty_us, t->now_us);
}

/* lasts_ms: for each key; NULL: none is to be written. */
static void
print_call(const char *what, const struct trace *t,
    enum redis_script_name script, const struct store_question *q,
    const int64_t *lasts)
{
	struct buf argument, keys;
	struct str rest;
	size_t n;

	buf_init(&argument);
	buf_init(&keys);
	n = redis_script_put(&argument, &keys, script, q);
	assert(!argument.failed && !keys.failed);
	printf("%s %" PRId64 " ", what, t->now_us);
	for (size_t i = 0; i < argument.len; i++)
		printf("%02x", (unsigned char)argument.p[i]);
	printf(" %zu", n);
	rest = buf_str(&keys);
	for (size_t i = 0; i < n; i++) {
		struct str key = redis_script_next_key(&rest);

		printf(" %.*s %" PRId64, (int)key.len, key.p,
		    lasts != NULL ? lasts[i] : 0);
	}
	buf_release(&argument);
	buf_release(&keys);
}

static void
renew(const struct trace *t)
{
	struct store_check check[TRACE_HELD];
	struct store_question q = { .check = check, .n = t->n_held };
	int64_t lasts[TRACE_HELD];

	if (t->n_held == 0)
		return;
	for (size_t i = 0; i < t->n_held; i++) {
		const struct law_limit *l = &t->limit[t->held[i].limit];

		check[i] = (struct store_check){ .key = str_of(l->key),
			.check = l->check,
			.slot = str_of(t->held[i].name) };
		lasts[i] = -lasts_ms(last_of(t) + ORACLE_HOLD_US, t->now_us);
	}
	print_call("renew", t, REDIS_SCRIPT_RENEW, &q, lasts);
	printf("\n");
}

static void
asked(struct trace *t, const struct store_question *q,
    const struct store_answer *a, const bool *taken)
{
	int64_t lasts[2 * TRACE_LIMITS];
	size_t n = 0;

	renew(t);
	for (size_t i = 0; i < q->n; i++) {
		const struct verdict *v = &a->verdict[i];

		lasts[n++] = taken[i] ? count_lasts_ms(t, i, v) : 0;
		if (q->check[i].check.penalty_us > 0)
			lasts[n++] = penalty_lasts_ms(t, i, v);
	}
	print_call("ask", t, REDIS_SCRIPT_CHECK, q, lasts);
	for (size_t i = 0; i < q->n; i++) {
		const struct verdict *v = &a->verdict[i];

		printf(" %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
		       " %" PRId64 " %" PRId64 " %" PRId64,
		    v->retry_us, v->remaining, v->next_us, v->full_us,
		    v->delay_us, v->limit, v->penalty_us);
		printf(" %" PRId64, v->taken);
	}
	printf("\n");
}

static void
released(struct trace *t, const struct store_check *slot)
{
	struct store_check back = *slot;

	back.check.cost = -1;
	back.taken_us = 0;
	print_call("settle", t, REDIS_SCRIPT_SETTLE,
	    &(struct store_question){ .check = &back, .n = 1 }, NULL);
	printf("\n");
}

static void
refunded(struct trace *t, const struct store_question *q, int64_t taken_us)
{
	struct store_check back[TRACE_LIMITS];
	struct store_question all = { .check = back, .n = q->n };
	int64_t lasts[TRACE_LIMITS];

	for (size_t i = 0; i < q->n; i++) {
		back[i] = q->check[i];
		back[i].check.cost = -back[i].check.cost;
		back[i].taken_us = taken_us;
		lasts[i] = -lasts_ms(latest_end(t), t->now_us);
	}
	print_call("settle", t, REDIS_SCRIPT_SETTLE, &all, lasts);
	printf("\n");
}

static void
swept(struct trace *t)
{
	printf("drop");
	for (size_t i = 0; i < t->n; i++) {
		const struct law_limit *l = &t->limit[i];

		if (!trace_is_slots(l) && l->gone_us <= t->now_us)
			printf(" %s", l->key);
		if (oracle_penalty_left(&l->check, &l->oracle, t->now_us) == 0)
			printf(" %s:p", l->key);
	}
	printf("\n");
}

static const struct trace_watch watch = { asked, released, refunded, swept };

int
main(int argc, char **argv)
{
	static struct trace t;
	struct store *store = store_memory_new(100);
	size_t kind, steps, done = 0;
	uint64_t seed;

	if (argc != 4 || store == NULL)
		return 2;
	kind = strtoul(argv[1], NULL, 10);
	seed = strtoull(argv[2], NULL, 10);
	steps = strtoul(argv[3], NULL, 10);
	if (kind >= LAW_KINDS)
		return 2;
	for (uint64_t i = 0; done < steps; i++) {
		printf("new\n");
		trace_begin(&t, store, &watch, kind, trace_lot(seed, kind, i));
		done += trace_run(&t);
		if (t.wrong != NULL) {
			trace_print(&t, stderr);
			return 1;
		}
	}
	store->ops->free(store);
	return 0;
}
