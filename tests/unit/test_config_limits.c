/*
 * What the options of a limit, and the tiers that speak of it, may and may
 * not say together: B101.
 */
#include "config/config.h"

#include "config_text.h"
#include "pure/known.h"

struct row {
	const char *text; /* behind BACKEND STORE, of five lines */
	const char *expected;
};

static void
expect_rows(const struct row *table, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct buf text;

		buf_init(&text);
		buf_addf(&text, BACKEND STORE "%s", table[i].text);
		expect_reports(buf_str(&text), table[i].expected);
		buf_release(&text);
	}
}

#define A "[limit a]\nrate = 10/1m\n"

/* B34: wherever a rate is written, it lets something through or says deny. */
static void
test_no_rate_of_0(void **state)
{
	static const struct row table[] = {
		{ "[limit a]\nrate = 0/1m\n",
		    "t.ini:6: [limit a] rate: `0/1m`: `0` is no count; it is a "
		    "whole number from 1 to 10^12\n" },
		{ "[limit a]\nrate = 0\nalgorithm = concurrency\n",
		    "t.ini:6: [limit a] rate: `0`: `0` is no count; it is a "
		    "whole number from 1 to 10^12\n" },
		{ A "on_outage = local\noutage_rate = 0/1m\n",
		    "t.ini:8: [limit a] outage_rate: `0/1m`: `0` is no count; "
		    "it is a whole number from 1 to 10^12\n" },
		{ A "[tier t]\nwhen = client=10.0.0.0/8\na = 0/1m\n",
		    "t.ini:9: [tier t] a: `0/1m`: `0` is no count; it is a "
		    "whole number from 1 to 10^12\n" },
		{ "[limit a]\nrate = deny\n", "" },
		{ A "on_outage = local\noutage_rate = deny\n", "" },
		{ A "[tier t]\nwhen = client=10.0.0.0/8\na = deny\n", "" },
	};

	(void)state;
	expect_rows(table, COUNT(table));
}

static void
test_costs(void **state)
{
	static const struct row table[] = {
		{ A "cost = 10\n", "" },
		{ A "cost = 11\n",
		    "t.ini:7: [limit a] cost: 11 is above the 10 of [limit a] "
		    "rate: such a request could never pass\n" },
		{ A "cost = /x=11, POST /y=10, *=1\n",
		    "t.ini:7: [limit a] cost: 11 is above the 10 of [limit a] "
		    "rate: such a request could never pass\n" },
		{ A "cost = /x=10, /y=0\n", "" },
		{ A "cost = 0\n",
		    "t.ini:7: [limit a] cost: does nothing: no request takes "
		    "anything\n" },
		{ A "cost = x\n",
		    "t.ini:7: [limit a] cost: `x`: `x` is no cost; it is a "
		    "whole number up to 10^12\n" },
		{ A "cost = x, /y=3\n",
		    "t.ini:7: [limit a] cost: `x` is none of PATTERN=N; a "
		    "cost is a whole number, a list such as /search*=10, *=1, "
		    "or response:NAME\n" },
		{ A "cost = /y=3, post /x=5\n",
		    "t.ini:7: [limit a] cost: `post /x=5` can match nothing: "
		    "methods are upper case\n" },
		{ A "cost = @costs\n",
		    "t.ini:7: [limit a] cost: `* /x=5` can match nothing: a "
		    "method is written out, or left out for all\n" },
		{ A "cost = response:Content-Length\n",
		    "t.ini:7: [limit a] cost: `response:Content-Length`: the "
		    "response needs that header, and a cost's is taken out; "
		    "give it one of its own, such as response:X-Cost\n" },
		{ A "cost = response:X-Cost\n", "" },
		{ A "cost = /x=3, *=1, /y=5\n",
		    "t.ini:7: [limit a] cost: `/y=5` can match nothing: "
		    "`*=1` before it always does first\n" },
		{ A "cost = GET /x*=3, HEAD /x=5\n",
		    "t.ini:7: [limit a] cost: `HEAD /x=5` can match nothing: "
		    "`GET /x*=3` before it always does first\n" },
		{ A "cost = POST *=3, /x=5, *=2\n", "" },
		{ A "cost = /x=3,\n",
		    "t.ini:7: [limit a] cost: an item of the list is "
		    "empty\n" },
		/* A bucket takes as much as fits into it. */
		{ "[limit a]\nrate = 2/1s burst 10\n"
		  "algorithm = token_bucket\ncost = 10\n",
		    "" },
		{ "[limit a]\nrate = 20/1s burst 10\n"
		  "algorithm = token_bucket\ncost = 11\n",
		    "t.ini:8: [limit a] cost: 11 is above the 10 of [limit a] "
		    "rate: such a request could never pass\n" },
		{ "[limit a]\nrate = 5/1s, 20/1h\ncost = 6\n",
		    "t.ini:7: [limit a] cost: 6 is above the 5 of [limit a] "
		    "rate: such a request could never pass\n" },
		{ "[limit a]\nrate = unlimited\ncost = 6\n", "" },
		{ A "cost = 4\n[tier t]\nwhen = client=10.0.0.0/8\na = 3/1m\n",
		    "t.ini:7: [limit a] cost: 4 is above the 3 of [tier t] a: "
		    "such a request could never pass\n" },
		{ A "cost = 4\n[tier t]\nwhen = client=10.0.0.0/8\n"
		    "a = unlimited\n",
		    "" },
		{ A "cost = 4\non_outage = local\noutage_rate = 3/1m\n",
		    "t.ini:7: [limit a] cost: 4 is above the 3 of [limit a] "
		    "outage_rate: such a request could never pass\n" },
	};

	(void)state;
	write_file("costs", STR("POST /x=5\n* /x=5\n"));
	expect_rows(table, COUNT(table));
}

