#include "config/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"

struct finding {
	char *text; /* the whole line, heap */
	unsigned order;
	unsigned line;
	size_t sequence; /* keeps the sort stable */
	bool warning;
};

void
findings_init(struct findings *f)
{
	*f = (struct findings){ 0 };
}

void
findings_release(struct findings *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->at[i].text);
	free(f->at);
	findings_init(f);
}

static bool
has_room(struct findings *f)
{
	size_t cap = f->cap == 0 ? 16 : f->cap * 2;
	struct finding *grown;

	if (f->n < f->cap)
		return true;
	grown = realloc(f->at, cap * sizeof(*grown));
	if (grown == NULL)
		return false;
	f->at = grown;
	f->cap = cap;
	return true;
}

static void
print_place(struct buf *out, const struct place *place)
{
	buf_addf(out, "%s:", place->file);
	if (place->line > 0)
		buf_addf(out, "%u:", place->line);
	if (place->section != NULL)
		buf_addf(out, " %s", place->section);
	if (place->key != NULL)
		buf_addf(out, " %s:", place->key);
	buf_add_char(out, ' ');
}

static void
add(struct findings *f, const struct place *place, bool warning,
    const char *text)
{
	struct buf line;

	buf_init(&line);
	print_place(&line, place);
	buf_addf(&line, "%s%s", warning ? "warning: " : "", text);
	buf_add_char(&line, '\0');
	if (!warning)
		f->errors++;
	if (line.failed || !has_room(f)) {
		f->failed = true;
		buf_release(&line);
		return;
	}
	f->at[f->n] = (struct finding){
		.text = line.p,
		.order = place->order,
		.line = place->line,
		.sequence = f->n,
		.warning = warning,
	};
	f->n++;
}

void
finding_error(
    struct findings *f, const struct place *place, const char *format, ...)
{
	char text[ERR_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	add(f, place, false, text);
}

void
finding_warning(
    struct findings *f, const struct place *place, const char *format, ...)
{
	char text[ERR_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	add(f, place, true, text);
}

static int
compare(const void *a_void, const void *b_void)
{
	const struct finding *a = a_void;
	const struct finding *b = b_void;

	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->sequence < b->sequence ? -1 : 1;
}

void
findings_report(struct findings *f, config_report *report, void *context)
{
	if (f->n > 0)
		qsort(f->at, f->n, sizeof(*f->at), compare);
	for (size_t i = 0; i < f->n; i++)
		report(context, f->at[i].text, f->at[i].warning);
	if (f->failed)
		report(context, "out of memory", false);
}
