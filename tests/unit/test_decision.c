/*
 * SPEC.md section 4, "Several limits", and section 6: what the answers of
 * two stores make together. The stores say what each row tells them to.
 */
#include "domain/decision.h"

#include "base/clock.h"
#include "config_text.h"
#include "params_text.h"
#include "wire.h"

#define RETRY_OUT_US 700000
#define WAIT_US      1000
#define FULL_US      INT64_C(7200000000)

struct fake {
	struct store store;
	char letter;
	/* "NAME allow REMAINING NEXT", "NAME refuse RETRY", "NAME error" */
	const char *says;
	bool out;
	int64_t later_us; /* than it usually is */
	struct buf asked;
	struct buf refunded;
};

static struct arena arena;
static struct fake shared = { .letter = 's' };
static struct fake local = { .letter = 'l' };
static struct leases *leases; /* of the shared one; NULL: none */

/* "sluice:{TAG}:NAME:xW": NAME, and W in ms; "out" of "NAME:out:xW". */
static struct str
limit_name(struct str key, struct str *window)
{
	struct str name;

	str_cut(&key, ':');
	str_cut(&key, ':');
	name = str_cut(&key, ':');
	if (str_starts(key, STR("out:")))
		name = str_cut(&key, ':');
	*window = (struct str){ key.p + 1, key.len - 1 };
	return name;
}

/* The line for a check: of its NAME, or of NAME/W. */
static const char *
find_line(const char *says, struct str name, struct str window)
{
	char with_window[80];

	snprintf(with_window, sizeof(with_window), "%.*s/%.*s ", STR_ARG(name),
	    STR_ARG(window));
	for (const char *at = says; *at != '\0'; at = strchr(at, '\n') + 1)
		if ((strncmp(at, name.p, name.len) == 0 &&
			at[name.len] == ' ') ||
		    strncmp(at, with_window, strlen(with_window)) == 0)
			return strchr(at, ' ') + 1;
	fail_msg("nothing is said for %.*s", STR_ARG(name));
	return NULL;
}

static struct verdict
read_verdict(const char *line)
{
	struct verdict v = { .limit = 10, .full_us = FULL_US };
	long long remaining = 0, next = 0, retry = 0;

	if (sscanf(line, "allow %lld %lld", &remaining, &next) > 0)
		v.kind = VERDICT_ALLOWED;
	else if (sscanf(line, "refuse %lld", &retry) > 0)
		v.kind = VERDICT_REFUSED;
	else
		v.kind = VERDICT_ERROR;
	v.remaining = remaining;
	v.next_us = next;
	v.retry_us = retry;
	return v;
}

static void
fake_ask(struct store *store, const struct store_question *q,
    struct store_answer *answer)
{
	struct fake *f = (struct fake *)store;

	assert_in_range(q->n, 1, STORE_CHECKS_MAX);
	*answer = (struct store_answer){
		.status = f->out ? STORE_OUT : STORE_ANSWERED,
		.taken_us = 1000 + f->letter + f->later_us,
		.wait_us = 30 + f->letter,
		.retry_us = f->out ? RETRY_OUT_US : 0,
		.reason = f->out ? "it is out" : "one key",
	};
	for (size_t i = 0; i < q->n; i++) {
		struct str window;
		struct str name = limit_name(q->check[i].key, &window);

		buf_add_str(&f->asked, name);
		if (!f->out)
			answer->verdict[i] =
			    read_verdict(find_line(f->says, name, window));
		if (!f->out && answer->verdict[i].kind == VERDICT_ALLOWED)
			answer->verdict[i].taken = q->check[i].check.most;
	}
	buf_add_char(&f->asked, '.');
}

static void
fake_refund(
    struct store *store, const struct store_question *q, int64_t taken_us)
{
	struct fake *f = (struct fake *)store;

