/*
 * sliding_log: what was taken within a period, oldest first.
 *
 * A ring on the heap that grows; NULL is an empty one. Its owner is whoever
 * keeps the state that points to it.
 */
#ifndef SLUICE_SLIDING_LOG_H
#define SLUICE_SLIDING_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sliding_log;

struct sliding_log_entry {
	int64_t at_us;
	int64_t units;
};

void sliding_log_free(struct sliding_log *log);

size_t sliding_log_count(const struct sliding_log *log);
/* 0 is the oldest. */
const struct sliding_log_entry *sliding_log_at(
    const struct sliding_log *log, size_t i);

/* By its time, behind all of the same. False: no memory, nothing changed. */
bool sliding_log_add(struct sliding_log **log, int64_t at_us, int64_t units);
/* Forgets the first n. */
void sliding_log_drop(struct sliding_log *log, size_t n);
void sliding_log_remove(struct sliding_log *log, size_t i);

#endif
