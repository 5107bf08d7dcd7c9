/*
 * Any bytes as a path: the canonical form begins with a slash, holds no
 * doubled slash and no dot segment, and is its own normal form.
 */
#include "pure/path.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static bool
has_dot_segment(struct str path)
{
	struct str segment;

	path.p++, path.len--;
	while (path.p != NULL) {
		segment = str_cut(&path, '/');
		if (str_eq(segment, STR(".")) || str_eq(segment, STR("..")))
			return true;
		if (segment.len == 0 && path.p != NULL)
			return true;
	}
	return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct str uri = { (const char *)bytes, len };
	char *out = malloc(len + 1);
	char *again = malloc(len + 2);
	struct str path = { out, 0 };

	path.len = path_canonical(uri, out);
	FUZZ_EXPECT(path.len >= 1 && path.len <= len + 1 && out[0] == '/');
	FUZZ_EXPECT(!has_dot_segment(path));
	FUZZ_EXPECT(path_normalise(path, again) == path.len);
	FUZZ_EXPECT(memcmp(out, again, path.len) == 0);
	free(out);
	free(again);
	return 0;
}