	assert_in_range(q->n, 1, STORE_CHECKS_MAX);
	assert_int_equal(taken_us, 1000 + f->letter);
	for (size_t i = 0; i < q->n; i++) {
		struct str window;

		buf_add_str(&f->refunded, limit_name(q->check[i].key, &window));
	}
	buf_add_char(&f->refunded, '.');
}

static const struct store_ops ops = {
	.ask = fake_ask,
	.refund = fake_refund,
};

/* SHARED: the store is out. */
enum { UP, OUT };

struct row {
	const char *limits;
	const char *shared;
	int out;
	const char *local;
	/* KIND LIMIT REMAINING RETRY, what was asked of whom, in which
	   order ("." ends a question), what was given back. */
	const char *expected;
};

#define LIMIT(name) "[limit " name "]\nrate = 5/1m\n"
#define LOCAL       "scope = local\n"
#define DENY        "on_outage = deny\n"
#define OBSERVE     "mode = observe\n"
#define INSTEAD     "on_outage = local\noutage_rate = 2/1m\n"
#define A           LIMIT("a")
#define B           LIMIT("b")
#define C           LIMIT("c")
#define D           LIMIT("d")

static const struct row table[] = {
	/* None applies: nobody is asked. */
	{ A "path = /x\n", "", UP, "", "unlimited - - 0; s: l:; s: l:" },
	{ "[limit a]\nrate = unlimited\n", "", UP, "",
	    "unlimited - - 0; s: l:; s: l:" },
	{ A "path = /x\n" B, "b allow 4 1\n", UP, "",
	    "allowed b 4 0; s:b. l:; s: l:" },

	/* Allowed: the smallest remaining. */
	{ A B C, "a allow 5 1\nb allow 3 1\nc allow 7 1\n", UP, "",
	    "allowed b 3 0; s:abc. l:; s: l:" },
	{ A B C, "a allow 0 1\nb allow 3 9\nc allow 7 9\n", UP, "",
	    "allowed a 0 0; s:abc. l:; s: l:" },
	/* A tie: the longest next. */
	{ A B C, "a allow 3 1\nb allow 3 2\nc allow 4 9\n", UP, "",
	    "allowed b 3 0; s:abc. l:; s: l:" },
	{ A B, "a allow 3 2\nb allow 3 1\n", UP, "",
	    "allowed a 3 0; s:ab. l:; s: l:" },
	/* Then file order, whatever the scopes. */
	{ A B, "a allow 3 2\nb allow 3 2\n", UP, "",
	    "allowed a 3 0; s:ab. l:; s: l:" },
	{ A B LOCAL, "a allow 3 2\n", UP, "b allow 3 2\n",
	    "allowed a 3 0; s:a. l:b.; s: l:" },
	{ A LOCAL B, "b allow 3 2\n", UP, "a allow 3 2\n",
	    "allowed a 3 0; s:b. l:a.; s: l:" },
	{ A LOCAL B C LOCAL, "b allow 2 1\n", UP, "a allow 3 1\nc allow 1 1\n",
	    "allowed c 1 0; s:b. l:ac.; s: l:" },
	/* Several rates of one limit are as several limits. */
	{ "[limit a]\nrate = 5/1s, 9/1m\n",
	    "a/1000 allow 4 1\na/60000 allow 2 1\n", UP, "",
	    "allowed a 2 0; s:aa. l:; s: l:" },

	/* Refused: the longest retry; never is longest. */
	{ A B C, "a refuse 100\nb refuse 300\nc allow 0 1\n", UP, "",
	    "refused b 0 300; s:abc. l:; s: l:" },
	{ A B, "a refuse 300\nb refuse 100\n", UP, "",
	    "refused a 0 300; s:ab. l:; s: l:" },
	{ A B, "a refuse -1\nb refuse 31622400000000\n", UP, "",
	    "refused a 0 -1; s:ab. l:; s: l:" },
	{ A B, "a refuse 31622400000000\nb refuse -1\n", UP, "",
	    "refused b 0 -1; s:ab. l:; s: l:" },
	{ A B, "a refuse -1\nb refuse -1\n", UP, "",
	    "refused a 0 -1; s:ab. l:; s: l:" },
	{ A B, "a allow 0 1\nb refuse 5\n", UP, "",
	    "refused b 0 5; s:ab. l:; s: l:" },
	{ "[limit a]\nrate = 5/1s, 9/1m\n",
	    "a/1000 refuse 7\na/60000 refuse 70\n", UP, "",
	    "refused a 0 70; s:aa. l:; s: l:" },

	/* Local ones are asked first, and get back what was in vain. */
	{ A B LOCAL, "a allow 1 1\n", UP, "b refuse 9\n",
	    "refused b 0 9; s: l:b.; s: l:" },
	{ A B LOCAL C LOCAL, "a refuse 9\n", UP, "b allow 1 1\nc allow 1 1\n",
	    "refused a 0 9; s:a. l:bc.; s: l:bc." },
	{ A LOCAL B LOCAL, "", UP, "a allow 1 1\nb refuse 9\n",
	    "refused b 0 9; s: l:ab.; s: l:" },

	/* `deny` asks nobody and has no end. */
	{ "[limit a]\nrate = deny\n", "", UP, "",
	    "refused a 0 -1; s: l:; s: l:" },
	{ A LOCAL B "[limit c]\nrate = deny\n", "", UP, "",
	    "refused c 0 -1; s: l:; s: l:" },
	{ A "[limit c]\nrate = deny\npath = /x\n", "a allow 1 1\n", UP, "",
	    "allowed a 1 0; s:a. l:; s: l:" },
	/* A key that must be there and is not: 403, nothing is taken. */
	{ A LOCAL B "key = header:K\nmissing_key = deny\n", "", UP, "",
	    "forbidden b - 0; s: l:; s: l:" },
	{ A "key = header:K\nmissing_key = skip\n", "", UP, "",
	    "unlimited - - 0; s: l:; s: l:" },

	/* No answer: each limit takes its own on_outage. */
	{ A B, "", OUT, "", "allowed - - 0 out; s:ab. l:; s: l:" },
	{ A B DENY, "", OUT, "", "outage b - 700000 out; s:ab. l:; s: l:" },
	{ A DENY B, "", OUT, "", "outage a - 700000 out; s:ab. l:; s: l:" },
	/* Numbers without those of the store that is out would be lies. */
	{ A B LOCAL, "", OUT, "b allow 3 1\n",
	    "allowed - - 0 out; s:a. l:b.; s: l:" },
	{ A DENY B LOCAL, "", OUT, "b allow 3 1\n",
	    "outage a - 700000 out; s:a. l:b.; s: l:b." },
	{ A DENY B LOCAL, "", OUT, "b refuse 9\n",
	    "refused b 0 9; s: l:b.; s: l:" },

	/* An error on one key is that limit's outage. */
	{ A B, "a error\nb allow 3 1\n", UP, "",
	    "allowed - - 0 out; s:ab. l:; s: l:" },
	{ A B, "a allow 3 1\nb error\n", UP, "",
	    "allowed - - 0 out; s:ab. l:; s: l:" },
	{ A B, "a error\nb refuse 9\n", UP, "",
	    "refused b 0 9 out; s:ab. l:; s: l:" },
	{ A B, "a refuse 9\nb error\n", UP, "",
	    "refused a 0 9 out; s:ab. l:; s: l:" },
	{ A B C LOCAL, "a refuse 9\nb error\n", UP, "c allow 1 1\n",
	    "refused a 0 9 out; s:ab. l:c.; s: l:c." },
	/* A `deny` without an answer is 503, whoever refuses beside it. */
	{ A DENY B, "a error\nb refuse 9\n", UP, "",
	    "outage a - 0 out; s:ab. l:; s: l:" },
	{ A B DENY, "a refuse 9\nb error\n", UP, "",
	    "outage b - 0 out; s:ab. l:; s: l:" },
	/* What the others took goes back, and what was not taken does not. */
	{ A DENY B C LOCAL, "a error\nb allow 3 1\n", UP, "c allow 1 1\n",
	    "outage a - 0 out; s:ab. l:c.; s:b. l:c." },
	{ A B DENY, "a allow 3 1\nb error\n", UP, "",
	    "outage b - 0 out; s:ab. l:; s:a. l:" },
	{ A DENY, "a error\n", UP, "", "outage a - 0 out; s:a. l:; s: l:" },
	{ A LOCAL B LOCAL C, "c allow 5 1\n", UP, "a error\nb allow 3 1\n",
	    "allowed - - 0 out; s:c. l:ab.; s: l:" },

	/* Observed limits are in no header and no status. */
	{ A OBSERVE, "a refuse 9\n", UP, "",
	    "unlimited - - 0; s:a. l:; s: l:" },
	{ A OBSERVE, "a allow 3 1\n", UP, "",
	    "unlimited - - 0; s:a. l:; s: l:" },
	{ A OBSERVE B, "a refuse 9\nb allow 3 1\n", UP, "",
	    "allowed b 3 0; s:ab. l:; s: l:" },
	{ A OBSERVE B, "a allow 0 9\nb allow 3 1\n", UP, "",
	    "allowed b 3 0; s:ab. l:; s: l:" },
	{ A OBSERVE B, "a refuse -1\nb refuse 5\n", UP, "",
	    "refused b 0 5; s:ab. l:; s: l:" },
	{ "[limit a]\nrate = deny\n" OBSERVE B, "b allow 3 1\n", UP, "",
	    "allowed b 3 0; s:b. l:; s: l:" },
	{ A "key = header:K\nmissing_key = deny\n" OBSERVE B, "b allow 3 1\n",
	    UP, "", "allowed b 3 0; s:b. l:; s: l:" },
	/* Nor is what they were not told. */
	{ A OBSERVE DENY B LOCAL, "", OUT, "b allow 3 1\n",
	    "allowed b 3 0; s:a. l:b.; s: l:" },
	{ A OBSERVE DENY B, "a error\nb allow 3 1\n", UP, "",
	    "allowed b 3 0; s:ab. l:; s: l:" },
	/* They count as if alone: whoever else refuses, nothing goes back. */
	{ A LOCAL OBSERVE B LOCAL C, "c refuse 9\n", UP,
	    "a allow 1 1\nb allow 1 1\n",
	    "refused c 0 9; s:c. l:ab.; s: l:b." },
	{ A OBSERVE B LOCAL, "a allow 1 1\n", UP, "b refuse 9\n",
	    "refused b 0 9; s:a. l:b.; s: l:" },
	{ A OBSERVE C B LOCAL, "a allow 1 1\n", UP, "b refuse 9\n",
	    "refused b 0 9; s:a. l:b.; s: l:" },
	{ "[limit c]\nrate = deny\n" A OBSERVE B, "a allow 1 1\n", UP, "",
	    "refused c 0 -1; s:a. l:; s: l:" },
	{ A OBSERVE B "[limit c]\nrate = deny\n", "a allow 1 1\n", UP, "",
	    "refused c 0 -1; s:a. l:; s: l:" },
	{ A "key = header:K\nmissing_key = deny\n" B LOCAL OBSERVE, "", UP,
	    "b refuse 1\n", "forbidden a - 0; s: l:b.; s: l:" },

	/* on_outage = local asks the local table instead. */
	{ A INSTEAD, "a allow 3 1\n", UP, "", "allowed a 3 0; s:a. l:; s: l:" },
	{ A INSTEAD, "", OUT, "out allow 1 1\n",
	    "allowed - - 0 out; s:a. l:out.; s: l:" },
	/* A refusal has its own wait, and no numbers. */
	{ A INSTEAD, "", OUT, "out refuse 9\n",
	    "refused a - 9 out; s:a. l:out.; s: l:" },
	{ A INSTEAD "[limit b]\nrate = 5/1m\n" INSTEAD, "", OUT,
	    "out refuse 9\n", "refused a - 9 out; s:ab. l:outout.; s: l:" },
	/* By its own outage_rate; nobody is asked about the others. */
	{ A INSTEAD B, "", OUT, "out refuse 9\n",
	    "refused a - 9 out; s:ab. l:out.; s: l:" },
	{ A INSTEAD B DENY, "", OUT, "",
	    "outage b - 700000 out; s:ab. l:; s: l:" },
	{ A INSTEAD B LOCAL, "", OUT, "b allow 3 1\nout refuse 9\n",
	    "refused a - 9 out; s:a. l:b.out.; s: l:b." },
	{ A INSTEAD B, "a error\nb allow 3 1\n", UP, "out refuse 9\n",
	    "refused a - 9 out; s:ab. l:out.; s:b. l:" },
	{ A INSTEAD B, "a error\nb refuse 4\n", UP, "",
	    "refused b 0 4 out; s:ab. l:; s: l:" },
	{ A "on_outage = local\noutage_rate = deny\n", "", OUT, "",
	    "refused a - -1 out; s:a. l:; s: l:" },
	{ A "on_outage = local\noutage_rate = unlimited\n", "", OUT, "",
	    "allowed - - 0 out; s:a. l:; s: l:" },
	{ A INSTEAD, "", OUT, "out error\n",
	    "allowed - - 0 out; s:a. l:out.; s: l:" },
	{ A INSTEAD OBSERVE B, "", OUT, "out refuse 9\n",
	    "allowed - - 0 out; s:ab. l:out.; s: l:" },
};

