/*
 * A tier is written as a section of its own and looked up by limit: so each
 * limit gets the list of what tiers say of it, in their file order.
 */
#include "config/load.h"

#include <string.h>

#include "config/known_file.h"
#include "config/named.h"
#include "config/value.h"

static bool
is_of_limit(const struct source_entry *e)
{
	return e->option->kind == OPTION_TIER_RATES;
}

/* How many tiers speak of a limit. */
static size_t
count_of(const struct load *l, const struct config_limit *limit)
{
	size_t n = 0;

	for (size_t i = 0; i < l->config->n_tiers; i++)
		for (const struct source_entry *e = l->tier[i]->entry;
		     e != NULL; e = e->next)
			n += is_of_limit(e) &&
			    strcmp(e->place.key, limit->name) == 0;
	return n;
}

static bool
make_room(struct load *l)
{
	for (size_t i = 0; i < l->config->n_limits; i++) {
		struct config_limit *limit = &l->config->limit[i];

		limit->tier = arena_alloc(&l->config->arena,
		    count_of(l, limit) * sizeof(*limit->tier));
		if (limit->tier == NULL)
			return false;
	}
	return true;
}

static void
read_rates(struct load *l, const struct config_tier *tier,
    const struct source_entry *e)
{
	struct config_limit *limit =
	    named_limit(l->config, str_of(e->place.key));
	struct value_room room = { &l->config->arena, e->file->directory };
	struct config_tier_rates *rates;
	struct option option = *e->option;
	struct err err;

	if (limit == NULL) {
		finding_error(&l->findings, &e->place,
		    "there is no [limit %s]; a tier has `when`, and rates "
		    "under the names of limits",
		    e->place.key);
		return;
	}
	rates = &limit->tier[limit->n_tiers];
	rates->tier = tier;
	option.offset = 0;
	if (e->value.p == NULL)
		return;
	if (value_set(&option, e->value, &room, &rates->rates, &err))
		limit->n_tiers++;
	else
		finding_error(&l->findings, &e->place, "%s", err.text);
}

static void
read_values(
    struct load *l, const struct place *place, struct config_condition *c)
{
	struct buf list;
	struct err err;

	buf_init(&list);
	buf_addf(&list, "@%s", c->file);
	if (list.failed)
		l->findings.failed = true;
	else
		c->known = known_file_read(buf_str(&list), ".",
		    l->config->store.hasher, &l->config->arena, &err);
	if (!list.failed && c->known == NULL)
		finding_error(&l->findings, place, "%s", err.text);
	buf_release(&list);
}

/* What the web server took from a request; nobody but it says the others. */
static bool
is_of_clients(const struct config_condition *c)
{
	return c->kind == CONFIG_WHEN_HEADER ||
	    (c->kind == CONFIG_WHEN_PARAM &&
		str_starts(str_of(c->param), STR("HTTP_")));
}

static void
check_when(struct load *l, size_t at)
{
	const struct source_section *section = l->tier[at];
	struct config_tier *tier = &l->config->tier[at];
	struct place place = load_place(section, "when");

	if (!load_has(section, "when"))
		finding_error(&l->findings, &place, "is required");
	for (size_t i = 0; i < tier->when.n; i++) {
		struct config_condition *c = &tier->when.at[i];

		if (c->file != NULL && l->config->store.hasher != NULL)
			read_values(l, &place, c);
		else if (is_of_clients(c) &&
		    l->config->gateway.trusted_proxies.n == 0)
			finding_warning(&l->findings, &place,
			    "any client can send that header and be of this "
			    "tier: let its values come from a file "
			    "(%s:NAME=@FILE)",
			    c->kind == CONFIG_WHEN_PARAM ? "param" : "header");
	}
}

void
load_tiers(struct load *l)
{
	if (!make_room(l)) {
		l->findings.failed = true;
		return;
	}
	for (size_t i = 0; i < l->config->n_tiers; i++) {
		const struct source_section *section = l->tier[i];
		bool says_something = false;

		check_when(l, i);
		for (const struct source_entry *e = section->entry; e != NULL;
		     e = e->next) {
			if (!is_of_limit(e))
				continue;
			says_something = true;
			read_rates(l, &l->config->tier[i], e);
		}
		if (!says_something)
			finding_error(&l->findings, &section->place,
			    "changes no limit: give it LIMIT = RATE");
	}
}
