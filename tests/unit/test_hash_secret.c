/* Secrets of hash tables, with and without a system that gives random bytes. */
#include "base/hash_secret.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define WORDS 32

static bool gives_none;

/* In the C library's place. */
ssize_t
getrandom(void *bytes, size_t n, unsigned flags)
{
	if (gives_none) {
		errno = EAGAIN;
		return -1;
	}
	return syscall(SYS_getrandom, bytes, n, flags);
}

static void
expect_all_different(const uint64_t *word, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_true(word[i] != 0);
		for (size_t k = 0; k < i; k++)
			assert_true(word[i] != word[k]);
	}
}

/* Nor in another that is drawn at the same time. */
static void
test_no_word_comes_twice(void **state)
{
	(void)state;
	for (int none = 0; none <= 1; none++) {
		uint64_t word[2][WORDS + 1] = { { 0 } };

		gives_none = none == 1;
		hash_secret_draw(word[0], WORDS);
		hash_secret_draw(word[1], WORDS);
		for (int i = 0; i < 2; i++) {
			expect_all_different(word[i], WORDS);
			assert_true(word[i][WORDS] == 0);
			for (int k = 0; k < WORDS; k++)
				assert_true(word[0][k] != word[1][k]);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_word_comes_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
