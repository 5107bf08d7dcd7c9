/*
 * checks: how many checks a second one Redis carries, asked as the gateway
 * asks: its script, its encoder, a key for each of 1,000 clients.
 *
 * Usage: checks SOCKET sliding_window|fixed_window A_CALL SECONDS
 * Prints checks a second. A_CALL checks go with each EVALSHA; 32 checks are
 * written at a time, and two such writes are under way, so that the server
 * never waits. Exit 1: an answer was none, or none came in time.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "domain/redis_script.h"

#define CLIENTS   1000U
#define A_WRITE   32U
#define ARGUMENTS (4 + A_WRITE)
#define TIMEOUT_S 5
#define PERIOD_US INT64_C(3600000000)
#define PLENTY    INT64_C(1000000)

/* A call, encoded once. */
struct call {
	char *command;
	size_t len;
};

static double
seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
put_client(struct buf *argument, struct buf *keys, enum algorithm algorithm,
    unsigned client)
{
	char key[64];
	int len = snprintf(key, sizeof(key), "sluice:{10.0.%u.%u}:bench:%s",
	    client / 250, client % 250,
	    algorithm == ALGORITHM_FIXED_WINDOW ? "f3600000" : "s3600000");
	struct store_check check = { .key = { key, (size_t)len },
		.check = { .algorithm = algorithm,
		    .count = PLENTY,
		    .period_us = PERIOD_US,
		    .cost = 1,
		    .offset_us = client * INT64_C(1000000) } };
	struct store_question question = { .check = &check, .n = 1 };

	redis_script_put(argument, keys, REDIS_SCRIPT_CHECK, &question);
}

static bool
encode(struct call *call, enum algorithm algorithm, unsigned first,
    unsigned a_call)
{
	const struct redis_script *script = redis_script(REDIS_SCRIPT_CHECK);
	const char *argv[ARGUMENTS] = { "EVALSHA", script->sha1.p };
	size_t len[ARGUMENTS] = { 7, script->sha1.len };
	struct buf argument, keys;
	struct str left;
	char number[16];

	buf_init(&argument);
	buf_init(&keys);
	for (unsigned i = 0; i < a_call; i++)
		put_client(&argument, &keys, algorithm, (first + i) % CLIENTS);
	argv[2] = number;
	len[2] = (size_t)snprintf(number, sizeof(number), "%u", a_call);
	left = buf_str(&keys);
	for (unsigned i = 0; i < a_call; i++) {
		struct str key = redis_script_next_key(&left);

		argv[3 + i] = key.p;
		len[3 + i] = key.len;
	}
	argv[3 + a_call] = argument.p;
	len[3 + a_call] = argument.len;
	long long size = redisFormatCommandArgv(
	    &call->command, (int)(4 + a_call), argv, len);
	call->len = size < 0 ? 0 : (size_t)size;
	buf_release(&argument);
	buf_release(&keys);
	return size >= 0;
}

/* Is it the answer to so many checks? */
static bool
receive(redisContext *redis, unsigned a_call)
{
	redisReply *reply = NULL;
	bool ok;

	if (redisGetReply(redis, (void **)&reply) != REDIS_OK) {
		fprintf(stderr, "checks: %s\n", redis->errstr);
		return false;
	}
	ok = reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 + a_call;
	for (size_t i = 0; ok && i < reply->elements; i++)
		ok = reply->element[i]->type == REDIS_REPLY_STRING;
	if (!ok)
		fprintf(stderr, "checks: unexpected answer: %s\n",
		    reply->type == REDIS_REPLY_ERROR ? reply->str : "");
	freeReplyObject(reply);
	return ok;
}

/* Checks a second, or below 0. */
static double
measure(redisContext *redis, const struct call *call, unsigned a_call,
    double seconds)
{
	unsigned calls = A_WRITE / a_call, next = 0, waiting = 0;
	unsigned answered = 0;
	double start = seconds_now(), now = start;

	while (now < start + seconds || waiting > 0) {
		while (waiting < 2 * calls && now < start + seconds) {
			for (unsigned i = 0; i < calls; i++) {
				const struct call *c = &call[next];

				next = (next + 1) % CLIENTS;
				redisAppendFormattedCommand(
				    redis, c->command, c->len);
			}
			waiting += calls;
			for (int done = 0; !done;)
				if (redisBufferWrite(redis, &done) != REDIS_OK)
					return -1;
		}
		for (unsigned i = 0; i < calls; i++, waiting--)
			if (!receive(redis, a_call))
				return -1;
		answered += A_WRITE;
		now = seconds_now();
	}
	return answered / (now - start);
}

static redisContext *
open_redis(const char *path)
{
	struct timeval timeout = { TIMEOUT_S, 0 };
	redisContext *redis = redisConnectUnixWithTimeout(path, timeout);
	redisReply *reply;

	if (redis == NULL || redis->err != 0 ||
	    redisSetTimeout(redis, timeout) != REDIS_OK)
		return NULL;
	reply = redisCommand(
	    redis, "SCRIPT LOAD %s", redis_script(REDIS_SCRIPT_CHECK)->text.p);
	if (reply == NULL || reply->type != REDIS_REPLY_STRING)
		return NULL;
	freeReplyObject(reply);
	return redis;
}

int
main(int argc, char **argv)
{
	static struct call call[CLIENTS];
	unsigned a_call = argc == 5 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	enum algorithm algorithm = ALGORITHM_SLIDING_WINDOW;
	redisContext *redis;
	double rate;

	if (a_call < 1 || a_call > A_WRITE || A_WRITE % a_call != 0) {
		fputs(
		    "usage: checks SOCKET ALGORITHM A_CALL SECONDS\n", stderr);
		return 64;
	}
	if (str_eq(str_of(argv[2]), STR("fixed_window")))
		algorithm = ALGORITHM_FIXED_WINDOW;
	for (unsigned i = 0; i < CLIENTS; i++)
		if (!encode(&call[i], algorithm, i * a_call, a_call))
			return 1;
	redis = open_redis(argv[1]);
	if (redis == NULL) {
		fprintf(stderr, "checks: %s does not answer\n", argv[1]);
		return 1;
	}
	rate = measure(redis, call, a_call, strtod(argv[4], NULL));
	if (rate < 0)
		return 1;
	printf("%.0f\n", rate);
	redisFree(redis);
	return 0;
}
