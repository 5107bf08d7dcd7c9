/*
 * str: a borrowed slice of bytes.
 *
 * A struct str owns nothing: its bytes belong to whoever made them and
 * outlive the slice.  They need not end in NUL and may hold any byte.
 * Every function here is pure and may be called from any thread.
 */
#ifndef SLUICE_STR_H
#define SLUICE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *p;
	size_t len;
};

/* A literal as a slice, its NUL left out. */
#define STR(literal) ((struct str){ (literal), sizeof(literal) - 1 })
#define STR_NONE     ((struct str){ NULL, 0 })
/* For printf's "%.*s". */
#define STR_ARG(s) (int)(s).len, (s).p

struct str str_of(const char *text);
static inline bool
str_eq(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}
/* ASCII letters compare equal whatever their case. */
bool str_eq_nocase(struct str a, struct str b);
bool str_starts(struct str s, struct str prefix);
/* Spaces and tabs off both ends. */
struct str str_trim(struct str s);
/*
 * Cuts *rest at the first `separator`: returns what stands before it and
 * leaves what stands behind it.  Without one, returns all and leaves an
 * empty slice whose p is NULL (so a loop ends on rest->p == NULL).
 */
struct str str_cut(struct str *rest, char separator);
/* A number in decimal digits, which stand in `digits`. */
#define STR_DIGITS_MAX 20
struct str str_of_u64(uint64_t number, char digits[STR_DIGITS_MAX]);
/* Decimal digits only, all of them, at least one; false when above max. */
bool str_to_u64(struct str s, uint64_t max, uint64_t *value);

#endif
