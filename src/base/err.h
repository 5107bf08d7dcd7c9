/*
 * err: one error, as a sentence for a person.
 *
 * The caller owns it; a function that fails sets it and returns false (or
 * NULL, or -1), a function that succeeds leaves it alone.
 */
#ifndef SLUICE_ERR_H
#define SLUICE_ERR_H

#include <stdbool.h>

#define ERR_TEXT_MAX 512

struct err {
	char text[ERR_TEXT_MAX];
};

/* Always returns false, so that it can end a function. Cut to fit. */
bool err_set(struct err *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
