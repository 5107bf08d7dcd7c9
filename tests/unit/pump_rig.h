/*
 * pump_rig: a pump between an application and a client that are played in
 * its callbacks, by the other ends of their sockets or pipes.
 */
#ifndef SLUICE_TESTS_PUMP_RIG_H
#define SLUICE_TESTS_PUMP_RIG_H

#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/pump.h"
#include "wire.h"

#define MS         INT64_C(1000)
#define LONG_US    10000000
#define SHORT_US   (30 * MS)
#define GIVE_UP_US 3000000 /* the test's own patience */

/* Both ends of everything, and what the callbacks were given. */
struct rig {
	struct pump pump;
	int back[2];  /* out (and in); the application's end */
	int front[2]; /* the pump's; the client's */
	struct str body;
	size_t piece; /* bytes a refill */
	struct buf taken;
	struct buf complained;
	size_t head_bytes; /* the head is there when so many came */
	size_t whole_bytes;
	/* Called in take, to play the application and the client on. */
	void (*play)(struct rig *rig);
	/* The same in complain, with these. */
	void (*play_complaint)(struct rig *rig);
	int complaints;
	int *to_close;
	int64_t begun_us;
};

static inline bool
refill(void *context, struct buf *up)
{
	struct rig *rig = context;
	size_t n = rig->piece < rig->body.len ? rig->piece : rig->body.len;

	buf_add(up, rig->body.p, n);
	rig->body.p += n;
	rig->body.len -= n;
	return rig->body.len > 0;
}

static inline enum pump_verdict
take(void *context, struct str bytes, struct buf *down)
{
	struct rig *rig = context;

	buf_add_str(&rig->taken, bytes);
	if (rig->play != NULL)
		rig->play(rig);
	if (clock_mono_us() - rig->begun_us > GIVE_UP_US)
		return PUMP_BROKEN;
	if (memchr(bytes.p, '!', bytes.len) != NULL)
		return PUMP_BROKEN;
	if (rig->taken.len < rig->head_bytes)
		return PUMP_HEAD_MORE;
	buf_add_str(down, bytes);
	return rig->taken.len >= rig->whole_bytes ? PUMP_WHOLE : PUMP_GO_ON;
}

static inline void
complain(void *context, struct str bytes)
{
	struct rig *rig = context;

	buf_add_str(&rig->complained, bytes);
	if (rig->play_complaint != NULL)
		rig->play_complaint(rig);
}

static inline void
open_rig(struct rig *rig)
{
	static const struct pump_ops ops = { refill, take, NULL, complain };
	struct pump *p = &rig->pump;

	*rig = (struct rig){ .piece = 1000, .whole_bytes = SIZE_MAX };
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, rig->back), 0);
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, rig->front), 0);
	pump_init(p, &ops, rig);
	p->in = p->out = rig->back[0];
	p->front = rig->front[0];
	p->send_timeout_us = LONG_US;
	p->first_byte_timeout_us = LONG_US;
	p->idle_timeout_us = LONG_US;
	rig->begun_us = clock_mono_us();
}

static inline void
close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline void
close_rig(struct rig *rig)
{
	pump_release(&rig->pump);
	buf_release(&rig->taken);
	buf_release(&rig->complained);
	for (int i = 0; i < 2; i++) {
		close_one(&rig->back[i]);
		close_one(&rig->front[i]);
	}
}

static inline void
put(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* What the client has by now. */
static inline void
expect_client(struct rig *rig, const char *expected)
{
	char bytes[1000];
	ssize_t n = recv(rig->front[1], bytes, sizeof(bytes), MSG_DONTWAIT);

	expect_str(
	    (struct str){ bytes, n < 0 ? 0 : (size_t)n }, str_of(expected));
}

/* It took at least that long, and not much longer than it had to. */
static inline void
expect_time(const struct rig *rig, int64_t least_us)
{
	assert_in_range(clock_mono_us() - rig->begun_us, least_us, GIVE_UP_US);
}

#endif
