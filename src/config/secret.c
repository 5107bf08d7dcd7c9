#include "config/secret.h"

#include <string.h>

#include "base/buf.h"
#include "config/file.h"

static struct str
cut_newline(struct str text)
{
	if (text.len > 0 && text.p[text.len - 1] == '\n')
		text.len--;
	if (text.len > 0 && text.p[text.len - 1] == '\r')
		text.len--;
	return text;
}

static char *
copy(struct str text, struct arena *arena, struct err *err)
{
	struct str kept;

	if (text.len == 0) {
		err_set(err, "is empty");
		return NULL;
	}
	if (memchr(text.p, '\0', text.len) != NULL) {
		err_set(err, "holds a NUL byte");
		return NULL;
	}
	kept = arena_copy(arena, text);
	if (kept.p == NULL)
		err_set(err, "out of memory");
	return (char *)kept.p;
}

char *
secret_read(
    const char *path, struct arena *arena, bool *is_public, struct err *err)
{
	struct stat info;
	struct buf text;
	char *secret = NULL;

	buf_init(&text);
	if (file_read(path, SECRET_BYTES_MAX, &text, &info, err)) {
		*is_public = (info.st_mode & S_IROTH) != 0;
		secret = copy(cut_newline(buf_str(&text)), arena, err);
	}
	if (text.p != NULL)
		explicit_bzero(text.p, text.len);
	buf_release(&text);
	return secret;
}
