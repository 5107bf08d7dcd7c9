/*
 * What a limit is, as text: its options in the order of the table, but for
 * those that are as they would be anyway, and for its message and its lease,
 * which change no count; then what tiers say of it. Rates and times are
 * written as they were understood: 5/60m is 5/1h.
 */
#include <string.h>

#include "base/buf.h"
#include "config/load.h"

/* Their order tells which of a key's own counts is whose. */
static void
add_rates(struct buf *text, const char *key, const struct rates *rates)
{
	buf_addf(text, "%s=%d", key, (int)rates->kind);
	for (size_t i = 0; i < rates->n; i++) {
		const struct rate *rate = &rates->rate[i];

		buf_addf(text, ",%lld/%lld/%d burst %lld",
		    (long long)rate->count, (long long)rate->period_us,
		    (int)rate->calendar, (long long)rate->burst);
	}
	buf_add_char(text, '\n');
}

static bool
is_as_preset(const struct option *option, const struct source_entry *e)
{
	return e == NULL ||
	    (option->preset != NULL &&
		str_eq(e->value, str_of(option->preset)));
}

static void
add_option(struct buf *text, const struct option *option,
    const struct source_section *section, const struct config_limit *limit)
{
	const struct source_entry *e = source_entry(section, option->key);
	const void *field = (const char *)limit + option->offset;

	if (strcmp(option->key, "message") == 0 ||
	    strcmp(option->key, "lease") == 0)
		return;
	if (option->kind == OPTION_RATES)
		add_rates(text, option->key, field);
	else if (option->kind == OPTION_DURATION)
		buf_addf(text, "%s=%lld\n", option->key,
		    (long long)*(const int64_t *)field);
	else if (!is_as_preset(option, e))
		buf_addf(text, "%s=%.*s\n", option->key, STR_ARG(e->value));
}

/* The gateway's, where it makes the key. */
static void
add_prefixes(struct buf *text, const struct config_gateway *gateway,
    const struct config_limit *limit)
{
	if (key_uses(&limit->key, KEY_CLIENT))
		buf_addf(text, "client/%u,%u\n", (unsigned)gateway->ipv4_prefix,
		    (unsigned)gateway->ipv6_prefix);
}

/* What a tier says of the limit, and of whom. */
static void
add_tier(struct buf *text, const struct load *l,
    const struct config_tier_rates *said)
{
	const struct source_section *section =
	    l->tier[said->tier - l->config->tier];
	const struct source_entry *when = source_entry(section, "when");

	buf_addf(text, "[tier %s]\n", said->tier->name);
	if (when != NULL)
		buf_addf(text, "when=%.*s\n", STR_ARG(when->value));
	add_rates(text, "rate", &said->rates);
}

void
load_definitions(struct load *l)
{
	struct config *c = l->config;
	struct buf text;

	buf_init(&text);
	for (size_t i = 0; i < c->n_limits; i++) {
		buf_reset(&text);
		for (size_t k = 0; k < option_count; k++)
			if (option_table[k].section == OPTION_limit)
				add_option(&text, &option_table[k], l->limit[i],
				    &c->limit[i]);
		add_prefixes(&text, &c->gateway, &c->limit[i]);
		for (size_t k = 0; k < c->limit[i].n_tiers; k++)
			add_tier(&text, l, &c->limit[i].tier[k]);
		c->limit[i].definition = arena_copy(&c->arena, buf_str(&text));
		if (text.failed || c->limit[i].definition.p == NULL)
			l->findings.failed = true;
	}
	buf_release(&text);
}
