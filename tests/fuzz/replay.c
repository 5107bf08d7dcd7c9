/*
 * replay: every file of a directory through one fuzz target, as a test: a
 * line of TAP each. Linked with the target; CORPUS is its directory.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>

#include "fuzz.h"

#define INPUT_MAX (1 << 20)

static void
replay(const char *path)
{
	uint8_t *bytes = malloc(INPUT_MAX);
	FILE *in = fopen(path, "rb");
	size_t len = in == NULL ? 0 : fread(bytes, 1, INPUT_MAX, in);
	/* Exactly as long as its content, for the sanitizer to see. */
	uint8_t *exact = malloc(len + (len == 0));

	FUZZ_EXPECT(in != NULL && bytes != NULL && exact != NULL);
	for (size_t i = 0; i < len; i++)
		exact[i] = bytes[i];
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	free(bytes);
	fclose(in);
}

int
main(void)
{
	char path[PATH_MAX];
	DIR *directory = opendir(CORPUS);
	struct dirent *entry;
	int number = 0;

	FUZZ_EXPECT(directory != NULL);
	while ((entry = readdir(directory)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", CORPUS, entry->d_name);
		replay(path);
		printf("ok %d - %s\n", ++number, entry->d_name);
	}
	closedir(directory);
	return 0;
}