static void
test_algorithms(void **state)
{
	static const struct row table[] = {
		{ "[limit a]\nrate = 5\nalgorithm = concurrency\n", "" },
		{ "[limit a]\nrate = 5/1s\nalgorithm = concurrency\n",
		    "t.ini:6: [limit a] rate: concurrency takes N alone, "
		    "without a period\n" },
		{ "[limit a]\nrate = 5, 6\nalgorithm = concurrency\n",
		    "t.ini:6: [limit a] rate: `6`: a second rate of the same "
		    "period; each rate of a limit needs its own\n" },
		{ "[limit a]\nrate = 5\n",
		    "t.ini:6: [limit a] rate: `5`: no rate; it is written "
		    "N/PERIOD, such as 10/1s\n" },
		{ "[limit a]\nrate = unlimited\nalgorithm = concurrency\n",
		    "" },
		{ "[limit a]\nrate = 5\nalgorithm = concurrency\n"
		  "[tier t]\nwhen = client=10.0.0.0/8\na = 6/1s\n",
		    "t.ini:10: [tier t] a: concurrency takes N alone, without "
		    "a period\n" },
		{ "[limit a]\nrate = 5\nalgorithm = concurrency\n"
		  "cost = 2\ncount = 401\n",
		    "t.ini:8: [limit a] cost: does not belong to algorithm = "
		    "concurrency: a request holds one slot while it runs\n"
		    "t.ini:9: [limit a] count: does not belong to algorithm = "
		    "concurrency: a request holds one slot while it runs\n" },
		{ "[limit a]\nrate = 5\nalgorithm = concurrency\n"
		  "status = 503\n",
		    "" },
		{ A "status = 503\n",
		    "t.ini:7: [limit a] status: 503 belongs to algorithm = "
		    "concurrency\n" },
		{ A "status = 429\npenalty = 1m\n", "" },
		{ A "status = 418\n",
		    "t.ini:7: [limit a] status: `418` is none of 429, 503\n" },
		{ A "penalty = 0\n",
		    "t.ini:7: [limit a] penalty: must be 1ms to 366d\n" },
		{ A "delay_max = 2s\n",
		    "t.ini:7: [limit a] delay_max: belongs to algorithm = "
		    "leaky_bucket\n" },
		{ "[limit a]\nrate = 10/1s burst 11\n"
		  "algorithm = leaky_bucket\n",
		    "" },
		{ "[limit a]\nrate = 10/1s burst 12\n"
		  "algorithm = leaky_bucket\n",
		    "t.ini:6: [limit a] rate: warning: within delay_max no "
		    "more than 11 of the burst of 12 pass at once\n" },
		{ "[limit a]\nrate = 10/1s burst 12\ndelay_max = 2s\n"
		  "algorithm = leaky_bucket\n",
		    "" },
		{ "[limit a]\nrate = 10/1s\ndelay_max = 0\n"
		  "algorithm = leaky_bucket\n",
		    "t.ini:6: [limit a] rate: warning: within delay_max no "
		    "more than 1 of the burst of 10 pass at once\n" },
		{ "[limit a]\nrate = 10000/1h\nalgorithm = sliding_log\n", "" },
		{ "[limit a]\nrate = 10001/1h\nalgorithm = sliding_log\n",
		    "t.ini:6: [limit a] rate: a sliding_log keeps each "
		    "request: at most 10000\n" },
		/* What delays, or counts what runs, is idle beside nobody. */
		{ "[limit a]\nrate = 1/1s\n[limit b]\nrate = 100/1s\n"
		  "algorithm = leaky_bucket\ndelay_max = 100s\n"
		  "[limit c]\nrate = 100\nalgorithm = concurrency\n",
		    "" },
		{ "[limit b]\nrate = 1/1s\nalgorithm = leaky_bucket\n"
		  "[limit a]\nrate = 100/1s\n",
		    "t.ini:9: [limit a] rate: warning: 100/1s can never "
		    "refuse: 1/1s of [limit b] always does first\n" },
	};

	(void)state;
	expect_rows(table, COUNT(table));
}