static void
tell(const struct decision *d, struct buf *out)
{
	static const char *const kinds[] = { "undecided", "unlimited",
		"allowed", "refused", "forbidden", "ambiguous", "outage" };
	bool passes = decision_passes(d);

	/* Where there are no numbers to show, it speaks for no limit. */
	buf_addf(out, "%s %s ", kinds[d->kind],
	    d->limit == NULL || (passes && !d->has_numbers) ? "-"
							    : d->limit->name);
	if (d->has_numbers)
		buf_addf(out, "%lld", (long long)d->verdict.remaining);
	else
		buf_addf(out, "-");
	buf_addf(out, " %lld%s; s:%.*s l:%.*s; s:%.*s l:%.*s",
	    (long long)d->retry_us, d->outage ? " out" : "",
	    STR_ARG(shared.asked), STR_ARG(local.asked),
	    STR_ARG(shared.refunded), STR_ARG(local.refunded));
}

static void
start_fake(struct fake *f, const char *says, bool out)
{
	f->store.ops = &ops;
	f->says = says;
	f->out = out;
	buf_reset(&f->asked);
	buf_reset(&f->refunded);
}

/* The config outlives what the decision says of its limits. */
static struct config *
decide(const struct row *row, struct decision *d)
{
	struct stores stores = {
		.shared = &shared.store, .local = &local.store, .leases = leases
	};
	struct params params = params_of("REMOTE_ADDR=192.0.2.1", &arena);
	struct config *config;
	struct subject subject;
	struct buf text;

	buf_init(&text);
	buf_addf(&text, STORE "%s" BACKEND "%c", row->limits, '\0');
	config = load_warned(text.p);
	stores.naming = &config->store;
	buf_release(&text);
	start_fake(&shared, row->shared, row->out == OUT);
	start_fake(&local, row->local, false);
	assert_true(subject_read(
	    &subject, CONFIG_ROLE_RESPONDER, &params, config, &arena));
	memset(d, 0x5a, sizeof(*d));
	decision_make(d, config, &stores, &subject, &arena);
	return config;
}

