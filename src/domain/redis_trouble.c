#include "domain/redis_trouble.h"

#include <string.h>

#define BACK_OFF BREAKER_ATTEMPT

const struct redis_trouble redis_trouble_timeout = { "",
	"Redis did not answer in time", BREAKER_CHECK };
const struct redis_trouble redis_trouble_broken = { "",
	"the connection to Redis broke", BREAKER_CHECK };
const struct redis_trouble redis_trouble_unreachable = { "",
	"Redis can not be reached", BREAKER_ATTEMPT };
const struct redis_trouble redis_trouble_password = { "",
	"Redis refused the user or password", BREAKER_ACCESS };

static const struct redis_trouble troubles[] = {
	{ "OOM", "Redis is out of memory (OOM): see its maxmemory", BACK_OFF },
	{ "LOADING", "Redis is loading its data (LOADING)", BACK_OFF },
	{ "READONLY", "Redis is a replica, not a master (READONLY)", BACK_OFF },
	{ "MASTERDOWN", "Redis has lost its master (MASTERDOWN)", BACK_OFF },
	{ "MISCONF", "Redis can not save and so refuses writes (MISCONF)",
	    BACK_OFF },
	{ "NOREPLICAS", "Redis has too few replicas (NOREPLICAS)", BACK_OFF },
	{ "BUSY", "Redis is busy running a script (BUSY)", BACK_OFF },
	{ "CLUSTERDOWN", "the Redis cluster is down (CLUSTERDOWN)", BACK_OFF },
	{ "MOVED", "Redis is part of a cluster (MOVED)", BACK_OFF },
	{ "ASK", "Redis is part of a cluster (ASK)", BACK_OFF },
	{ "CROSSSLOT", "Redis is part of a cluster (CROSSSLOT)", BACK_OFF },
	{ "TRYAGAIN", "the Redis cluster is moving keys (TRYAGAIN)", BACK_OFF },
	{ "NOAUTH", "Redis wants a password (NOAUTH)", BREAKER_ACCESS },
	{ "WRONGPASS", "Redis refused the user or password (WRONGPASS)",
	    BREAKER_ACCESS },
	{ "NOPERM", "Redis lacks a right for this user (NOPERM)",
	    BREAKER_ACCESS },
	{ "DENIED", "Redis is in protected mode (DENIED)", BREAKER_ACCESS },
};

static const struct redis_trouble unknown = { "",
	"Redis answered with an error", BACK_OFF };

static bool
is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* Older servers put their own words before what a script met. */
static bool
has_word(struct str text, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= text.len; i++)
		if (memcmp(text.p + i, word, len) == 0 &&
		    (i == 0 || !is_letter(text.p[i - 1])) &&
		    (i + len == text.len || !is_letter(text.p[i + len])))
			return true;
	return false;
}

const struct redis_trouble *
redis_trouble_of(struct str error)
{
	for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++)
		if (has_word(error, troubles[i].code))
			return &troubles[i];
	return &unknown;
}
