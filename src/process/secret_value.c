#include "process/secret_value.h"

#include <stdio.h>
#include <string.h>

#define VALUE_BYTES_MAX 65536

static bool
read_all(struct buf *value)
{
	while (value->len <= VALUE_BYTES_MAX && buf_reserve(value, 4096)) {
		size_t n = fread(value->p + value->len, 1, 4096, stdin);

		value->len += n;
		if (n == 0)
			break;
	}
	if (value->len > 0 && value->p[value->len - 1] == '\n')
		value->len--;
	return !value->failed && !ferror(stdin) &&
	    value->len <= VALUE_BYTES_MAX;
}

bool
secret_value(const char *argument, struct buf *room, struct str *value)
{
	*value = str_of(argument);
	if (strcmp(argument, "-") != 0)
		return true;
	if (!read_all(room)) {
		fputs("sluice: the value can not be read\n", stderr);
		return false;
	}
	*value = buf_str(room);
	return true;
}

void
secret_value_release(struct buf *room)
{
	if (room->p != NULL)
		explicit_bzero(room->p, room->len);
	buf_release(room);
}