static void
test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct decision d;
		struct config *config = decide(&table[i], &d);
		struct buf told;

		buf_init(&told);
		tell(&d, &told);
		if (!str_eq(buf_str(&told), str_of(table[i].expected)))
			print_message("row %zu:\n%s", i, table[i].limits);
		expect_str(buf_str(&told), str_of(table[i].expected));
		assert_int_equal(
		    d.store_wait_us, shared.asked.len > 0 ? 30 + 's' : 0);
		if (d.outage)
			assert_string_equal(d.reason,
			    table[i].out == OUT ? "it is out" : "one key");
		buf_release(&told);
		config_unref(config);
	}
}

/* What the headers list: who was asked and answered, in file order. */
static void
test_numbers(void **state)
{
	static const struct {
		struct row row;
		const char *policy;
		const char *rate;
	} told[] = {
		{ { A LOCAL B "[limit c]\nrate = 5/1s, 9/1m\n" D LOCAL,
		      "b allow 7 1\nc/1000 allow 4 1\nc/60000 allow 2 1\n", UP,
		      "a allow 9 1\nd allow 8 1\n", NULL },
		    "\"a\";q=10;w=60, \"b\";q=10;w=60, \"c-1s\";q=10;w=1, "
		    "\"c-1m\";q=10;w=60, \"d\";q=10;w=60",
		    "\"c-1m\";r=2;t=12" },
		{ { A B, "a refuse 9\nb refuse 8\n", UP, "", NULL },
		    "\"a\";q=10;w=60, \"b\";q=10;w=60", "\"a\";r=0;t=0" },
		/* Who was not asked, or gave no answer, is not listed. */
		{ { A B LOCAL, "", UP, "b refuse 9\n", NULL },
		    "\"b\";q=10;w=60", "\"b\";r=0;t=0" },
		{ { A B, "a error\nb refuse 9\n", UP, "", NULL },
		    "\"b\";q=10;w=60", "\"b\";r=0;t=0" },
		{ { "[limit a]\nrate = deny\n", "", UP, "", NULL }, "\"a\";q=0",
		    "\"a\";r=0" },
	};
	const struct numbers_style style = { .families = NUMBERS_DRAFT_11 };

	(void)state;
	for (size_t i = 0; i < COUNT(told); i++) {
		struct decision d;
		struct config *config = decide(&told[i].row, &d);
		struct buf got, expected;

		buf_init(&got);
		buf_init(&expected);
		assert_true(d.has_numbers);
		numbers_write(&got, &d.numbers, &style);
		buf_addf(&expected, "RateLimit-Policy: %s\r\nRateLimit: %s\r\n",
		    told[i].policy, told[i].rate);
		expect_str(buf_str(&got), buf_str(&expected));
		buf_release(&got);
		buf_release(&expected);
		config_unref(config);
	}
}

