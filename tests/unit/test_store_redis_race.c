/*
 * Combining, raced: 8 threads, 10,000 checks, by way of a proxy that now
 * and then keeps everything back for 300 ms, six times what a check waits.
 * Every thread's key has a limit of its own by which a reply meant for
 * another would show, and each counts what it was told.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "domain/redis_trouble.h"
#include "store_fixture.h"

#define THREADS  8
#define CHECKS   10000
#define STALL_MS 300
#define STALLS   8       /* at most */
#define SPACING  1000000 /* between the limits of two threads */
#define PAIRS    16

struct proxy {
	char path[96];
	const char *upstream;
	pthread_t thread;
	int listener;
	int stop; /* eventfd */
	uint64_t random;
	atomic_int stalls;
	atomic_bool calm;  /* no more of them */
	int fd[2 * PAIRS]; /* client, server; -1: free */
};

static struct redis_server server;
static struct proxy proxy;

static void
set_path(struct sockaddr_un *a, const char *path)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	snprintf(a->sun_path, sizeof(a->sun_path), "%s", path);
}

static void
proxy_close(struct proxy *p, size_t i)
{
	close(p->fd[i & ~(size_t)1]);
	close(p->fd[i | 1]);
	p->fd[i & ~(size_t)1] = p->fd[i | 1] = -1;
}

static void
proxy_accept(struct proxy *p)
{
	int client = accept(p->listener, NULL, NULL);
	struct sockaddr_un a;

	set_path(&a, p->upstream);
	for (size_t i = 0; i < 2 * PAIRS; i += 2) {
		if (p->fd[i] >= 0)
			continue;
		p->fd[i] = client;
		p->fd[i + 1] = socket(AF_UNIX, SOCK_STREAM, 0);
		if (connect(p->fd[i + 1], (struct sockaddr *)&a, sizeof(a)))
			proxy_close(p, i);
		return;
	}
	close(client);
}

/* False: it is to stop. */
static bool
proxy_stall(struct proxy *p)
{
	struct pollfd wait = { p->stop, POLLIN, 0 };

	p->random = p->random * 6364136223846793005U + 1442695040888963407U;
	if ((p->random >> 33) % 100 != 0 || atomic_load(&p->calm) ||
	    atomic_load(&p->stalls) == STALLS)
		return true;
	atomic_fetch_add(&p->stalls, 1);
	return poll(&wait, 1, STALL_MS) == 0;
}

/* Passes on what came from fd[i]; false: it is to stop. */
static bool
proxy_pass(struct proxy *p, size_t i)
{
	char bytes[65536];
	ssize_t n = read(p->fd[i], bytes, sizeof(bytes));

	if (i % 2 == 1 && !proxy_stall(p))
		return false;
	if (n <= 0 || write(p->fd[i ^ 1], bytes, (size_t)n) != n)
		proxy_close(p, i);
	return true;
}

static void *
proxy_run(void *context)
{
	struct proxy *p = context;
	struct pollfd fds[2 * PAIRS + 2];
	bool go_on = true;

	while (go_on) {
		for (size_t i = 0; i < 2 * PAIRS; i++)
			fds[i] = (struct pollfd){ p->fd[i], POLLIN, 0 };
		fds[2 * PAIRS] = (struct pollfd){ p->listener, POLLIN, 0 };
		fds[2 * PAIRS + 1] = (struct pollfd){ p->stop, POLLIN, 0 };
		poll(fds, 2 * PAIRS + 2, -1);
		if (fds[2 * PAIRS].revents != 0)
			proxy_accept(p);
		for (size_t i = 0; go_on && i < 2 * PAIRS; i++)
			if (fds[i].revents != 0 && p->fd[i] == fds[i].fd)
				go_on = proxy_pass(p, i);
		go_on = go_on && fds[2 * PAIRS + 1].revents == 0;
	}
	return NULL;
}

