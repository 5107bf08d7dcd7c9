/*
 * observed: what limits of mode = observe would have refused: a line in the
 * log and a counter, nothing else. Any thread.
 */
#ifndef SLUICE_OBSERVED_H
#define SLUICE_OBSERVED_H

#include "domain/decision.h"

void observed_would_refuse(const struct subject *subject,
    const struct config_limit *limit, const char *why);
/* Once for each limit among a decision's parts, however many rates it has. */
void observed_tell(const struct decision *d, const struct subject *subject);

#endif
