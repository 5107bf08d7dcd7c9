/* A body in memory, in a file, and against what all may hold together. */
#include "io/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "draw.h"
#include "wire.h"

static char directory[] = "/tmp/sluice-spool-XXXXXX";

static struct spool_limits
limits(uint64_t memory, uint64_t total)
{
	return (struct spool_limits){ memory, total, directory };
}

static void
expect_content(const struct spool *s, struct str expected)
{
	char bytes[4096];
	size_t at = 0;

	assert_int_equal(s->bytes, expected.len);
	while (at < expected.len) {
		ssize_t n = spool_read(s, at, bytes, sizeof(bytes));

		assert_in_range(n, 1, sizeof(bytes));
		assert_in_range(n, 1, expected.len - at);
		assert_memory_equal(bytes, expected.p + at, (size_t)n);
		at += (size_t)n;
	}
	assert_int_equal(spool_read(s, at, bytes, sizeof(bytes)), 0);
	assert_int_equal(spool_read(s, at + 1, bytes, sizeof(bytes)), 0);
	assert_int_equal(spool_read(s, UINT64_MAX, bytes, 1), 0);
}

/* spool_memory is the most that stays in memory. */
static void
test_memory_boundary(void **state)
{
	(void)state;
	for (size_t first = 0; first <= 11; first++)
		for (size_t second = 0; second <= 11; second++) {
			struct spool_limits l = limits(10, 1000);
			bool file = first + second > 10;
			struct spool s;

			spool_init(&s);
			assert_int_equal(
			    spool_add(&s, &l, "0123456789a", first), SPOOL_OK);
			assert_int_equal(
			    spool_add(&s, &l, "bcdefghijkl", second), SPOOL_OK);
			assert_int_equal(s.fd >= 0, file);
			if (file)
				assert_null(s.memory.p);
			assert_int_equal(s.bytes, first + second);
			spool_release(&s);
			assert_int_equal(s.fd, -1);
			assert_int_equal(s.bytes, 0);
		}
}

static void
test_empty(void **state)
{
	struct spool s;
	char byte;

	(void)state;
	spool_init(&s);
	assert_int_equal(spool_read(&s, 0, &byte, 1), 0);
	spool_release(&s);
}

/* The file has no name, is nobody else's and is not inherited. */
static void
test_file(void **state)
{
	struct spool_limits l = limits(0, 1000);
	struct spool s;
	struct dirent *entry;
	DIR *dir;

	(void)state;
	spool_init(&s);
	assert_int_equal(spool_add(&s, &l, "abc", 3), SPOOL_OK);
	assert_in_range(s.fd, 0, 1 << 20);
	assert_true((fcntl(s.fd, F_GETFD) & FD_CLOEXEC) != 0);
	dir = opendir(directory);
	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL)
		assert_int_equal(entry->d_name[0], '.');
	closedir(dir);
	assert_int_equal(spool_add(&s, &l, "def", 3), SPOOL_OK);
	expect_content(&s, STR("abcdef"));
	spool_release(&s);
	spool_release(&s);
}

/* spool_total from both sides; memory counts as a file does. */
static void
test_total(void **state)
{
	struct spool_limits l = limits(4, 10);
	struct spool a, b;

	(void)state;
	for (int round = 0; round < 3; round++) {
		spool_init(&a);
		spool_init(&b);
		assert_int_equal(spool_add(&a, &l, "0123456", 7), SPOOL_OK);
		assert_int_equal(spool_add(&b, &l, "0123", 4), SPOOL_FULL);
		expect_content(&b, STR(""));
		assert_int_equal(spool_add(&b, &l, "012", 3), SPOOL_OK);
		assert_int_equal(spool_add(&a, &l, "7", 1), SPOOL_FULL);
		/* Who was refused still has what he had. */
		expect_content(&a, STR("0123456"));
		spool_release(&b);
		assert_int_equal(spool_add(&a, &l, "789", 3), SPOOL_OK);
		expect_content(&a, STR("0123456789"));
		spool_release(&a);
	}
}

