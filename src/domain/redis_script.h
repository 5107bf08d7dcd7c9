/*
 * redis_script: what the scripts in lua/ are given and what they answer.
 * No state; any thread.
 */
#ifndef SLUICE_REDIS_SCRIPT_H
#define SLUICE_REDIS_SCRIPT_H

#include "base/buf.h"
#include "domain/redis_trouble.h"
#include "domain/store.h"
#include "io/redis_link.h"

enum redis_script_name {
	REDIS_SCRIPT_CHECK,
	REDIS_SCRIPT_SETTLE,
	REDIS_SCRIPT_RENEW, /* slots; of checks only key and slot matter */
};
#define REDIS_SCRIPTS 3

struct redis_script {
	struct str text;
	struct str sha1; /* 40 hex digits */
};

const struct redis_script *redis_script(enum redis_script_name name);
/* drift's, which is sent with each link and asked no questions. */
const struct redis_script *redis_script_fingerprint(void);

/*
 * Adds a question to the argument, and the keys that go with it to keys:
 * each as two bytes, its length, and the name. Returns how many. To settle it
 * is to charge each check's cost, or to give it back where it is below 0;
 * taken_us of the checks is for that alone.
 */
size_t redis_script_put(struct buf *argument, struct buf *keys,
    enum redis_script_name name, const struct store_question *q);
/* Takes the next key off what is left of them. */
struct str redis_script_next_key(struct str *keys);

/* Where in the reply of a check the next question's part stands. */
struct redis_script_reader {
	const struct redis_reply *reply;
	size_t at;
	int64_t now_us;
};

/* False when this is no reply of the script at all. */
bool redis_script_read_begin(
    struct redis_script_reader *r, const struct redis_reply *reply);
/* What the figures of a check can not go beyond, whoever answers. */
struct redis_script_bounds {
	int64_t limit; /* where the reply names none */
	int64_t delay_us;
	int64_t penalty_us; /* 0: there is none, and no figure of it */
	int64_t taken;      /* 0: it is no lease, and no figure of it */
};

struct redis_script_bounds redis_script_bounds_of(const struct check *check);
/*
 * The verdicts of the next question, which had n checks with these bounds.
 * Sets status, verdict, taken_us and reason. NULL, or what is wrong with
 * the server if that was its answer; malformed: *ok is false.
 */
const struct redis_trouble *redis_script_read(struct redis_script_reader *r,
    const struct redis_script_bounds *bounds, size_t n,
    struct store_answer *answer, bool *ok);

/* Of n settled checks: the units cut off each, -1 for one that was lost. */
bool redis_script_read_settled(
    const struct redis_reply *reply, int64_t *cut, size_t n);

#endif
