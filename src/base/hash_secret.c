#include "base/hash_secret.h"

#include <sys/random.h>

#include "base/clock.h"

#define ODD UINT64_C(0x9e3779b97f4a7c15)

void
hash_secret_draw(uint64_t *word, size_t n)
{
	/* So few bytes come all at once or not at all (getrandom(2)). */
	if (getrandom(word, n * sizeof(*word), GRND_NONBLOCK) ==
	    (ssize_t)(n * sizeof(*word)))
		return;
	for (size_t i = 0; i < n; i++)
		word[i] = ((uint64_t)clock_real_us() + i) * ODD ^
		    (uint64_t)(uintptr_t)&word[i];
}
