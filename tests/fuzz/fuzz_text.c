/*
 * Any bytes as what a configuration or a client writes: rates, times, keys,
 * costs, statuses, rules of time zones, addresses, prefixes, Redis addresses. What is accepted is in its bounds;
 * an address survives being written and read.
 */
#include "pure/address.h"
#include "pure/cost.h"
#include "pure/key.h"
#include "pure/rate.h"
#include "pure/redis_address.h"
#include "pure/statuses.h"
#include "pure/zone_rule.h"

#include <string.h>

#include "fuzz.h"

static void
try_rates(struct str text)
{
	struct rates rates;
	struct err err;
	int64_t us;

	if (rate_parse(text, &rates, &err) && rates.kind == RATES_LIST) {
		FUZZ_EXPECT(rates.n >= 1 && rates.n <= RATES_MAX);
		for (size_t i = 0; i < rates.n; i++) {
			FUZZ_EXPECT(rates.rate[i].count >= 1);
			FUZZ_EXPECT(rates.rate[i].burst >= 1);
			/* 0: none, of what runs at a time */
			FUZZ_EXPECT(rates.rate[i].period_us == 0 ||
			    rates.rate[i].period_us >= 1000);
			FUZZ_EXPECT(rates.rate[i].period_us % 1000 == 0);
		}
	}
	if (rate_parse_duration(text, &us, &err))
		FUZZ_EXPECT(us >= 0 && us <= 366LL * 86400 * 1000000);
}

static void
try_costs(struct str text)
{
	struct statuses statuses = { 0 };
	struct cost_pattern pattern;
	struct zone_rule rule;
	struct cost cost;
	struct err err;

	if (cost_parse_single(text, &cost, &err))
		FUZZ_EXPECT(cost_most(&cost) <= COST_MAX);
	if (cost_parse_pattern(text, &pattern, &err))
		FUZZ_EXPECT(pattern.units >= 0 && pattern.glob.len > 0);
	if (statuses_add(&statuses, text, &err))
		FUZZ_EXPECT(statuses.some && text.len == 3);
	if (zone_rule_parse(text, &rule))
		FUZZ_EXPECT(zone_rule_offset(&rule, 1792890000) < 86400 * 8);
}

static void
try_addresses(struct str text)
{
	char written[ADDRESS_TEXT_MAX];
	struct address address, again;
	struct cidr cidr;
	struct redis_address redis;
	struct err err;
	size_t len;

	if (address_parse(text, &address)) {
		len = address_format(&address, written);
		FUZZ_EXPECT(len < ADDRESS_TEXT_MAX && written[len] == '\0');
		FUZZ_EXPECT(
		    address_parse((struct str){ written, len }, &again));
		FUZZ_EXPECT(address_eq(&address, &again));
	}
	if (cidr_parse(text, &cidr, &err))
		FUZZ_EXPECT(cidr_contains(&cidr, &cidr.base));
	if (redis_address_parse(text, &redis, &err))
		FUZZ_EXPECT(strlen(redis.host) > 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct str text = { (const char *)bytes, len };
	struct key key;
	struct err err;

	try_rates(text);
	try_costs(text);
	try_addresses(text);
	if (key_parse(text, &key, &err))
		FUZZ_EXPECT(key.n >= 1 && key.n <= KEY_PARTS_MAX);
	return 0;
}
