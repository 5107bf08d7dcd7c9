#include "config/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool
check_kind(int fd, size_t max, struct stat *info, struct err *err)
{
	if (fstat(fd, info) != 0)
		return err_set(err, "can not be read: %s", strerror(errno));
	if (S_ISDIR(info->st_mode))
		return err_set(err, "is a directory");
	if (!S_ISREG(info->st_mode))
		return err_set(err, "is not a regular file");
	if ((uintmax_t)info->st_size > max)
		return err_set(err, "is larger than %zu bytes", max);
	return true;
}

/* A file that grows meanwhile is read to `max` bytes and one more. */
static bool
read_all(int fd, size_t max, struct buf *out, struct err *err)
{
	size_t start = out->len;

	for (;;) {
		ssize_t n;

		if (!buf_reserve(out, 4096))
			return err_set(err, "out of memory");
		n = read(fd, out->p + out->len, 4096);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(
			    err, "can not be read: %s", strerror(errno));
		if (n == 0)
			return true;
		out->len += (size_t)n;
		if (out->len - start > max)
			return err_set(err, "is larger than %zu bytes", max);
	}
}

/* Editors put it there; nobody sees it. */
static void
cut_mark(struct buf *out, size_t start)
{
	static const char mark[] = { '\xef', '\xbb', '\xbf' };
	size_t len = out->len - start;
	char *text;

	if (len < sizeof(mark))
		return;
	text = out->p + start;
	if (memcmp(text, mark, sizeof(mark)) != 0)
		return;
	memmove(text, text + sizeof(mark), len - sizeof(mark));
	out->len -= sizeof(mark);
}

bool
file_read(const char *path, size_t max, struct buf *out, struct stat *info,
    struct err *err)
{
	/* O_NONBLOCK: or a FIFO would wait for a writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	size_t start = out->len;
	bool ok;

	if (fd < 0)
		return err_set(err, "can not be read: %s", strerror(errno));
	ok = check_kind(fd, max, info, err) && read_all(fd, max, out, err);
	if (ok)
		cut_mark(out, start);
	close(fd);
	return ok;
}

char *
file_path(struct arena *arena, const char *directory, struct str path)
{
	bool is_absolute = path.len > 0 && path.p[0] == '/';
	size_t size = strlen(directory) + 1 + path.len + 1;
	char *joined = arena_alloc(arena, size);

	if (joined == NULL)
		return NULL;
	if (is_absolute || strcmp(directory, ".") == 0)
		snprintf(joined, size, "%.*s", STR_ARG(path));
	else
		snprintf(joined, size, "%s/%.*s", directory, STR_ARG(path));
	return joined;
}

char *
file_directory(struct arena *arena, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct str directory = STR(".");

	if (slash == path)
		directory = STR("/");
	else if (slash != NULL)
		directory = (struct str){ path, (size_t)(slash - path) };
	return (char *)arena_copy(arena, directory).p;
}