static int64_t clock_set_us; /* by how much, since the process began */

int64_t __real_clock_real_us(void);
int64_t __wrap_clock_real_us(void);

int64_t
__wrap_clock_real_us(void)
{
	return __real_clock_real_us() + clock_set_us;
}

/* Its times count from the check, by the clock of the store that did it. */
static void
test_when_it_was_so(void **state)
{
	static const struct row rows[] = {
		{ A B LOCAL, "a allow 3 1\n", UP, "b allow 5 1\n", NULL },
		{ A B LOCAL, "a allow 5 1\n", UP, "b allow 3 1\n", NULL },
		{ A, "a refuse 9\n", UP, "", NULL },
	};
	static const struct {
		size_t row;
		bool is_steady;
		int64_t set_us;
		int64_t want_us;
	} t[] = {
		{ 0, false, 0, 1000 + 's' },
		{ 1, false, 0, 1000 + 'l' },
		{ 2, false, 0, 1000 + 's' },
		/* Redis may stand on a host whose clock is wrong. */
		{ 2, false, 3600000000, 1000 + 's' },
		{ 1, true, 0, 1000 + 'l' },
		{ 0, true, 3600000000, 1000 + 's' },
	};
	struct config *config;
	struct decision d;

	(void)state;
	for (size_t i = 0; i < COUNT(t); i++) {
		local.store.is_steady = t[i].is_steady;
		clock_set_us = t[i].set_us;
		config = decide(&rows[t[i].row], &d);
		assert_int_equal(d.numbers.at_us, t[i].want_us);
		config_unref(config);
	}
	local.store.is_steady = true;
	clock_set_us = -3600000000;
	config = decide(&rows[1], &d);
	assert_in_range(
	    d.numbers.at_us + 3600000000 - 1000 - 'l' + 100000, 0, 200000);
	config_unref(config);
	local.store.is_steady = false;
	clock_set_us = 0;
}

