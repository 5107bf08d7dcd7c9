#include "config/config.h"

#include <string.h>

#include "config/finding.h"
#include "config/option.h"

static bool
is_same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool
is_same_list(const struct config_list *a, const struct config_list *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!is_same_text(a->at[i], b->at[i]))
			return false;
	return true;
}

static bool
is_same_place(
    const struct config_addresses *a, const struct config_addresses *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!is_same_text(a->at[i].text, b->at[i].text))
			return false;
	return true;
}

/* a, b: the fields. */
static bool
is_same(enum option_kind kind, const void *a, const void *b)
{
	switch (kind) {
	case OPTION_COUNT:
	case OPTION_SIZE:
	case OPTION_DURATION:
	case OPTION_PERCENT:
	case OPTION_LEASE:
	case OPTION_MODE:
	case OPTION_WORD:
	case OPTION_WORDS:
		return memcmp(a, b, sizeof(uint64_t)) == 0;
	case OPTION_TEXT:
	case OPTION_PREFIX:
	case OPTION_NAME:
	case OPTION_PATH:
	case OPTION_USER:
	case OPTION_GROUP:
	case OPTION_TARGET:
	case OPTION_SECRET:
	case OPTION_FILE:
	case OPTION_STORE:
	case OPTION_INCLUDE:
		return is_same_text(*(char *const *)a, *(char *const *)b);
	case OPTION_VALUES_FILE:
	case OPTION_SECRET_FILE:
		/* What it holds is compared as the secret. */
		return true;
	case OPTION_USERS:
	case OPTION_VARIABLES:
	case OPTION_INTERPRETERS:
	case OPTION_ORIGINS:
	case OPTION_LINES:
		return is_same_list(a, b);
	case OPTION_ADDRESSES:
		return is_same_place(a, b);
	case OPTION_CIDRS:
	case OPTION_MATCH:
	case OPTION_HOSTS:
	case OPTION_HEADERS:
	case OPTION_FIELDS:
	case OPTION_CLIENT:
	case OPTION_KEY:
	case OPTION_RATES:
	case OPTION_COST:
	case OPTION_ZONE:
	case OPTION_STATUSES:
	case OPTION_WHEN:
	case OPTION_TIER_RATES:
		/* Of limits and backends, which a reload may change. */
		return true;
	}
	return true;
}

static const void *
base_of(const struct config *config, enum option_section section)
{
	switch (section) {
	case OPTION_gateway:
		return &config->gateway;
	case OPTION_store:
		return &config->store;
	case OPTION_response:
		return &config->response;
	case OPTION_log:
		return &config->log;
	case OPTION_limit:
	case OPTION_tier:
	case OPTION_backend:
	case OPTION_SECTIONS:
		break;
	}
	return NULL;
}

void
config_report_restarts(const struct config *running,
    const struct config *wanted, config_report *report, void *context)
{
	struct findings findings;

	findings_init(&findings);
	for (size_t i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];
		const char *a = base_of(running, o->section);
		const char *b = base_of(wanted, o->section);

		if (!o->restart || a == NULL ||
		    is_same(o->kind, a + o->offset, b + o->offset))
			continue;
		finding_warning(&findings, &wanted->restart_place[i],
		    "has changed, which takes a restart");
	}
	findings_report(&findings, report, context);
	findings_release(&findings);
}
