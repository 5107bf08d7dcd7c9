#include "io/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static _Atomic uint64_t total_bytes;

void
spool_init(struct spool *s)
{
	buf_init(&s->memory);
	s->fd = -1;
	s->bytes = 0;
}

void
spool_release(struct spool *s)
{
	atomic_fetch_sub(&total_bytes, s->bytes);
	buf_release(&s->memory);
	if (s->fd >= 0)
		close(s->fd);
	spool_init(s);
}

/* Some file systems have no O_TMPFILE. */
static int
open_unlinked(const char *directory)
{
	char path[4096];
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	if ((size_t)snprintf(path, sizeof(path), "%s/sluice.XXXXXX",
		directory) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static bool
write_at(int fd, const char *bytes, size_t len, uint64_t at)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, bytes, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		bytes += n;
		len -= (size_t)n;
		at += (uint64_t)n;
	}
	return true;
}

static bool
move_to_file(struct spool *s, const char *directory)
{
	s->fd = open_unlinked(directory);
	if (s->fd < 0)
		return false;
	if (!write_at(s->fd, s->memory.p, s->memory.len, 0))
		return false;
	buf_release(&s->memory);
	return true;
}

static bool
keep(struct spool *s, const struct spool_limits *limits, const void *bytes,
    size_t len)
{
	if (s->fd < 0 && s->bytes + len <= limits->memory_bytes) {
		buf_add(&s->memory, bytes, len);
		return !s->memory.failed;
	}
	if (s->fd < 0 && !move_to_file(s, limits->directory))
		return false;
	return write_at(s->fd, bytes, len, s->bytes);
}

enum spool_status
spool_add(struct spool *s, const struct spool_limits *limits, const void *bytes,
    size_t len)
{
	uint64_t before = atomic_fetch_add(&total_bytes, len);

	if (before + len > limits->total_bytes) {
		atomic_fetch_sub(&total_bytes, len);
		return SPOOL_FULL;
	}
	if (!keep(s, limits, bytes, len)) {
		atomic_fetch_sub(&total_bytes, len);
		return SPOOL_FAILED;
	}
	s->bytes += len;
	return SPOOL_OK;
}

ssize_t
spool_read(const struct spool *s, uint64_t at, void *out, size_t len)
{
	ssize_t n;

	if (at >= s->bytes)
		return 0;
	if (len > s->bytes - at)
		len = (size_t)(s->bytes - at);
	if (s->fd < 0) {
		memcpy(out, s->memory.p + at, len);
		return (ssize_t)len;
	}
	do
		n = pread(s->fd, out, len, (off_t)at);
	while (n < 0 && errno == EINTR);
	return n;
}