/* What is refused for one limit and unanswered for another: in any order. */
static void
test_order_is_no_matter(void **state)
{
	static const struct row rows[] = {
		{ A DENY B, "a error\nb refuse 9\n", UP, "", "" },
		{ A B DENY, "a refuse 9\nb error\n", UP, "", "" },
	};
	struct decision d[2];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct config *config = decide(&rows[i], &d[i]);

		assert_true(d[i].outage);
		assert_int_equal(shared.refunded.len, 0);
		config_unref(config);
	}
	assert_int_equal(d[0].kind, d[1].kind);
	assert_int_equal(d[0].has_numbers, d[1].has_numbers);
	assert_int_equal(d[0].retry_us, d[1].retry_us);
}

#define LEASED "lease = 4\n"

/* It asks so, and is of that kind. */
static void
expect_asked(const char *limits, const char *says, int out, const char *asked,
    enum decision_kind kind)
{
	const struct row row = { limits, says, out, "c allow 9 1\n", "" };
	struct decision d;
	struct config *config = decide(&row, &d);

	expect_str(buf_str(&shared.asked), str_of(asked));
	assert_int_equal(d.kind, kind);
	assert_int_equal(shared.refunded.len, 0);
	config_unref(config);
}

/* What was taken ahead is asked for no more, unless another has to be. */
static void
test_leases(void **state)
{
	static const char a[] = A LEASED, ab[] = A LEASED B LEASED DENY;
	static const char both[] = "a allow 6 1\nb allow 6 1\n";

	(void)state;
	leases = leases_new(NULL, WAIT_US);
	shared.store.may_block = true;
	expect_asked(a, both, UP, "a.", DECISION_ALLOWED);
	expect_asked(a, "", OUT, "", DECISION_ALLOWED);
	expect_asked(A LEASED C LOCAL, "", OUT, "", DECISION_ALLOWED);
	/* What it had spent of a goes back: there are no others left. */
	expect_asked(ab, "", OUT, "b.", DECISION_OUTAGE);
	expect_asked(ab, "b refuse 9\n", UP, "b.", DECISION_REFUSED);
	expect_asked(ab, both, UP, "b.", DECISION_ALLOWED);
	expect_asked(ab, both, UP, "a.", DECISION_ALLOWED);
	expect_asked(ab, "", OUT, "", DECISION_ALLOWED);
	/* Another limit that is exact makes all of them so. */
	expect_asked(A LEASED B, both, UP, "ab.", DECISION_ALLOWED);
	expect_asked(
	    A LEASED B "mode = observe\n", both, UP, "ab.", DECISION_ALLOWED);
	/* Where no trip is made there is none to save. */
	shared.store.may_block = false;
	expect_asked(a, both, UP, "a.", DECISION_ALLOWED);
	leases_free(leases);
	leases = NULL;
}

