/*
 * Any bytes from a peer. The first byte says how many come at a time: the
 * verdict does not depend on it. A head that passes is the plain form of
 * itself: BEGIN_REQUEST, whole pairs, an empty PARAMS, no padding, and
 * given to a guard again it comes out unchanged.
 */
#include "request/guard.h"

#include <string.h>

#include "fuzz.h"

#define MAX_HEAD 8192

static enum guard_verdict
feed(struct guard *g, const uint8_t *bytes, size_t len, size_t step)
{
	enum guard_verdict verdict = GUARD_MORE;
	struct buf in;

	guard_init(g, MAX_HEAD);
	g->authorizer = true;
	buf_init(&in);
	for (size_t at = 0; at < len && verdict == GUARD_MORE; at += step) {
		buf_add(&in, bytes + at, len - at < step ? len - at : step);
		verdict = guard_feed(g, &in);
	}
	buf_release(&in);
	return verdict;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct guard whole, cut, again;
	enum guard_verdict verdict;

	if (len < 2)
		return 0;
	verdict = feed(&whole, bytes + 1, len - 1, len - 1);
	FUZZ_EXPECT(
	    feed(&cut, bytes + 1, len - 1, (size_t)bytes[0] + 1) == verdict);
	if (verdict == GUARD_HEAD) {
		FUZZ_EXPECT(whole.head.len == cut.head.len);
		FUZZ_EXPECT(
		    memcmp(whole.head.p, cut.head.p, cut.head.len) == 0);
		FUZZ_EXPECT(feed(&again, (const uint8_t *)whole.head.p,
				whole.head.len, whole.head.len) == GUARD_HEAD);
		FUZZ_EXPECT(again.head.len == whole.head.len);
		FUZZ_EXPECT(
		    memcmp(again.head.p, whole.head.p, whole.head.len) == 0);
		guard_release(&again);
	}
	guard_release(&whole);
	guard_release(&cut);
	return 0;
}
