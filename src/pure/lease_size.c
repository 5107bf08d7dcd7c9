#include "pure/lease_size.h"

/* Of what remains: near the limit it ends with one unit at a time. */
#define SHARE 16
/* In less time too little happens to tell a rate. */
#define SHORTEST_US 1000
/* Whatever is asked: what is multiplied fits. */
#define SPENT_MAX INT64_C(1000000000)

int64_t
lease_size(int64_t spent, int64_t elapsed_us, int64_t remaining)
{
	int64_t size;

	if (elapsed_us < SHORTEST_US)
		elapsed_us = SHORTEST_US;
	if (spent > SPENT_MAX)
		spent = SPENT_MAX;
	if (spent < 0 || remaining < 0)
		return 0;
	size = spent * LEASE_SIZE_US / elapsed_us;
	return size < remaining / SHARE ? size : remaining / SHARE;
}