/* What is held of a key is there for who has to ask, too. */
static void
test_figures_beside_a_lease(void **state)
{
	static const char says[] = "a allow 6 1\nb allow 6 1\n";
	static const struct row alone = { A LEASED, says, UP, "", "" };
	static const struct row both = { A LEASED B, says, UP, "", "" };
	struct config *config;
	struct decision d;

	(void)state;
	leases = leases_new(NULL, WAIT_US);
	shared.store.may_block = true;
	config = decide(&alone, &d);
	assert_int_equal(d.part[0].verdict.remaining, 9);
	config_unref(config);
	config = decide(&both, &d);
	expect_str(buf_str(&shared.asked), STR("ab."));
	assert_int_equal(d.part[0].verdict.remaining, 9);
	assert_int_equal(d.part[1].verdict.remaining, 6);
	config_unref(config);
	shared.store.may_block = false;
	leases_free(leases);
	leases = NULL;
}

/* Figures of a while ago are told with the time that has passed since. */
static void
test_figures_of_a_lease(void **state)
{
	static const struct row row = { A "algorithm = token_bucket\n" LEASED,
		"a allow 6 5000000\n", UP, "", "" };
	static const struct row both = { A
		"algorithm = token_bucket\n" LEASED B LEASED,
		"b allow 6 1\n", UP, "", "" };
	int64_t at_us = 0;
	struct config *config;
	struct decision d;

	(void)state;
	leases = leases_new(NULL, WAIT_US);
	shared.store.may_block = true;
	for (int i = 0; i < 3; i++) {
		config = decide(&row, &d);
		assert_int_equal(shared.asked.len, i == 0 ? 2 : 0);
		assert_int_equal(d.verdict.remaining, 9 - i);
		assert_true(d.numbers.at_us > at_us);
		assert_int_equal(
		    d.numbers.at_us + d.verdict.next_us, 1000 + 's' + 5000000);
		assert_int_equal(d.part[0].taken_us, 1000 + 's');
		assert_int_equal(d.part[0].check.check.full_us, FULL_US);
		at_us = d.numbers.at_us;
		config_unref(config);
	}
	/* Each by the trip in which its units were taken. */
	shared.later_us = 7;
	config = decide(&both, &d);
	expect_str(buf_str(&shared.asked), STR("b."));
	assert_int_equal(d.part[0].taken_us, 1000 + 's');
	assert_int_equal(d.part[1].taken_us, 1000 + 's' + 7);
	config_unref(config);
	shared.later_us = 0;
	shared.store.may_block = false;
	leases_free(leases);
	leases = NULL;
}

