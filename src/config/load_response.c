/*
 * [response], made ready for use: the files of bodies are read and tried,
 * and the headers to add become lines.
 */
#include "config/load.h"

#include <string.h>

#include "base/buf.h"
#include "config/file.h"
#include "pure/template.h"

static void
judge_body(struct load *l, const struct place *place, const char *path,
    enum accept_type type, struct str text)
{
	struct str unknown = template_unknown(text);
	struct err err;

	if (!template_check(text, type, &err))
		finding_error(&l->findings, place, "%s: %s", path, err.text);
	else if (unknown.p != NULL)
		finding_warning(&l->findings, place,
		    "%s: nothing is put in for %.*s: it is none of {limit}, "
		    "{retry_after}, {message}, {request_id}",
		    path, STR_ARG(unknown));
}

/* What is put in is bounded, and so is the whole body. */
static void
read_body(
    struct load *l, const char *key, const char *path, enum accept_type type)
{
	const struct source_section *section =
	    source_find(&l->source, OPTION_response, STR(""));
	const struct source_entry *e = source_entry(section, key);
	struct place place = load_place_in(l, OPTION_response, key);
	struct arena *arena = &l->config->arena;
	struct str *body = &l->config->response.reply.body[type];
	struct stat info;
	struct buf text;
	struct err err;

	if (path == NULL)
		return;
	buf_init(&text);
	path = file_path(arena, e->file->directory, str_of(path));
	if (path == NULL) {
		l->findings.failed = true;
	} else if (!file_read(path, TEMPLATE_BYTES_MAX, &text, &info, &err)) {
		finding_error(&l->findings, &place, "%s: %s", path, err.text);
	} else {
		*body = arena_copy(arena, buf_str(&text));
		l->findings.failed |= body->p == NULL;
		judge_body(l, &place, path, type, buf_str(&text));
	}
	buf_release(&text);
}

static void
check_origins(struct load *l)
{
	const struct config_list *origins = &l->config->response.cors_origin;
	struct place place = load_place_in(l, OPTION_response, "cors_origin");

	for (size_t i = 0; i < origins->n; i++)
		if (origins->n > 1 && strcmp(origins->at[i], "*") == 0)
			finding_error(&l->findings, &place, "* stands alone");
	l->config->response.reply.n_origins = origins->n;
	l->config->response.reply.origin = origins->at;
}

static struct str
name_of(const char *line)
{
	struct str rest = str_of(line);

	return str_cut(&rest, ':');
}

static bool
is_of_cors(struct str name)
{
	return str_eq_nocase(name, STR("Access-Control-Allow-Origin")) ||
	    str_eq_nocase(name, STR("Access-Control-Expose-Headers"));
}

/* A field that is no list may be there once; Set-Cookie is the exception. */
static void
check_added(struct load *l, const struct place *place, size_t at)
{
	const struct config_response *response = &l->config->response;
	struct str name = name_of(response->add_header.at[at]);

	if (response->cors_origin.n > 0 && is_of_cors(name))
		finding_error(&l->findings, place,
		    "cors_origin already says %.*s", STR_ARG(name));
	if (str_eq_nocase(name, STR("Set-Cookie")))
		return;
	for (size_t i = 0; i < at; i++)
		if (str_eq_nocase(name, name_of(response->add_header.at[i])))
			finding_error(&l->findings, place,
			    "%.*s is given twice", STR_ARG(name));
}

static void
make_lines(struct load *l)
{
	struct config_response *response = &l->config->response;
	const struct config_list *added = &response->add_header;
	struct place place = load_place_in(l, OPTION_response, "add_header");
	struct buf lines;

	buf_init(&lines);
	for (size_t i = 0; i < added->n; i++) {
		struct str value = str_of(added->at[i]);
		struct str name = str_cut(&value, ':');

		check_added(l, &place, i);
		buf_add_str(&lines, name);
		buf_add(&lines, ": ", 2);
		buf_add_str(&lines, str_trim(value));
		buf_add(&lines, "\r\n", 2);
	}
	response->reply.lines = arena_copy(&l->config->arena, buf_str(&lines));
	l->findings.failed |= lines.failed || response->reply.lines.p == NULL;
	buf_release(&lines);
}

void
load_response(struct load *l)
{
	const struct config_response *response = &l->config->response;

	read_body(l, "body_html", response->body_html, ACCEPT_HTML);
	read_body(l, "body_json", response->body_json, ACCEPT_JSON);
	read_body(l, "body_text", response->body_text, ACCEPT_TEXT);
	check_origins(l);
	make_lines(l);
}
