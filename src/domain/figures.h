/*
 * figures: what a decision lets the rate-limit headers say.
 */
#ifndef SLUICE_FIGURES_H
#define SLUICE_FIGURES_H

#include "base/arena.h"
#include "domain/decision.h"

/*
 * Fills d->numbers from its parts: the rates that were asked and answered,
 * but for observed limits, and the one that the decision speaks for. To be
 * called while its verdicts are fresh. Without memory has_numbers goes.
 */
void figures_tell(struct decision *d, struct arena *arena);

#endif
