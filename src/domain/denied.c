/*
 * A limit of several rates is known as a whole or not at all: the headers
 * name all of them.
 */
#include "domain/denied.h"

#include "base/clock.h"
#include "base/compiler.h"

/* Where what is taken may well come back. */
#define SHORT_TTL_US 100000

/* What is given back of these is not heard of in time. */
static bool
is_remembered(const struct config_limit *l)
{
	return l->algorithm != ALGORITHM_CONCURRENCY && !l->count.some;
}

static int64_t
ttl_of(const struct config_limit *l)
{
	return l->cost.kind == COST_RESPONSE || l->lease > 0 ||
		l->algorithm == ALGORITHM_LEAKY_BUCKET
	    ? SHORT_TTL_US
	    : INT64_MAX;
}

static struct deny_cache_id
id_of(const struct denied_request *r, size_t i)
{
	return (struct deny_cache_id){ &r->check[i], r->serial };
}

/* The checks of a limit stand together; where the next one's begin. */
static size_t
end_of_limit(const struct denied_request *r, size_t begin)
{
	size_t end = begin + 1;

	while (end < r->n && r->limit[end] == r->limit[begin])
		end++;
	return end;
}

/* Is it known that the limit refuses, and what of all its rates? */
static bool
recall_limit(const struct denied_request *r, size_t begin, size_t end,
    int64_t now_us, struct deny_cache_answer *told)
{
	bool refused = false;

	if (!is_remembered(r->limit[begin]))
		return false;
	for (size_t i = begin; i < end; i++) {
		struct deny_cache_id id = id_of(r, i);

		switch (deny_cache_find(r->cache, &id, now_us, &told[i])) {
		case DENY_CACHE_UNKNOWN:
			return false;
		case DENY_CACHE_REFUSED:
			refused = true;
			break;
		case DENY_CACHE_TOLD:
			break;
		}
	}
	return refused;
}

bool
denied_recall(struct denied_request *r, struct store_answer *answer)
{
	UNINITIALIZED struct deny_cache_answer told[STORE_CHECKS_MAX];
	int64_t now_us;
	size_t n = 0, end;

	if (r->cache == NULL || r->observes)
		return false;
	now_us = clock_mono_us();
	for (size_t i = 0; i < r->n; i = end) {
		end = end_of_limit(r, i);
		if (!recall_limit(r, i, end, now_us, told))
			continue;
		for (; i < end; i++) {
			answer->verdict[n] = told[i].verdict;
			/* No estimate of the store's clock is ahead of it. */
			if (n == 0 || told[i].taken_us > answer->taken_us)
				answer->taken_us = told[i].taken_us;
			r->check[n] = r->check[i];
			r->limit[n++] = r->limit[i];
		}
	}
	if (n == 0)
		return false;
	r->n = n;
	answer->status = STORE_ANSWERED;
	answer->wait_us = 0;
	answer->retry_us = 0;
	answer->reason = NULL;
	return true;
}

static bool
refuses(const struct store_answer *answer, size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i++)
		if (answer->verdict[i].kind == VERDICT_REFUSED)
			return true;
	return false;
}

static void
remember(const struct denied_request *r, const struct store_answer *answer,
    size_t i, int64_t sent_us, int64_t answered_us)
{
	const struct deny_cache_answer told = {
		.verdict = answer->verdict[i],
		.sent_us = sent_us,
		.answered_us = answered_us,
		.taken_us = answer->taken_us,
	};
	struct deny_cache_id id = id_of(r, i);

	if (told.verdict.kind != VERDICT_ERROR)
		deny_cache_put(r->cache, &id, &told, ttl_of(r->limit[i]));
}

/* Could who is allowed by it spend what another one waits for? */
static bool
is_spent_unevenly(const struct config_limit *l)
{
	return l->cost.kind == COST_PATTERNS || l->n_tiers > 0;
}

void
denied_learn(const struct denied_request *r, const struct store_answer *answer,
    int64_t sent_us)
{
	bool refused = false;
	int64_t answered_us;
	size_t end;

	if (r->cache == NULL || answer->status != STORE_ANSWERED)
		return;
	answered_us = clock_mono_us();
	for (size_t i = 0; i < r->n && !refused; i++)
		refused = answer->verdict[i].kind == VERDICT_REFUSED &&
		    !r->check[i].check.observe;
	for (size_t i = 0; i < r->n; i = end) {
		end = end_of_limit(r, i);
		if (!refused && is_spent_unevenly(r->limit[i]))
			denied_forget(r->cache, &r->check[i], end - i);
		if (r->observes || !is_remembered(r->limit[i]) ||
		    !refuses(answer, i, end))
			continue;
		for (; i < end; i++)
			remember(r, answer, i, sent_us, answered_us);
	}
}

void
denied_forget(
    struct deny_cache *cache, const struct store_check *check, size_t n)
{
	if (cache == NULL)
		return;
	for (size_t i = 0; i < n; i++)
		deny_cache_forget(cache, check[i].key, clock_mono_us());
}

void
denied_forget_keys(struct deny_cache *cache, const struct str *key, size_t n)
{
	if (cache == NULL)
		return;
	for (size_t i = 0; i < n; i++)
		deny_cache_forget(cache, key[i], clock_mono_us());
}
