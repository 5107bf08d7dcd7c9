/*
 * Where each source of a key has its value. What a client can write twice
 * (a header that the web server folds into one name, a field of a form)
 * chooses no count: see is_ambiguous. Of a query's and a cookie's names the
 * first is taken.
 */
#include "domain/tuple.h"

#include <string.h>

#include "pure/cookie.h"
#include "pure/form.h"
#include "pure/query.h"

static bool
client_value(const struct key_alternative *a, const struct subject *s,
    struct arena *arena, struct str *value)
{
	struct address network = s->network;
	char text[ADDRESS_TEXT_MAX];

	*value = s->client_text;
	if (!s->has_client)
		return true;
	if (a->ipv4_prefix > 0) {
		network = s->client;
		address_cut(&network, a->ipv4_prefix, a->ipv6_prefix);
	}
	address_format(&network, text);
	*value = arena_copy(arena, str_of(text));
	return value->p != NULL;
}

/* p NULL: the body is none, or is not here. */
static struct str
form_of(const struct subject *s)
{
	struct str type = params_get(s->params, STR("CONTENT_TYPE"));

	return form_is_urlencoded(type) ? s->form_body : STR_NONE;
}

/* false: no memory. */
static bool
source_value(const struct key_alternative *a, const struct subject *s,
    struct arena *arena, struct str *value)
{
	struct str name = str_of(a->name);

	switch (a->source) {
	case KEY_CLIENT:
		return client_value(a, s, arena, value);
	case KEY_HEADER:
		*value = subject_header(s, name);
		return true;
	case KEY_COOKIE:
		return cookie_get(params_get(s->params, STR("HTTP_COOKIE")),
		    name, arena, value);
	case KEY_QUERY:
		return query_get(params_get(s->params, STR("QUERY_STRING")),
		    name, arena, value);
	case KEY_FORM:
		return form_get(form_of(s), name, arena, value);
	case KEY_PARAM:
		*value = params_get(s->params, name);
		return true;
	case KEY_HOST:
		*value = s->host;
		return true;
	case KEY_PATH:
		*value = s->path;
		return true;
	case KEY_METHOD:
		*value = s->method;
		return true;
	case KEY_GLOBAL:
		*value = STR("global");
		return true;
	}
	return false;
}

static bool
is_unknown(const struct config_limit *l, const struct key_alternative *a,
    struct str value)
{
	return l->known != NULL && a->name[0] != '\0' && value.len > 0 &&
	    !known_has(l->known, value);
}

/* The first alternative that is there; some are never missing. */
static enum tuple_state
read_part(const struct config_limit *l, const struct key_part *part,
    const struct subject *s, struct arena *arena, struct str *value,
    uint8_t *chosen)
{
	enum tuple_state state = TUPLE_MISSING;

	for (size_t i = 0; i < part->n; i++) {
		const struct key_alternative *a = &part->alternative[i];

		if (!source_value(a, s, arena, value))
			return TUPLE_FAILED;
		if (is_unknown(l, a, *value)) {
			state = TUPLE_UNKNOWN;
			continue;
		}
		*chosen = key_chosen(part, i);
		if (value->len > 0 || a->source == KEY_HOST ||
		    a->source == KEY_PATH || a->source == KEY_METHOD)
			return TUPLE_THERE;
	}
	return state;
}

/* The param a client can have sent twice; p NULL: none. */
static struct str
param_of(const struct key_alternative *a)
{
	switch (a->source) {
	case KEY_HEADER:
	case KEY_PARAM:
		return str_of(a->name);
	case KEY_COOKIE:
		return STR("HTTP_COOKIE");
	case KEY_QUERY:
		return STR("QUERY_STRING");
	case KEY_FORM:
		return STR("CONTENT_TYPE");
	case KEY_CLIENT:
	case KEY_HOST:
	case KEY_PATH:
	case KEY_METHOD:
	case KEY_GLOBAL:
		break;
	}
	return STR_NONE;
}

static bool
is_twice(const struct key_alternative *a, const struct subject *s)
{
	struct str param = param_of(a);

	return (param.p != NULL && params_disagree(s->params, param)) ||
	    (a->source == KEY_FORM &&
		form_disagrees(form_of(s), str_of(a->name)));
}

/*
 * X-Api-Key beside X_Api_Key are one param given twice, and a form may have
 * a field twice: applications differ in which one they take, so neither may
 * choose the count.
 */
static bool
is_ambiguous(const struct key *key, const struct subject *s)
{
	for (size_t i = 0; i < key->n; i++)
		for (size_t k = 0; k < key->part[i].n; k++)
			if (is_twice(&key->part[i].alternative[k], s))
				return true;
	return false;
}

static bool
is_alone(const struct key *key, enum key_source source)
{
	return key->n == 1 && key->part[0].n == 1 &&
	    key->part[0].alternative[0].source == source;
}

enum tuple_state
tuple_tag(const struct config_limit *l, const struct config_store *naming,
    const struct subject *s, struct arena *arena, char tag[KEY_TAG_MAX])
{
	bool plain = is_alone(&l->key, KEY_GLOBAL) ||
	    (is_alone(&l->key, KEY_CLIENT) && s->has_client);
	struct key_tuple t = { .n = l->key.n };
	size_t len;

	if (is_ambiguous(&l->key, s))
		return TUPLE_TWICE;
	for (size_t i = 0; i < t.n; i++) {
		enum tuple_state state = read_part(
		    l, &l->key.part[i], s, arena, &t.value[i], &t.chosen[i]);

		if (state != TUPLE_THERE)
			return state;
	}
	len = plain ? key_tag(naming->hasher, t.value, 1, true, tag)
		    : key_tuple_tag(naming->hasher, &t, tag);
	return len > 0 ? TUPLE_THERE : TUPLE_FAILED;
}
