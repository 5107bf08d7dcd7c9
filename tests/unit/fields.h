/*
 * fields: draws name/value pairs and writes them down, so that what a
 * parser finds is held against what was drawn.
 */
#ifndef SLUICE_TESTS_FIELDS_H
#define SLUICE_TESTS_FIELDS_H

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "draw.h"

#define FIELDS_MAX 6

struct field {
	struct str name;
	struct str value;
};

/* Bytes of `letters`, few of them, so that names meet. */
static inline struct str
field_text(
    unsigned *seed, const char *letters, size_t most, struct arena *arena)
{
	size_t len = draw_below(seed, most + 1);
	char *text = arena_alloc(arena, len + 1);

	assert_non_null(text);
	for (size_t i = 0; i < len; i++)
		text[i] = letters[draw_below(seed, strlen(letters))];
	return (struct str){ text, len };
}

/* Percent-encodes what is in `must`, and now and then anything else. */
static inline void
field_encode(unsigned *seed, struct str text, const char *must, struct buf *out)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (strchr(must, c) != NULL || draw_below(seed, 4) == 0)
			buf_addf(
			    out, draw_below(seed, 2) ? "%%%02x" : "%%%02X", c);
		else
			buf_add_char(out, (char)c);
	}
}

/* The first of a name; NULL: none. */
static inline const struct field *
field_find(const struct field *field, size_t n, struct str name)
{
	for (size_t i = 0; i < n; i++)
		if (field[i].name.len == name.len &&
		    memcmp(field[i].name.p, name.p, name.len) == 0)
			return &field[i];
	return NULL;
}

#endif
