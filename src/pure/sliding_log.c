#include "pure/sliding_log.h"

#include <assert.h>
#include <stdlib.h>

#define CAP_MIN 4

struct sliding_log {
	size_t first;
	size_t n;
	size_t cap; /* a power of two */
	struct sliding_log_entry entry[];
};

void
sliding_log_free(struct sliding_log *log)
{
	free(log);
}

size_t
sliding_log_count(const struct sliding_log *log)
{
	return log != NULL ? log->n : 0;
}

static struct sliding_log_entry *
entry_at(struct sliding_log *log, size_t i)
{
	return &log->entry[(log->first + i) & (log->cap - 1)];
}

const struct sliding_log_entry *
sliding_log_at(const struct sliding_log *log, size_t i)
{
	assert(i < log->n);
	return &log->entry[(log->first + i) & (log->cap - 1)];
}

/* Takes the place of one half its size; NULL: no memory. */
static struct sliding_log *
grow(struct sliding_log *log)
{
	size_t n = sliding_log_count(log);
	size_t cap = log != NULL ? log->cap * 2 : CAP_MIN;
	struct sliding_log *larger =
	    malloc(sizeof(*larger) + cap * sizeof(larger->entry[0]));

	if (larger == NULL)
		return NULL;
	larger->first = 0;
	larger->n = n;
	larger->cap = cap;
	for (size_t i = 0; i < n; i++)
		larger->entry[i] = *sliding_log_at(log, i);
	free(log);
	return larger;
}

bool
sliding_log_add(struct sliding_log **log, int64_t at_us, int64_t units)
{
	struct sliding_log *l = *log;
	size_t i;

	if (l == NULL || l->n == l->cap) {
		l = grow(l);
		if (l == NULL)
			return false;
		*log = l;
	}
	i = l->n++;
	for (; i > 0 && entry_at(l, i - 1)->at_us > at_us; i--)
		*entry_at(l, i) = *entry_at(l, i - 1);
	*entry_at(l, i) = (struct sliding_log_entry){ at_us, units };
	return true;
}

void
sliding_log_drop(struct sliding_log *log, size_t n)
{
	if (n == 0)
		return;
	assert(n <= log->n);
	log->first = (log->first + n) & (log->cap - 1);
	log->n -= n;
}

void
sliding_log_remove(struct sliding_log *log, size_t i)
{
	assert(i < log->n);
	log->n--;
	for (; i < log->n; i++)
		*entry_at(log, i) = *entry_at(log, i + 1);
}