#define CALENDAR "algorithm = fixed_window\nalign = calendar\n"

static void
test_calendar(void **state)
{
	static const struct row table[] = {
		{ "[limit a]\nrate = 1/m, 2/1h, 3/1d, 4/7d, 5/month, "
		  "6/1year\n" CALENDAR,
		    "" },
		{ "[limit a]\nrate = 1/m\n" CALENDAR "timezone = UTC\n", "" },
		{ "[limit a]\nrate = 1/m\n" CALENDAR
		  "timezone = Europe/Berlin\n",
		    "" },
		{ "[limit a]\nrate = 1/m\n" CALENDAR "timezone = Mars/Base\n",
		    "t.ini:9: [limit a] timezone: /usr/share/zoneinfo/Mars/"
		    "Base: can not be read: No such file or directory\n" },
		{ "[limit a]\nrate = 1/m\n" CALENDAR
		  "timezone = ../../../etc/passwd\n",
		    "t.ini:9: [limit a] timezone: `../../../etc/passwd` is no "
		    "name of a time zone, such as Europe/Berlin\n" },
		{ "[limit a]\nrate = 1/m\n" CALENDAR
		  "timezone = /etc/localtime\n",
		    "t.ini:9: [limit a] timezone: `/etc/localtime` is no "
		    "name of a time zone, such as Europe/Berlin\n" },
		{ "[limit a]\nrate = 1/m\n" CALENDAR
		  "timezone = zone1970.tab\n",
		    "t.ini:9: [limit a] timezone: `zone1970.tab` is no name "
		    "of a time zone, such as Europe/Berlin\n" },
		{ "[limit a]\nrate = 1/m\n" CALENDAR "timezone = tzdata\n",
		    "t.ini:9: [limit a] timezone: /usr/share/zoneinfo/tzdata: "
		    "can not be read: No such file or directory\n" },
		{ "[limit a]\nrate = 1/2h\n" CALENDAR,
		    "t.ini:6: [limit a] rate: align = calendar takes periods "
		    "of 1m, 1h, 1d, 1w, month or year\n" },
		{ "[limit a]\nrate = 1/month\nalgorithm = fixed_window\n",
		    "t.ini:6: [limit a] rate: month and year need align = "
		    "calendar\n" },
		{ "[limit a]\nrate = 1/year\n",
		    "t.ini:6: [limit a] rate: month and year need align = "
		    "calendar\n" },
		{ A "timezone = UTC\n",
		    "t.ini:7: [limit a] timezone: belongs to align = "
		    "calendar\n" },
		{ "[limit a]\nrate = 1/month\nalign = calendar\n",
		    "t.ini:7: [limit a] align: belongs to algorithm = "
		    "fixed_window\n" },
		/* A day can have 25 hours, and two of 23 may meet one. */
		{ "[limit a]\nrate = 1/1h\n" CALENDAR
		  "[limit b]\nrate = 26/1d\n" CALENDAR,
		    "" },
		{ "[limit a]\nrate = 1/1d\n" CALENDAR
		  "[limit b]\nrate = 33/month\n" CALENDAR,
		    "" },
		{ "[limit a]\nrate = 1/1d\n" CALENDAR
		  "[limit b]\nrate = 34/month\n" CALENDAR,
		    "t.ini:10: [limit b] rate: warning: 34/month can never "
		    "refuse: 1/1d of [limit a] always does first\n" },
	};

	(void)state;
	expect_rows(table, COUNT(table));
}

