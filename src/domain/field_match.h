/*
 * field_match: do a request's headers and query say what a limit asks for?
 * Any thread.
 */
#ifndef SLUICE_FIELD_MATCH_H
#define SLUICE_FIELD_MATCH_H

#include <stdbool.h>

#include "config/config.h"
#include "domain/subject.h"

/*
 * One of the limit's `header`, if it has any, and one of its `query`. Of a
 * header that came twice each value is looked at, of a query the first; a
 * regex that gives up matches.
 */
bool field_match(const struct config_limit *limit, const struct subject *s);

#endif
