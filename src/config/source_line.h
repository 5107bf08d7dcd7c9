/*
 * source_line: what may be wrong with one line of a configuration file.
 * Pure; any thread.
 */
#ifndef SLUICE_SOURCE_LINE_H
#define SLUICE_SOURCE_LINE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define SOURCE_LINE_MAX 8192 /* bytes, without its end */

enum source_line {
	SOURCE_BLANK, /* or a comment */
	SOURCE_SECTION,
	SOURCE_OPTION,
	SOURCE_BAD, /* err says why */
};

/*
 * line: without its end. SECTION: name is what stands in the brackets.
 * OPTION: name and value, trimmed, the name not empty.
 */
enum source_line source_line_read(
    struct str line, struct str *name, struct str *value, struct err *err);

/*
 * Adds the value with each ${NAME} replaced by that variable of the
 * environment and each $${ by ${. err never quotes a variable's value.
 */
bool source_line_expand(struct str value, struct buf *out, struct err *err);

#endif
