/*
 * spool: a request's body, kept until the application takes it.
 *
 * The first bytes stay in memory; beyond `memory_bytes` all of it moves to
 * an unlinked file. All spools together hold at most `total_bytes`. One
 * thread at a time uses a spool; the total is shared by all.
 */
#ifndef SLUICE_SPOOL_H
#define SLUICE_SPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct spool_limits {
	uint64_t memory_bytes;
	uint64_t total_bytes;
	const char *directory;
};

struct spool {
	struct buf memory; /* unused once there is a file */
	int fd;            /* -1: in memory */
	uint64_t bytes;
};

enum spool_status { SPOOL_OK, SPOOL_FULL, SPOOL_FAILED };

void spool_init(struct spool *s);
void spool_release(struct spool *s);
/* SPOOL_FAILED: no memory, or the file could not be written (errno). */
enum spool_status spool_add(struct spool *s, const struct spool_limits *limits,
    const void *bytes, size_t len);
/* Up to `len` bytes from offset `at`; 0 at the end, -1 on a read error. */
ssize_t spool_read(const struct spool *s, uint64_t at, void *out, size_t len);

#endif
