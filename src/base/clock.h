/*
 * clock: the two clocks, in whole microseconds. Any thread.
 */
#ifndef SLUICE_CLOCK_H
#define SLUICE_CLOCK_H

#include <stdint.h>

/* Never steps; for deadlines. Its zero means nothing. */
int64_t clock_mono_us(void);
/* Since 1970-01-01 UTC; may step. For dates. */
int64_t clock_real_us(void);
/*
 * The same as it was when this process first asked, and what has passed
 * since: never steps. For counts in memory.
 */
int64_t clock_steady_us(void);
/*
 * Milliseconds from now to a clock_mono_us deadline, rounded up, for poll
 * and epoll_wait: 0 when it has passed, at most one day.
 */
int clock_poll_ms(int64_t deadline_us);

#endif
