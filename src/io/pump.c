#include "io/pump.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "io/net.h"

#define READ_BYTES 65536
/* A program that has ended while a child of its holds its output open. */
#define EXIT_GRACE_US 300000
/* Then time, client and `stop` are looked at, though nothing stands still. */
#define MOVES_IN_A_ROW 32

enum step { STEP_NOTHING, STEP_MOVED, STEP_ENDED };

void
pump_init(struct pump *p, const struct pump_ops *ops, void *context)
{
	*p = (struct pump){
		.ops = ops,
		.context = context,
		.in = -1,
		.out = -1,
		.errors = -1,
		.exited = -1,
		.front = -1,
		.stop = -1,
	};
}

void
pump_release(struct pump *p)
{
	buf_release(&p->up);
	buf_release(&p->down);
}

static void
stop_sending(struct pump *p)
{
	if (p->close_in && p->in >= 0)
		close(p->in);
	p->in = -1;
	p->no_more_up = true;
	p->heard_us = clock_mono_us();
	buf_release(&p->up);
	p->up_at = 0;
}

/* A socket without SIGPIPE, or a non-blocking pipe (SIGPIPE is ignored). */
static ssize_t
write_some(int fd, bool is_pipe, const char *bytes, size_t len)
{
	if (is_pipe)
		return write(fd, bytes, len);
	return send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t
read_some(int fd, bool is_pipe, char *bytes, size_t len)
{
	if (is_pipe)
		return read(fd, bytes, len);
	return recv(fd, bytes, len, MSG_DONTWAIT);
}

static bool
would_block(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static int64_t
earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t
later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static bool
client_is_slow(const struct pump *p)
{
	return p->down_at < p->down.len;
}

/*
 * A backend that stops reading (EPIPE) may still answer: not an error.
 */
static enum step
push_up(struct pump *p)
{
	ssize_t n;

	if (p->in < 0)
		return STEP_NOTHING;
	if (p->up_at == p->up.len) {
		buf_reset(&p->up);
		p->up_at = 0;
		if (!p->no_more_up)
			p->no_more_up = !p->ops->refill(p->context, &p->up);
		if (p->up.failed)
			return STEP_ENDED;
		if (p->up.len == 0) {
			p->all_up = true;
			stop_sending(p);
			return STEP_MOVED;
		}
	}
	n = write_some(
	    p->in, p->pipes, p->up.p + p->up_at, p->up.len - p->up_at);
	if (n < 0) {
		p->can_up = !would_block();
		if (p->can_up)
			stop_sending(p);
		return STEP_NOTHING;
	}
	p->up_at += (size_t)n;
	p->up_bytes += (size_t)n;
	p->up_since_us = clock_mono_us();
	p->all_up = p->up_at == p->up.len && p->no_more_up;
	if (p->all_up)
		stop_sending(p);
	return STEP_MOVED;
}

/* STEP_ENDED: the client is gone. */
static enum step
push_down(struct pump *p)
{
	ssize_t n;

	if (p->down_at == p->down.len)
		return STEP_NOTHING;
	n = write_some(
	    p->front, false, p->down.p + p->down_at, p->down.len - p->down_at);
	if (n < 0) {
		p->can_down = false;
		return would_block() ? STEP_NOTHING : STEP_ENDED;
	}
	p->down_at += (size_t)n;
	if (!p->begun && p->ops->begun != NULL)
		p->ops->begun(p->context);
	p->begun = true;
	p->down_since_us = clock_mono_us();
	if (p->down_at == p->down.len) {
		buf_reset(&p->down);
		p->down_at = 0;
		/* Waiting for the client was no silence of the backend. */
		p->heard_us = p->down_since_us;
	}
	return STEP_MOVED;
}

/* false: nothing is there. */
static bool
read_errors(struct pump *p)
{
	UNINITIALIZED char bytes[4096];
	ssize_t n;

	if (p->errors < 0)
		return false;
	n = read_some(p->errors, true, bytes, sizeof(bytes));
	if (n > 0)
		p->ops->complain(p->context, (struct str){ bytes, (size_t)n });
	else if (n == 0 || !would_block())
		p->errors = -1;
	return n > 0;
}

static enum step
pull(struct pump *p, enum pump_end *end)
{
	UNINITIALIZED char bytes[READ_BYTES];
	ssize_t n = read_some(p->out, p->pipes, bytes, sizeof(bytes));
	int64_t now_us;

	/* A short read has emptied it; more will be told by poll. */
	p->can_pull = n == READ_BYTES;
	if (n < 0 && would_block())
		return STEP_NOTHING;
	if (n <= 0) {
		*end = n == 0 || errno == ECONNRESET ? PUMP_END_EOF
						     : PUMP_END_BROKEN;
		return STEP_ENDED;
	}
	now_us = clock_mono_us();
	if (!client_is_slow(p))
		p->down_since_us = now_us;
	switch (p->ops->take(
	    p->context, (struct str){ bytes, (size_t)n }, &p->down)) {
	case PUMP_HEAD_MORE:
		return STEP_MOVED;
	case PUMP_GO_ON:
		p->have_head = true;
		p->heard_us = now_us;
		if (!p->down.failed)
			return STEP_MOVED;
		break;
	case PUMP_WHOLE:
		*end = PUMP_END_WHOLE;
		return STEP_ENDED;
	case PUMP_BROKEN:
		break;
	}
	*end = PUMP_END_BROKEN;
	return STEP_ENDED;
}

/* The first-byte clock starts when the body is through. */
static int64_t
next_deadline(const struct pump *p)
{
	int64_t at = INT64_MAX;

	if (client_is_slow(p))
		at = p->down_since_us + p->idle_timeout_us;
	else if (p->exited_us != 0)
		at = later(p->heard_us, p->exited_us) + EXIT_GRACE_US;
	else if (p->have_head)
		at = p->heard_us + p->idle_timeout_us;
	else if (p->in < 0)
		at = p->heard_us + p->first_byte_timeout_us;
	if (p->in >= 0)
		at = earlier(at, p->up_since_us + p->send_timeout_us);
	if (p->deadline_us != 0)
		at = earlier(at, p->deadline_us);
	return at;
}

/*
 * What no movement puts off: the total, and until the head is there its
 * timeout. Who trickles or never pauses does not hold a worker for ever.
 */
static int64_t
final_deadline(const struct pump *p)
{
	int64_t at = p->deadline_us != 0 ? p->deadline_us : INT64_MAX;

	if (p->have_head || p->exited_us != 0 || client_is_slow(p))
		return at;
	if (p->in >= 0)
		return earlier(at, p->up_since_us + p->send_timeout_us);
	return earlier(at, p->heard_us + p->first_byte_timeout_us);
}

static enum pump_end
end_of_patience(const struct pump *p)
{
	if (p->exited_us != 0 && !client_is_slow(p))
		return PUMP_END_EOF;
	return p->have_head ? PUMP_END_STALLED : PUMP_END_NO_HEAD;
}

static void
watch(struct pollfd *slot, int fd, short events)
{
	*slot = (struct pollfd){ .fd = fd, .events = events };
}

/* Waits for something to move; STEP_ENDED: time or client is up. */
static enum step
wait_for_more(struct pump *p, enum pump_end *end)
{
	struct pollfd fds[6];
	bool slow = client_is_slow(p);
	int n;

	if (clock_mono_us() >= final_deadline(p)) {
		*end = end_of_patience(p);
		return STEP_ENDED;
	}
	watch(&fds[0], slow ? -1 : p->out, POLLIN);
	watch(&fds[1], p->in, POLLOUT);
	watch(&fds[2], p->front, (short)(POLLRDHUP | (slow ? POLLOUT : 0)));
	watch(&fds[3], p->errors, POLLIN);
	watch(&fds[4], p->exited_us != 0 ? -1 : p->exited, POLLIN);
	watch(&fds[5], p->stop, POLLIN);
	n = poll(fds, 6, clock_poll_ms(next_deadline(p)));
	if (n <= 0) {
		if (n < 0 || clock_mono_us() < next_deadline(p))
			return STEP_MOVED;
		*end = end_of_patience(p);
		return STEP_ENDED;
	}
	if ((fds[2].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0 ||
	    fds[5].revents != 0) {
		*end = PUMP_END_CLIENT_GONE;
		return STEP_ENDED;
	}
	if (fds[3].revents != 0)
		read_errors(p);
	if (fds[4].revents != 0)
		p->exited_us = clock_mono_us();
	p->can_pull = fds[0].revents != 0;
	p->can_up = fds[1].revents != 0;
	p->can_down = fds[2].revents != 0;
	return STEP_MOVED;
}

/* Moves whatever is known to move; STEP_NOTHING: poll. */
static enum step
move_some(struct pump *p, enum pump_end *end)
{
	enum step up = p->can_up ? push_up(p) : STEP_NOTHING;
	enum step pulled = STEP_NOTHING;
	enum step down = STEP_NOTHING;

	/* Half a body must not be taken for a whole one. */
	if (up == STEP_ENDED) {
		*end = PUMP_END_BROKEN;
		return STEP_ENDED;
	}
	if (p->can_pull && !client_is_slow(p))
		pulled = pull(p, end);
	if (pulled == STEP_ENDED)
		return STEP_ENDED;
	if (pulled == STEP_MOVED)
		p->can_down = true;
	if (p->can_down)
		down = push_down(p);
	if (down == STEP_ENDED) {
		*end = PUMP_END_CLIENT_GONE;
		return STEP_ENDED;
	}
	return up == STEP_MOVED || pulled == STEP_MOVED || down == STEP_MOVED
	    ? STEP_MOVED
	    : STEP_NOTHING;
}

enum pump_end
pump_run(struct pump *p)
{
	enum pump_end end = PUMP_END_EOF;

	p->up_since_us = p->down_since_us = p->heard_us = clock_mono_us();
	p->can_up = true;
	for (unsigned moves = 1;; moves++) {
		enum step step = move_some(p, &end);

		if (step == STEP_NOTHING ||
		    (step == STEP_MOVED && moves % MOVES_IN_A_ROW == 0))
			step = wait_for_more(p, &end);
		if (step == STEP_ENDED)
			break;
	}
	/* What it said last is there already: at most a pipe full. */
	for (int i = 0; i < 16 && read_errors(p); i++)
		;
	return end;
}

bool
pump_flush(struct pump *p)
{
	p->down_since_us = clock_mono_us();
	while (client_is_slow(p)) {
		enum step step = push_down(p);

		if (step == STEP_ENDED)
			return false;
		if (step == STEP_NOTHING &&
		    !net_wait(p->front, POLLOUT,
			p->down_since_us + p->idle_timeout_us))
			return false;
	}
	return true;
}
