/*
 * log_parse: a line of the log taken apart again, by what logfmt and JSON
 * say and not by what the log room does. Fails the test that reads a line
 * which is not well-formed. Included by a test after cmocka.h.
 */
#ifndef SLUICE_LOG_PARSE_H
#define SLUICE_LOG_PARSE_H

#include "base/log.h"

#define FIELDS_MAX 512

struct line {
	size_t n;
	char key[FIELDS_MAX][64];
	char value[FIELDS_MAX][LOG_LINE_MAX];
	bool quoted[FIELDS_MAX];
};

static struct line line;

static char
hex_byte(const char *p)
{
	char digits[3] = { p[2], p[3], 0 };

	if (p[0] != '0' || p[1] != '0' ||
	    strspn(digits, "0123456789abcdef") != 2)
		fail_msg("bad escape `%.4s`", p);
	return (char)strtol(digits, NULL, 16);
}

/* A quoted string at *p, up to and with its end. */
static void
take_quoted(const char **p, char *value)
{
	size_t n = 0;

	assert_int_equal(**p, '"');
	for ((*p)++; **p != '"'; (*p)++) {
		assert_true((unsigned char)**p >= 32 && **p != 127);
		value[n] = **p;
		if (**p == '\\') {
			(*p)++;
			value[n] = **p;
			if (**p == 'u') {
				value[n] = hex_byte(*p + 1);
				*p += 4;
			} else if (strchr("\"\\", **p) == NULL) {
				fail_msg("bad escape `%c`", **p);
			}
		}
		n++;
	}
	(*p)++;
	value[n] = '\0';
}

static void
take_bare(const char **p, char *value, const char *ends)
{
	size_t n = strcspn(*p, ends);

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)(*p)[i];

		assert_true(c > ' ' && c != 127 && c != '"' && c != '=');
	}
	memcpy(value, *p, n);
	value[n] = '\0';
	*p += n;
}

static void
take_value(const char **p, const char *ends)
{
	line.quoted[line.n] = **p == '"';
	if (line.quoted[line.n])
		take_quoted(p, line.value[line.n]);
	else
		take_bare(p, line.value[line.n], ends);
}

static const char *
parse_logfmt(const char *p)
{
	for (line.n = 0; line.n < FIELDS_MAX; line.n++) {
		size_t key = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_");

		assert_in_range(key, 1, 63);
		snprintf(line.key[line.n], 64, "%.*s", (int)key, p);
		p += key;
		assert_int_equal(*p++, '=');
		take_value(&p, " \n");
		if (*p == '\n')
			break;
		assert_int_equal(*p++, ' ');
	}
	line.n++;
	return p + 1;
}

static const char *
parse_json(const char *p)
{
	assert_int_equal(*p++, '{');
	for (line.n = 0; line.n < FIELDS_MAX; line.n++) {
		char key[LOG_LINE_MAX];

		take_quoted(&p, key);
		assert_in_range(strlen(key), 1, 63);
		memcpy(line.key[line.n], key, strlen(key) + 1);
		assert_int_equal(*p++, ':');
		take_value(&p, ",}");
		if (!line.quoted[line.n]) {
			char *end;

			strtoll(line.value[line.n], &end, 10);
			assert_int_equal(*end, '\0');
		}
		if (*p == '}')
			break;
		assert_int_equal(*p++, ',');
	}
	line.n++;
	assert_memory_equal(p, "}\n", 2);
	return p + 2;
}

/* Fills `line`; returns what stands behind it. */
static const char *
parse(const char *p, enum log_format format)
{
	return format == LOG_FORMAT_JSON ? parse_json(p) : parse_logfmt(p);
}

#endif