/* All that a request can come under, in one question. */
static void
test_many(void **state)
{
	struct buf limits, says;
	struct row row = { .out = UP, .local = "" };
	struct decision d;
	struct config *config;

	(void)state;
	buf_init(&limits);
	buf_init(&says);
	for (int i = 0; i < CONFIG_RATES_MAX; i++) {
		buf_addf(&limits, "[limit n%02d]\nrate = 5/1m\n", i);
		buf_addf(&says, "n%02d allow %d 1\n", i, 100 - i);
	}
	buf_add_char(&limits, '\0');
	buf_add_char(&says, '\0');
	row.limits = limits.p;
	row.shared = says.p;
	config = decide(&row, &d);
	assert_int_equal(shared.asked.len, CONFIG_RATES_MAX * 3 + 1);
	assert_int_equal(d.kind, DECISION_ALLOWED);
	assert_string_equal(d.limit->name, "n31");
	config_unref(config);
	buf_release(&limits);
	buf_release(&says);
}

static int
setup(void **state)
{
	arena_init(&arena);
	return enter_directory(state);
}

static int
teardown(void **state)
{
	arena_release(&arena);
	buf_release(&shared.asked);
	buf_release(&shared.refunded);
	buf_release(&local.asked);
	buf_release(&local.refunded);
	return leave_directory(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_when_it_was_so),
		cmocka_unit_test(test_order_is_no_matter),
		cmocka_unit_test(test_leases),
		cmocka_unit_test(test_figures_beside_a_lease),
		cmocka_unit_test(test_figures_of_a_lease),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests_name("decision", tests, setup, teardown);
}