#define NOT_ASKED "does nothing: scope = local does not ask the store\n"

static void
test_outages(void **state)
{
	static const struct row table[] = {
		{ A "on_outage = local\noutage_rate = 3/1m, 5/1h\n", "" },
		{ A "on_outage = local\noutage_rate = deny\n", "" },
		{ A "on_outage = local\n",
		    "t.ini:5: [limit a] outage_rate: is required with "
		    "on_outage = local\n" },
		{ A "outage_rate = 3/1m\n",
		    "t.ini:7: [limit a] outage_rate: belongs to on_outage = "
		    "local\n" },
		{ A "on_outage = deny\noutage_rate = 3/1m\n",
		    "t.ini:8: [limit a] outage_rate: belongs to on_outage = "
		    "local\n" },
		{ A "scope = local\non_outage = local\noutage_rate = 3/1m\n",
		    "t.ini:8: [limit a] on_outage: " NOT_ASKED
		    "t.ini:9: [limit a] outage_rate: " NOT_ASKED },
		{ A "on_outage = deny\nscope = local\n",
		    "t.ini:7: [limit a] on_outage: " NOT_ASKED },
		{ A "scope = local\non_outage = allow\n",
		    "t.ini:8: [limit a] on_outage: " NOT_ASKED },
		{ A "scope = local\noutage_rate = 3/1m\n",
		    "t.ini:8: [limit a] outage_rate: " NOT_ASKED },
		{ A "scope = local\n", "" },
		{ A "on_outage = local\noutage_rate = 3/1m burst 4\n",
		    "t.ini:8: [limit a] outage_rate: burst belongs to "
		    "algorithm = token_bucket or leaky_bucket\n" },
	};

	(void)state;
	expect_rows(table, COUNT(table));
}

#define REDIS "[store]\naddress = unix:/run/redis.sock\n" BACKEND
#define LEAVES_NONE(cost)                                               \
	"t.ini:7: [limit a] lease: does nothing: a request takes " cost \
	" itself, so none are left for the next\n"
#define L REDIS "[limit a]\nrate = 10/1m\nlease = 16\n"

