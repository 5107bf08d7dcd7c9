/*
 * What a limit is, as text: its options in the order of the table, but for
 * those that are as they would be anyway, and for its message, which changes
 * no count; then what tiers say of it.
 */
#include <string.h>

#include "base/buf.h"
#include "config/load.h"

static void
add_option(struct buf *text, const struct option *option,
    const struct source_section *section)
{
	const struct source_entry *e = source_entry(section, option->key);

	if (e == NULL || strcmp(option->key, "message") == 0 ||
	    (option->preset != NULL &&
		str_eq(e->value, str_of(option->preset))))
		return;
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
    const struct config_limit *limit, const struct config_tier *tier)
{
	const struct source_section *section = l->tier[tier - l->config->tier];
	const struct source_entry *when = source_entry(section, "when");

	buf_addf(text, "[tier %s]\n", tier->name);
	if (when != NULL)
		buf_addf(text, "when=%.*s\n", STR_ARG(when->value));
	for (const struct source_entry *e = section->entry; e != NULL;
	     e = e->next)
		if (strcmp(e->place.key, limit->name) == 0)
			buf_addf(text, "rate=%.*s\n", STR_ARG(e->value));
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
				add_option(
				    &text, &option_table[k], l->limit[i]);
		add_prefixes(&text, &c->gateway, &c->limit[i]);
		for (size_t k = 0; k < c->limit[i].n_tiers; k++)
			add_tier(
			    &text, l, &c->limit[i], c->limit[i].tier[k].tier);
		c->limit[i].definition = arena_copy(&c->arena, buf_str(&text));
		if (text.failed || c->limit[i].definition.p == NULL)
			l->findings.failed = true;
	}
	buf_release(&text);
}
