/*
 * A limit of several rates is known as a whole or not at all: the headers
 * name all of them.
 *
 * Of all that is violated the longest wait is told. So what one answer
 * refuses stays known equally long, and a refusal speaks for a request only
 * while it is younger than its other limits, which were not known to refuse,
 * would be remembered.
 */
#include "domain/denied.h"

#include "base/clock.h"
#include "base/compiler.h"

/* Where what is taken may well come back. */
#define SHORT_TTL_US 100000

/* How long a refusal is remembered; 0: what comes back is not heard of. */
static int64_t
ttl_of(const struct config_limit *l)
{
	if (l->algorithm == ALGORITHM_CONCURRENCY || l->count.some)
		return 0;
	return l->cost.kind == COST_RESPONSE || l->lease > 0 ||
		l->algorithm == ALGORITHM_LEAKY_BUCKET
	    ? SHORT_TTL_US
	    : INT64_MAX;
}

static int64_t
shorter(int64_t a, int64_t b)
{
	return a < b ? a : b;
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

struct recalled {
	struct deny_cache_answer told[STORE_CHECKS_MAX];
	bool refused[STORE_CHECKS_MAX]; /* the limit of check[i] is */
};

/* False: the store is to be asked, since no refusal or not enough is known. */
static bool
recall_all(
    const struct denied_request *r, int64_t now_us, struct recalled *known)
{
	int64_t ttl_us = INT64_MAX, oldest_us = INT64_MAX;
	size_t end;

	for (size_t i = 0; i < r->n; i++)
		if (ttl_of(r->limit[i]) == 0)
			return false;
	for (size_t i = 0; i < r->n; i = end) {
		bool refused;

		end = end_of_limit(r, i);
		refused = recall_limit(r, i, end, now_us, known->told);
		if (!refused)
			ttl_us = shorter(ttl_us, ttl_of(r->limit[i]));
		for (size_t k = i; k < end; k++) {
			known->refused[k] = refused;
			if (refused)
				oldest_us =
				    shorter(oldest_us, known->told[k].sent_us);
		}
	}
	return oldest_us != INT64_MAX && now_us - oldest_us < ttl_us;
}

bool
denied_recall(
    struct denied_request *r, int64_t now_us, struct store_answer *answer)
{
	UNINITIALIZED struct recalled known;
	size_t n = 0;

	if (r->cache == NULL || r->observes || !recall_all(r, now_us, &known))
		return false;
	for (size_t i = 0; i < r->n; i++) {
		const struct deny_cache_answer *told = &known.told[i];

		if (!known.refused[i])
			continue;
		answer->verdict[n] = told->verdict;
		/* No estimate of the store's clock is ahead of it. */
		if (n == 0 || told->taken_us > answer->taken_us)
			answer->taken_us = told->taken_us;
		r->check[n] = r->check[i];
		r->limit[n++] = r->limit[i];
	}
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

/* The least of all that it refuses. */
static int64_t
known_for(const struct denied_request *r, const struct store_answer *answer)
{
	int64_t for_us = INT64_MAX;

	for (size_t i = 0; i < r->n; i++) {
		const struct verdict *v = &answer->verdict[i];

		if (v->kind != VERDICT_REFUSED)
			continue;
		for_us = shorter(for_us, ttl_of(r->limit[i]));
		for_us = shorter(for_us, deny_cache_stands_us(v));
	}
	return for_us;
}

static void
remember(const struct denied_request *r, const struct store_answer *answer,
    int64_t sent_us)
{
	struct deny_cache_answer told = {
		.sent_us = sent_us,
		.answered_us = clock_mono_us(),
		.taken_us = answer->taken_us,
	};
	int64_t ttl_us = known_for(r, answer);
	size_t end;

	for (size_t i = 0; i < r->n; i = end) {
		end = end_of_limit(r, i);
		if (!refuses(answer, i, end))
			continue;
		for (; i < end; i++) {
			struct deny_cache_id id = id_of(r, i);

			told.verdict = answer->verdict[i];
			if (told.verdict.kind != VERDICT_ERROR)
				deny_cache_put(r->cache, &id, &told, ttl_us);
		}
	}
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
	const struct store_question q = { .check = r->check, .n = r->n };
	bool refused;

	if (r->cache == NULL || answer->status != STORE_ANSWERED)
		return;
	refused = store_refuses(&q, answer);
	for (size_t i = 0; i < r->n && !refused; i++)
		if (is_spent_unevenly(r->limit[i]))
			denied_forget(r->cache, &r->check[i], 1);
	if (refused && !r->observes)
		remember(r, answer, sent_us);
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
