/*
 * figures: what a decision lets the rate-limit headers say.
 */
#ifndef SLUICE_FIGURES_H
#define SLUICE_FIGURES_H

#include "base/arena.h"
#include "domain/decision.h"

/*
 * Of an allowed decision: which limit it speaks for, the one with the
 * smallest remaining, then the longest next, then file order; concurrency
 * only where nothing else was asked.
 */
void figures_choose(struct decision *d);
/*
 * Fills d->numbers from its parts: the rates that were asked and answered,
 * but for observed limits, and the one that the decision speaks for. Without
 * memory has_numbers goes.
 */
void figures_tell(struct decision *d, struct arena *arena);

#endif
