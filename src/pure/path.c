/*
 * One slash is put in front of everything: runs of slashes merge anyway,
 * and what had none (an empty path) gets its root. Then the segments are
 * copied down within `out`, so nothing is allocated.
 */
#include "pure/path.h"

#include <stdbool.h>
#include <string.h>

#include "pure/percent.h"

static bool
is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_scheme_char(char c)
{
	return is_alpha(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' ||
	    c == '.';
}

/* Cuts "http://host" off; a path that begins otherwise stays. */
static struct str
cut_authority(struct str uri)
{
	size_t i = 0;

	if (uri.len == 0 || !is_alpha(uri.p[0]))
		return uri;
	while (i < uri.len && is_scheme_char(uri.p[i]))
		i++;
	if (uri.len - i < 3 || memcmp(uri.p + i, "://", 3) != 0)
		return uri;
	i += 3;
	while (i < uri.len && uri.p[i] != '/')
		i++;
	return (struct str){ uri.p + i, uri.len - i };
}

static struct str
cut_query(struct str uri)
{
	size_t i = 0;

	while (i < uri.len && uri.p[i] != '?' && uri.p[i] != '#')
		i++;
	return (struct str){ uri.p, i };
}

static size_t
decode(struct str text, char *out)
{
	size_t n = 0;

	for (size_t at = 0; at < text.len; n++)
		at += percent_byte(text, at, &out[n]);
	return n;
}

/* The end of the segment that starts at `at`. */
static size_t
segment_end(const char *path, size_t len, size_t at)
{
	const char *slash = memchr(path + at, '/', len - at);

	return slash == NULL ? len : (size_t)(slash - path);
}

static bool
is_segment(const char *p, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(p, name, len) == 0;
}

/* path[0..n) ends in a slash; takes the segment before that away. */
static size_t
drop_segment(const char *path, size_t n)
{
	if (n > 1)
		n--;
	while (path[n - 1] != '/')
		n--;
	return n;
}

/*
 * In place; path begins with a slash. What is written, path[0..n), always
 * ends in a slash until the last segment, and stays behind what is read.
 */
static size_t
simplify(char *path, size_t len)
{
	size_t n = 1;

	for (size_t at = 1; at < len;) {
		size_t end = segment_end(path, len, at);
		size_t size = end - at;

		if (is_segment(path + at, size, "..")) {
			n = drop_segment(path, n);
		} else if (size > 0 && !is_segment(path + at, size, ".")) {
			memmove(path + n, path + at, size);
			n += size;
			if (end < len)
				path[n++] = '/';
		}
		at = end + 1;
	}
	return n;
}

size_t
path_canonical(struct str uri, char *out)
{
	out[0] = '/';
	return simplify(
	    out, 1 + decode(cut_authority(cut_query(uri)), out + 1));
}

size_t
path_normalise(struct str path, char *out)
{
	out[0] = '/';
	if (path.len > 0)
		memcpy(out + 1, path.p, path.len);
	return simplify(out, 1 + path.len);
}
