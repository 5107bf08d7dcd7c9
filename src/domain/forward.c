#include "domain/forward.h"

static bool
is_left_out(struct str name, bool measured)
{
	if (str_eq_nocase(name, STR("HTTP_PROXY")) ||
	    str_eq(name, STR("FCGI_ROLE")))
		return true;
	return measured &&
	    (str_eq(name, STR("CONTENT_LENGTH")) ||
		str_eq(name, STR("HTTP_TRANSFER_ENCODING")));
}

static void
add(struct params *out, struct str name, struct str value)
{
	out->at[out->n++] = (struct param){ name, value };
}

static bool
add_length(struct params *out, uint64_t bytes, struct arena *arena)
{
	char digits[STR_DIGITS_MAX];
	struct str length = arena_copy(arena, str_of_u64(bytes, digits));

	add(out, STR("CONTENT_LENGTH"), length);
	return length.p != NULL;
}

bool
forward_params(const struct params *in, bool measured, uint64_t body_bytes,
    struct arena *arena, struct params *out)
{
	out->n = 0;
	out->at = arena_alloc(arena, (in->n + 2) * sizeof(*out->at));
	if (out->at == NULL)
		return false;
	/* Nothing came and nothing was announced: a request without body. */
	if (measured &&
	    (body_bytes > 0 ||
		params_count(in, STR("HTTP_TRANSFER_ENCODING")) > 0) &&
	    !add_length(out, body_bytes, arena))
		return false;
	for (size_t i = 0; i < in->n; i++)
		if (!is_left_out(in->at[i].name, measured))
			add(out, in->at[i].name, in->at[i].value);
	if (params_count(in, STR("REDIRECT_STATUS")) == 0)
		add(out, STR("REDIRECT_STATUS"), STR("200"));
	return true;
}
