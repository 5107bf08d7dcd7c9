/*
 * match: what a limit or a backend applies to. Any thread once compiled.
 *
 * A match is a list of globs, or one PCRE2 regex. In a glob `*` stands for
 * any run of bytes, `/` included, and everything else for itself; a glob
 * is held against the whole text. A regex is searched for anywhere in the
 * text (anchor it to match the whole), with PCRE2's match limits set so
 * that no text can make it run for long; one that hits them gives up.
 * It works on bytes: `.` is any byte, a newline too, and `$` is the very
 * end. Letters that differ in case are ASCII's alone.
 */
#ifndef SLUICE_MATCH_H
#define SLUICE_MATCH_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

struct match; /* opaque, heap */

/* Linear in the text for one `*`, bounded by pattern x text for many. */
bool match_glob(struct str pattern, struct str text);

/*
 * `value` is a comma separated list of globs, or `~` and a regex; blanks
 * around an item or the regex do not count. The match owns copies. nocase:
 * letters match whatever their case (hosts).
 * NULL and err on an empty item or a regex that does not compile.
 */
struct match *match_new(struct str value, bool nocase, struct err *err);
void match_free(struct match *m);
/* An m of NULL matches everything; a regex that gives up matches not. */
bool match_test(const struct match *m, struct str text);
/*
 * The same for what nobody may get around: a regex that gives up matches,
 * or a text made to exhaust it would be a way past the limit.
 */
bool match_may(const struct match *m, struct str text);

#endif