static void
test_leases(void **state)
{
	static const struct row table[] = {
		{ L, "" },
		{ L "cost = /x*=2, *=1\ncount = all\n", "" },
		{ L "algorithm = fixed_window\nalign = calendar\n", "" },
		{ L "algorithm = token_bucket\n", "" },
		{ REDIS "[limit a]\nrate = 10/1m\nlease = 1000001\n",
		    "t.ini:7: [limit a] lease: must be 0 to 1000000\n" },
		{ REDIS "[limit a]\nrate = 10/1m\nlease = auto\n", "" },
		{ REDIS "[limit a]\nrate = 10/1m\nlease = auto\n"
			"algorithm = sliding_log\n",
		    "t.ini:7: [limit a] lease: belongs to algorithm = "
		    "fixed_window, sliding_window or token_bucket\n" },
		{ REDIS "[limit a]\nrate = 10/1m\nlease = Auto\n",
		    "t.ini:7: [limit a] lease: `Auto` is neither auto nor a "
		    "whole "
		    "number\n" },
		{ L "algorithm = sliding_log\n",
		    "t.ini:7: [limit a] lease: belongs to algorithm = "
		    "fixed_window, sliding_window or token_bucket\n" },
		{ L "mode = observe\n",
		    "t.ini:7: [limit a] lease: belongs to mode = enforce\n" },
		{ L "count = 401\n",
		    "t.ini:7: [limit a] lease: belongs to count = all: what a "
		    "response gives back is settled with the store\n" },
		{ L "penalty = 1m\n",
		    "t.ini:7: [limit a] lease: does not go with penalty: units "
		    "that another gateway holds would begin one\n" },
		{ L "cost = response:X-Cost\n",
		    "t.ini:7: [limit a] lease: needs a cost that is known "
		    "before the response\n" },
		{ REDIS "[limit a]\nrate = 10/1m\nlease = 1\n",
		    LEAVES_NONE("1") },
		{ REDIS "[limit a]\nrate = 20/1m\nlease = 5\ncost = 5\n",
		    LEAVES_NONE("5") },
		{ REDIS "[limit a]\nrate = 20/1m\nlease = 6\ncost = 5\n", "" },
		{ REDIS "[limit a]\nrate = 20/1m\nlease = 5\n"
			"cost = /a=0, /b=9, *=5\n",
		    LEAVES_NONE("5") },
		{ REDIS "[limit a]\nrate = 20/1m\nlease = 5\n"
			"cost = /b=9, POST *=5\n",
		    "" },
		{ REDIS "[limit a]\nrate = 20/1m\nlease = auto\ncost = 5\n",
		    "" },
		{ L "scope = local\n",
		    "t.ini:7: [limit a] lease: belongs to scope = shared: a "
		    "count in this process takes no trip\n" },
		{ STORE BACKEND A "lease = 0\nmode = observe\nscope = local\n",
		    "" },
		{ STORE BACKEND A "lease = 16\n",
		    "t.ini:7: [limit a] lease: warning: does nothing: counts "
		    "in memory: take no trip\n" },
		{ "[gateway]\nroles = responder, authorizer\n" L,
		    "t.ini:9: [limit a] lease: is for requests that are passed "
		    "on to a backend, and an authorizer has none: that takes "
		    "role = responder\n" },
		{ "[gateway]\nroles = responder, authorizer\n" L
		  "role = responder\n",
		    "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		expect_reports(str_of(table[i].text), table[i].expected);
}

/* Of another limit that applies to the same requests, or to others. */
static void
test_beside_a_lease(void **state)
{
#define UNLEASED                                                              \
	"t.ini:7: [limit a] lease: warning: does nothing: [limit b] applies " \
	"to the same requests and has no lease, so each of them asks the "    \
	"store\n"
#define LOGIN "path = /login\n"
#define B     "[limit b]\nrate = 20/1h\n"
	static const struct row table[] = {
		{ L B, UNLEASED },
		{ L LOGIN B, UNLEASED },
		{ L LOGIN B LOGIN, UNLEASED },
		{ L B "mode = observe\n", UNLEASED },
		{ L B "algorithm = sliding_log\n[limit c]\nrate = 30/1h\n",
		    UNLEASED },
		{ L B "key = param:A\nmissing_key = deny\n", UNLEASED },
		{ L B "[tier t]\nwhen = client=::/0\nb = 30/1h\n", UNLEASED },

		{ L B LOGIN, "" },
		{ L LOGIN B "path = /search\n", "" },
		{ L B "scope = local\n", "" },
		{ L B "lease = 4\n", "" },
		{ L B "lease = auto\n", "" },
		{ L "[limit b]\nrate = unlimited\n", "" },
		{ L "[limit b]\nrate = deny\n", "" },
		{ L B "[tier t]\nwhen = client=::/0\nb = unlimited\n", "" },
		{ L B "missing_key = skip\nkey = param:A\n", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		expect_reports(str_of(table[i].text), table[i].expected);
}

#define WHEN "when = client=10.0.0.0/8\n"

static void
test_tiers(void **state)
{
	static const struct row table[] = {
		{ A "[tier t]\n" WHEN "a = 20/1m\n", "" },
		/* Wherever it stands. */
		{ "[tier t]\n" WHEN "a = 20/1m, 50/1h\n" A, "" },
		{ A "[tier t]\na = 20/1m\n",
		    "t.ini:7: [tier t] when: is required\n" },
		{ A "[tier t]\n" WHEN,
		    "t.ini:7: [tier t] changes no limit: give it LIMIT = "
		    "RATE\n" },
		{ A "[tier t]\n" WHEN "b = 20/1m\n",
		    "t.ini:9: [tier t] b: there is no [limit b]; a tier has "
		    "`when`, and rates under the names of limits\n" },
		{ A "[tier t]\n" WHEN "a = 20\n",
		    "t.ini:9: [tier t] a: `20`: no rate; it is written "
		    "N/PERIOD, such as 10/1s\n" },
		{ A "[tier t]\n" WHEN "a = 20/1m burst 3\n",
		    "t.ini:9: [tier t] a: burst belongs to algorithm = "
		    "token_bucket or leaky_bucket\n" },
		{ A "[tier t]\n" WHEN "a = 1000000000000/1d\n",
		    "t.ini:9: [tier t] a: count times period is too large to "
		    "be counted exactly (2^53 and above)\n" },
		{ A "[tier t]\n" WHEN "a = 20/1m\na = 30/1m\n",
		    "t.ini:10: [tier t] a: duplicate option, first at "
		    "t.ini:9\n" },
		{ A "[tier t]\n" WHEN "a = 20/1m\nA = 30/1m\n",
		    "t.ini:10: [tier t] A: unknown option\n" },
		{ A "[tier t]\n" WHEN "a = 20/1m\n[tier t]\n",
		    "t.ini:10: duplicate section [tier t], first at "
		    "t.ini:7\n" },
		{ A "[tier]\n", "t.ini:7: [tier] needs a name: [tier NAME]\n" },
	};

	(void)state;
	expect_rows(table, COUNT(table));
}

static void
test_when(void **state)
{
	static const struct row table[] = {
		{ A "[tier t]\na = 1/1s\nwhen = param:REMOTE_USER=eve, "
		    "client=10.0.0.0/8, header:X-Key=@keys\n",
		    "" },
		{ A "[tier t]\na = 1/1s\nwhen = param:USER=@keys\n", "" },
		{ A "[tier t]\na = 1/1s\nwhen = header:X-Plan=gold\n",
		    "t.ini:9: [tier t] when: warning: any client can send "
		    "that header and be of this tier: let its values come "
		    "from a file (header:NAME=@FILE)\n" },
		{ A "[tier t]\na = 1/1s\nwhen = client=10.0.0.0/8, "
		    "param:HTTP_X_PLAN=gold\n",
		    "t.ini:9: [tier t] when: warning: any client can send "
		    "that header and be of this tier: let its values come "
		    "from a file (param:NAME=@FILE)\n" },
		{ A "[tier t]\na = 1/1s\nwhen = param:HTTP_X_KEY=@keys\n", "" },
		/* A proxy of ours may well say it. */
		{ A "[tier t]\na = 1/1s\nwhen = param:HTTP_X_PLAN=gold\n"
		    "[gateway]\ntrusted_proxies = 10.0.0.0/8\n",
		    "" },
		{ A "[tier t]\na = 1/1s\nwhen = header:X-Plan=gold\n"
		    "[gateway]\ntrusted_proxies = 10.0.0.0/8\n",
		    "" },
		{ A "[tier t]\na = 1/1s\nwhen = header:X-Key=@none\n",
		    "t.ini:9: [tier t] when: none: can not be read: No such "
		    "file or directory\n" },
		{ A "[tier t]\na = 1/1s\nwhen = header:X-Key=@empty\n",
		    "t.ini:9: [tier t] when: empty: has no items\n" },
		{ A "[tier t]\na = 1/1s\nwhen = header:X-Key=@hashes\n",
		    "t.ini:9: [tier t] when: hashes:2: hash: without the 32 "
		    "lower-case hex digits that `sluice hash` prints\n" },
		{ A "[tier t]\na = 1/1s\nwhen = client=10.0.0.1/8\n",
		    "t.ini:9: [tier t] when: `10.0.0.1/8`: bits behind the "
		    "prefix are set; the network is 10.0.0.0/8\n" },
		{ A "[tier t]\na = 1/1s\nwhen = gold\n",
		    "t.ini:9: [tier t] when: `gold` is none of client=CIDR, "
		    "header:NAME=VALUE, header:NAME=@FILE, "
		    "param:NAME=VALUE\n" },
		{ A "[tier t]\na = 1/1s\nwhen = cookie:a=b\n",
		    "t.ini:9: [tier t] when: `cookie:a=b` is none of "
		    "client=CIDR, header:NAME=VALUE, header:NAME=@FILE, "
		    "param:NAME=VALUE\n" },
		{ A "[tier t]\na = 1/1s\nwhen = param:=b\n",
		    "t.ini:9: [tier t] when: `param:=b`: the param's name is "
		    "missing\n" },
		{ A "[tier t]\na = 1/1s\nwhen = header:=b\n",
		    "t.ini:9: [tier t] when: `header:`: the header's name is "
		    "missing\n" },
		{ A "[tier t]\na = 1/1s\nwhen = header:X+host=b\n",
		    "t.ini:9: [tier t] when: `X+host` is no header's "
		    "name\n" },
		{ A "[tier t]\na = 1/1s\nwhen = param:A=\n",
		    "t.ini:9: [tier t] when: `param:A=`: the value is "
		    "missing\n" },
	};

	(void)state;
	write_file("keys", STR("one\n# none\ntwo\n"));
	write_file("hashes", STR("one\nhash:0123456789ABCDEF\n"));
	write_file("empty", STR("# none\n"));
	expect_rows(table, COUNT(table));
}

static void
test_what_tiers_say(void **state)
{
	struct config *c = load_good(BACKEND STORE
	    "[tier x]\nwhen = header:X-Key=@keys\na = deny\nb = 7/1s\n"
	    "[limit b]\nrate = 1/1s\n[limit a]\nrate = 2/1s\n"
	    "[tier y]\nwhen = param:B=c=d\nb = 9/1s\n");
	const struct config_limit *a = &c->limit[1];
	const struct config_limit *b = &c->limit[0];

	(void)state;
	assert_int_equal(a->n_tiers, 1);
	assert_int_equal(a->tier[0].rates.kind, RATES_DENY);
	assert_string_equal(a->tier[0].tier->name, "x");
	assert_int_equal(b->n_tiers, 2);
	assert_int_equal(b->tier[0].rates.rate[0].count, 7);
	assert_int_equal(b->tier[1].rates.rate[0].count, 9);
	assert_string_equal(a->tier[0].tier->when.at[0].param, "HTTP_X_KEY");
	assert_true(known_has(a->tier[0].tier->when.at[0].known, STR("two")));
	assert_true(str_eq(b->tier[1].tier->when.at[0].value, STR("c=d")));
	config_unref(c);
}

/* What refuses nothing, or other requests, covers no other limit. */
static void
test_overlap(void **state)
{
	static const char never[] =
	    "t.ini:8: [limit b] rate: warning: 100/1m can never refuse: "
	    "10/1m of [limit a] always does first\n";
	static const struct row table[] = {
		{ A "[limit b]\nrate = 100/1m\n", never },
		{ A "[limit b]\nrate = 100/1m\nmode = observe\n", never },
		{ A "mode = observe\n[limit b]\nrate = 100/1m\n", "" },
		{ A "cost = 2\n[limit b]\nrate = 100/1m\n", "" },
		{ A "[limit b]\nrate = 100/1m\npreflight = counted\n", "" },
		{ A "[limit b]\nrate = 100/1m\n[tier t]\n" WHEN
		    "a = unlimited\n",
		    "" },
	};

	(void)state;
	expect_rows(table, COUNT(table));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_rate_of_0),
		cmocka_unit_test(test_costs),
		cmocka_unit_test(test_algorithms),
		cmocka_unit_test(test_calendar),
		cmocka_unit_test(test_outages),
		cmocka_unit_test(test_leases),
		cmocka_unit_test(test_beside_a_lease),
		cmocka_unit_test(test_tiers),
		cmocka_unit_test(test_when),
		cmocka_unit_test(test_what_tiers_say),
		cmocka_unit_test(test_overlap),
	};

	return cmocka_run_group_tests_name(
	    "config_limits", tests, enter_directory, leave_directory);
}