/* What could not be kept is not counted. */
static void
test_failure(void **state)
{
	struct spool_limits l = limits(2, 3);
	struct spool s;

	(void)state;
	l.directory = "/nowhere/at/all";
	for (int round = 0; round < 5; round++) {
		spool_init(&s);
		assert_int_equal(spool_add(&s, &l, "01", 2), SPOOL_OK);
		assert_int_equal(spool_add(&s, &l, "2", 1), SPOOL_FAILED);
		assert_int_equal(errno, ENOENT);
		spool_release(&s);
	}
}

/* A disk that is full, by way of the largest file there may be. */
static void
test_disk_full(void **state)
{
	struct spool_limits l = limits(2000, 4096);
	struct rlimit old, small;
	char bytes[1000] = "";
	struct spool s;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	for (rlim_t size = 1500; size <= 2500; size += 1000) {
		small = (struct rlimit){ size, old.rlim_max };
		spool_init(&s);
		assert_int_equal(spool_add(&s, &l, bytes, 1000), SPOOL_OK);
		assert_int_equal(spool_add(&s, &l, bytes, 1000), SPOOL_OK);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		assert_int_equal(spool_add(&s, &l, bytes, 1000), SPOOL_FAILED);
		assert_int_equal(errno, EFBIG);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		assert_int_equal(s.bytes, 2000);
		spool_release(&s);
	}
	/* Nothing of it has stayed in the total. */
	spool_init(&s);
	for (int i = 0; i < 4; i++)
		assert_int_equal(spool_add(&s, &l, bytes, 1000), SPOOL_OK);
	spool_release(&s);
}

static void *
spool_and_release(void *context)
{
	struct spool_limits l = limits(64, 1 << 20);

	(void)context;
	for (int i = 0; i < 300; i++) {
		struct spool s;

		spool_init(&s);
		for (int k = 0; k < 5; k++)
			spool_add(&s, &l, "0123456789abcdef01234", 21);
		expect_content(&s,
		    STR("0123456789abcdef012340123456789abcdef01234"
			"0123456789abcdef012340123456789abcdef01234"
			"0123456789abcdef01234"));
		spool_release(&s);
	}
	return NULL;
}

/* The total is shared, and ends where it began. */
static void
test_threads(void **state)
{
	struct spool_limits l = limits(64, 10);
	pthread_t thread[4];
	struct spool s;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(
		    pthread_create(&thread[i], NULL, spool_and_release, NULL),
		    0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	spool_init(&s);
	assert_int_equal(spool_add(&s, &l, "0123456789", 10), SPOOL_OK);
	assert_int_equal(spool_add(&s, &l, "a", 1), SPOOL_FULL);
	spool_release(&s);
}

/* Drawn pieces, read at drawn places. */
static void
test_drawn(void **state)
{
	unsigned seed = draw_seed();

	(void)state;
	for (int round = 0; round < 50; round++) {
		struct spool_limits l =
		    limits(draw_size(&seed, 100000), 1 << 20);
		struct buf all;
		struct spool s;
		char bytes[5000];

		buf_init(&all);
		spool_init(&s);
		for (int i = 0; i < 12; i++) {
			size_t from = all.len;

			wire_fill(&all, draw_size(&seed, 60000));
			assert_int_equal(
			    spool_add(&s, &l, all.p + from, all.len - from),
			    SPOOL_OK);
		}
		expect_content(&s, buf_str(&all));
		for (int i = 0; i < 20 && all.len > 0; i++) {
			size_t at = draw_below(&seed, all.len);
			size_t len = 1 + draw_size(&seed, 4998);
			ssize_t n = spool_read(&s, at, bytes, len);

			assert_in_range(n, 1, len);
			assert_memory_equal(bytes, all.p + at, (size_t)n);
		}
		spool_release(&s);
		buf_release(&all);
	}
}

static int
enter(void **state)
{
	(void)state;
	return mkdtemp(directory) == NULL;
}

static int
leave(void **state)
{
	(void)state;
	return rmdir(directory);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_boundary),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_total),
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_disk_full),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_drawn),
	};

	return cmocka_run_group_tests_name("spool", tests, enter, leave);
}
