#include "config/config.h"

#include "base/buf.h"
#include "config/option.h"

#define COLUMNS 78

/* "count 1 to 1024; default 64; restart" */
static void
add_facts(struct buf *out, const struct option *o)
{
	struct buf bounds;

	buf_init(&bounds);
	option_print_bounds(&bounds, o);
	buf_addf(out, "%s%s%.*s; ",
	    o->kind == OPTION_WORD ? "" : option_kind_name(o->kind),
	    o->kind != OPTION_WORD && bounds.len > 0 ? " " : "",
	    STR_ARG(buf_str(&bounds)));
	if (o->preset != NULL)
		buf_addf(out, "default %s; ", o->preset);
	else
		buf_addf(out, "no default; ");
	buf_addf(out, "%s", o->restart ? "restart" : "reload");
	buf_release(&bounds);
}

void
config_print_options(FILE *out)
{
	struct buf facts;

	buf_init(&facts);
	for (size_t i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];

		buf_reset(&facts);
		add_facts(&facts, o);
		fprintf(out, "[%s] %s: %.*s. %s\n",
		    option_section_name(o->section), o->key,
		    STR_ARG(buf_str(&facts)), o->sentence);
	}
	buf_release(&facts);
}

/* As comment lines of at most COLUMNS. */
static void
print_wrapped(FILE *out, struct str text)
{
	size_t column = 0;

	while (text.p != NULL) {
		struct str word = str_cut(&text, ' ');

		if (column > 0 && column + 1 + word.len > COLUMNS) {
			fputc('\n', out);
			column = 0;
		}
		fprintf(out, "%s%.*s", column == 0 ? "# " : " ", STR_ARG(word));
		column += word.len + (column == 0 ? 2 : 1);
	}
	fputc('\n', out);
}

static void
print_option(FILE *out, const struct option *o)
{
	struct buf facts;

	buf_init(&facts);
	buf_add_char(&facts, '(');
	add_facts(&facts, o);
	buf_add_char(&facts, ')');
	fputc('\n', out);
	print_wrapped(out, str_of(o->sentence));
	print_wrapped(out, buf_str(&facts));
	fprintf(out, "%s%s = %s\n", o->required ? "" : "#", o->key,
	    o->preset != NULL ? o->preset : o->example);
	buf_release(&facts);
}

static const char *
section_head(enum option_section section)
{
	switch (section) {
	case OPTION_gateway:
		return "# The gateway itself.\n[gateway]\n";
	case OPTION_store:
		return "# Where counts are kept.\n[store]\n";
	case OPTION_limit:
		return "# A limit; any number of these, [limit NAME]. All that "
		       "match a request are\n# checked together.\n"
		       "[limit clients]\n";
	case OPTION_response:
		return "# What answers carry.\n[response]\n";
	case OPTION_tier:
		return "# A group of clients or keys with rates of its own; "
		       "any number of these,\n# [tier NAME].\n#[tier gold]\n";
	case OPTION_backend:
		return "# An application; any number of these, [backend NAME]. "
		       "The first that\n# matches gets the request; "
		       "[backend default] comes last.\n[backend default]\n";
	case OPTION_log:
		return "# The log.\n[log]\n";
	case OPTION_SECTIONS:
		break;
	}
	return "";
}

void
config_print_ini(FILE *out)
{
	enum option_section section = OPTION_SECTIONS;

	fputs("# Every option of Sluice. What is commented out shows the "
	      "default, or an\n"
	      "# example where there is none. Lines are taken whole: # and ; "
	      "begin a comment\n"
	      "# only at the start of a line. Lists are separated by commas; "
	      "an item @PATH\n"
	      "# stands for the lines of a file. ${NAME} is a variable of the "
	      "environment,\n"
	      "# $${ a plain ${. Durations: 50ms 10s 5m 1h 1d. "
	      "Sizes: 64k 10m 1g.\n"
	      "# To check the file: sluice check -c FILE\n",
	    out);
	for (size_t i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];

		if (o->section != section) {
			section = o->section;
			fprintf(out, "\n%s", section_head(section));
		}
		print_option(out, o);
	}
}
