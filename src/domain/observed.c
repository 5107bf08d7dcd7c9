#include "domain/observed.h"

#include "base/counter.h"
#include "base/log.h"

void
observed_would_refuse(const struct subject *subject,
    const struct config_limit *limit, const char *why)
{
	struct log_line line;

	counter_add(COUNTER_would_refuse, 1);
	log_begin(&line, LOG_LEVEL_INFO, "would_refuse");
	log_text(&line, "limit", limit->name);
	log_text(&line, "reason", why);
	log_str(&line, "client", subject->client_text);
	log_str(&line, "method", subject->method);
	log_str(&line, "host", subject->host);
	log_str(&line, "path", subject->path);
	log_end(&line);
}

void
observed_tell(const struct decision *d, const struct subject *subject)
{
	const struct config_limit *last = NULL;

	for (size_t i = 0; i < d->n_parts; i++) {
		const struct decision_part *part = &d->part[i];

		if (part->limit->mode != CONFIG_MODE_OBSERVE ||
		    part->limit == last ||
		    part->verdict.kind != VERDICT_REFUSED)
			continue;
		last = part->limit;
		observed_would_refuse(subject, last, "used up");
	}
}
