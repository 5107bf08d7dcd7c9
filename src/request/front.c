#include "request/front.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fcgiapp.h>

struct front {
	FCGX_Request request;
};

bool
front_init(struct err *err)
{
	int rc = FCGX_Init();

	return rc == 0 || err_set(err, "libfcgi: FCGX_Init failed (%d)", rc);
}

/*
 * A head is written so that it ends where the file ends: nothing of an
 * earlier one is behind it, and the file need not be cut for each. What
 * libfcgi then reads ends with it.
 */
#define HEAD_ROOM ((size_t)256 * 1024)

int
front_open_memfd(struct err *err)
{
	int fd = memfd_create("sluice-head", MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, HEAD_ROOM) == 0)
		return fd;
	err_set(err, "memfd: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool
fill(int memfd, struct str head, size_t room)
{
	off_t begin = (off_t)(room - head.len);
	size_t at = 0;

	while (at < head.len) {
		ssize_t n = pwrite(
		    memfd, head.p + at, head.len - at, begin + (off_t)at);

		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return lseek(memfd, begin, SEEK_SET) == begin;
}

/*
 * With keepConnection set, FCGX_Accept_r takes ipcFd as it is instead of
 * closing it; with a listener of -1 any failure in the head ends it at
 * once. Then it has closed the memfd, and the number may be another's by
 * now: it is not to be closed again.
 */
static bool
parse(FCGX_Request *r, int *memfd)
{
	struct err ignored;

	FCGX_InitRequest(r, -1, 0);
	r->ipcFd = *memfd;
	r->keepConnection = 1;
	if (FCGX_Accept_r(r) < 0) {
		*memfd = front_open_memfd(&ignored);
		return false;
	}
	r->ipcFd = -1;
	if (FCGX_GetError(r->in) == 0)
		return true;
	FCGX_Free(r, 0);
	return false;
}

/* A larger head has its file to itself, as long as it is read. */
static bool
read_head(FCGX_Request *request, int *memfd, struct str head)
{
	bool is_large = head.len > HEAD_ROOM;
	size_t room = is_large ? head.len : HEAD_ROOM;
	struct err ignored;
	bool parsed;

	if (*memfd < 0)
		*memfd = front_open_memfd(&ignored);
	if (*memfd < 0 || (is_large && ftruncate(*memfd, (off_t)room) < 0))
		return false;
	parsed = fill(*memfd, head, room) && parse(request, memfd);
	if (is_large && *memfd >= 0 && ftruncate(*memfd, HEAD_ROOM) < 0) {
		close(*memfd);
		*memfd = -1;
	}
	return parsed;
}

struct front *
front_new(
    int *memfd, struct str head, struct params *params, struct arena *arena)
{
	struct front *front = calloc(1, sizeof(*front));

	if (front == NULL || !read_head(&front->request, memfd, head)) {
		free(front);
		return NULL;
	}
	if (!params_read(params, front->request.envp, arena)) {
		front_free(front);
		return NULL;
	}
	return front;
}

/*
 * keepConnection: the connection is the caller's, whatever happens.
 * detached: should libfcgi close it after a failed write all the same, it
 * does not linger.
 */
bool
front_answer(struct front *front, int *fd, struct str response)
{
	FCGX_Request *r = &front->request;
	bool sent;

	r->ipcFd = *fd;
	r->keepConnection = 1;
	r->detached = 1;
	r->appStatus = 0;
	sent = FCGX_PutStr(response.p, (int)response.len, r->out) ==
	    (int)response.len;
	if (sent)
		FCGX_Finish_r(r);
	else
		FCGX_Free(r, 1);
	*fd = r->ipcFd;
	r->ipcFd = -1;
	return sent && *fd >= 0;
}

void
front_free(struct front *front)
{
	if (front == NULL)
		return;
	FCGX_Free(&front->request, 0);
	free(front);
}