static void
proxy_start(struct proxy *p, const struct redis_server *s)
{
	struct sockaddr_un a;

	snprintf(p->path, sizeof(p->path), "%s/proxy", s->directory);
	p->upstream = s->path;
	p->random = (uint64_t)clock_real_us();
	printf("SEED=%llu\n", (unsigned long long)p->random);
	for (size_t i = 0; i < 2 * PAIRS; i++)
		p->fd[i] = -1;
	p->stop = eventfd(0, 0);
	p->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	set_path(&a, p->path);
	assert_int_equal(
	    bind(p->listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(p->listener, 64), 0);
	assert_int_equal(pthread_create(&p->thread, NULL, proxy_run, p), 0);
}

static void
proxy_stop(struct proxy *p)
{
	uint64_t one = 1;

	assert_int_equal(write(p->stop, &one, sizeof(one)), sizeof(one));
	pthread_join(p->thread, NULL);
	for (size_t i = 0; i < 2 * PAIRS; i++)
		if (p->fd[i] >= 0)
			close(p->fd[i]);
	close(p->listener);
	close(p->stop);
	unlink(p->path);
}

struct asker {
	struct fixture *f;
	pthread_t thread;
	int number;
	int answered;
	int unsure;   /* sent perhaps, and counted perhaps */
	int late;     /* waits longer than timeout + 5 ms */
	int64_t used; /* by the last answer */
	const char *fault;
};

static struct store_check
own_check(const struct asker *a, char key[16])
{
	struct store_check c = { 0 };

	snprintf(key, 16, "k%d", a->number);
	c.key = str_of(key);
	c.check = (struct check){
		.algorithm = ALGORITHM_FIXED_WINDOW,
		.align = ALIGN_FIRST,
		.count = SPACING * (a->number + 1),
		.period_us = INT64_C(86400000000),
		.burst = 1,
		.cost = 1,
	};
	return c;
}

/* One answer; what is wrong with it is kept for the main thread. */
static void
judge(struct asker *a, const struct store_check *c,
    const struct store_answer *answer)
{
	int64_t used = c->check.count - answer->verdict[0].remaining;

	if (answer->wait_us > TIMEOUT_US + 5000)
		a->late++;
	if (answer->status == STORE_OUT) {
		if (answer->reason != redis_trouble_unreachable.reason)
			a->unsure++;
		return;
	}
	a->answered++;
	if (answer->verdict[0].kind != VERDICT_ALLOWED)
		a->fault = "refused";
	else if (used <= 0 || used > CHECKS)
		a->fault = "another's reply";
	else if (used <= a->used)
		a->fault = "an older reply";
	a->used = used;
}

static void *
ask_on(void *context)
{
	struct asker *a = context;
	char key[16];
	struct store_check c = own_check(a, key);
	struct store_question q = { .check = &c, .n = 1 };

	while (a->answered + a->unsure < CHECKS / THREADS) {
		struct store_answer answer;

		a->f->store->ops->ask(a->f->store, &q, &answer);
		judge(a, &c, &answer);
		if (answer.status == STORE_OUT && !await(a->f, true)) {
			a->fault = "it did not come back";
			break;
		}
	}
	return NULL;
}

static void
race(unsigned connections)
{
	struct store_redis_settings settings = settings_for(proxy.path);
	struct asker asker[THREADS] = { 0 };
	struct fixture f;
	int late = 0;

	settings.connections = connections;
	settings.breaker_failures = 3;
	settings.breaker_cooldown_us = 50000;
	atomic_store(&proxy.calm, false);
	atomic_store(&proxy.stalls, 0);
	assert_true(redis_server_command(&server, "FLUSHALL"));
	begin(&f, &settings);
	assert_true(await(&f, true));
	for (int i = 0; i < THREADS; i++) {
		asker[i].f = &f;
		asker[i].number = i;
		assert_int_equal(
		    pthread_create(&asker[i].thread, NULL, ask_on, &asker[i]),
		    0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(asker[i].thread, NULL);
	atomic_store(&proxy.calm, true);
	for (int i = 0; i < THREADS; i++) {
		int64_t before = asker[i].answered + asker[i].unsure;
		char key[16];
		struct store_check c = own_check(&asker[i], key);
		struct store_question q = { .check = &c, .n = 1 };
		struct store_answer answer;

		if (asker[i].fault != NULL)
			fail_msg("%s", asker[i].fault);
		assert_true(await(&f, true));
		/* None lost: each answer stands for one unit in Redis. */
		f.store->ops->ask(f.store, &q, &answer);
		assert_int_equal(answer.status, STORE_ANSWERED);
		judge(&asker[i], &c, &answer);
		assert_null(asker[i].fault);
		assert_in_range(asker[i].used, asker[i].answered, before + 1);
		late += asker[i].late;
	}
	printf("%d stalls, %d late\n", proxy.stalls, late);
	assert_true(proxy.stalls > 0);
	assert_true(is_slow() || late <= CHECKS / 100);
	end(&f);
}

static void
test_one_link(void **context)
{
	(void)context;
	race(1);
}

static void
test_three_links(void **context)
{
	(void)context;
	race(3);
}

static int
set_up(void **context)
{
	(void)context;
	signal(SIGPIPE, SIG_IGN);
	redis_server_init(&server);
	proxy_start(&proxy, &server);
	return 0;
}

static int
tear_down(void **context)
{
	(void)context;
	proxy_stop(&proxy);
	redis_server_release(&server);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_link),
		cmocka_unit_test(test_three_links),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
