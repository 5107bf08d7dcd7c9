/*
 * cgi_head: the head of a CGI response (RFC 3875, 6), read as it comes.
 * Pure: bytes in, a verdict out. One thread at a time.
 *
 * Lines end in CRLF or LF. `Status: NNN[ reason]` is strict: three digits,
 * 100 to 999; an "HTTP/1.x NNN" first line (NPH) is taken as one. Without a
 * Status, a Location makes it 302, else it is 200. Refused: a NUL, a bare
 * CR, a folded line, a line without a colon, a name with blanks or control
 * characters, more than CGI_HEAD_BYTES_MAX or CGI_HEAD_FIELDS_MAX, two
 * Status lines, no line at all, two Content-Length that differ or one that
 * is no number. A 1xx head is dropped and the next one read; its bytes
 * count. Fields keep their order and their duplicates (Set-Cookie), but of
 * equal Content-Length only the first stays. However the bytes are cut into
 * feeds, the outcome is the same; the whole costs time linear in them.
 */
#ifndef SLUICE_CGI_HEAD_H
#define SLUICE_CGI_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define CGI_HEAD_BYTES_MAX  65536
#define CGI_HEAD_FIELDS_MAX 256

enum cgi_head_state { CGI_HEAD_MORE, CGI_HEAD_DONE, CGI_HEAD_BAD };

struct cgi_field {
	struct str name;
	struct str value;
};

struct cgi_head {
	struct buf raw;    /* owns what the fields point into */
	size_t head_start; /* behind the 1xx heads that were dropped */
	size_t line_start;
	size_t scanned; /* bytes of raw without a line end since then */
	struct cgi_field *field; /* once done; n_fields, heap */
	size_t n_fields;         /* without Status */
	int status;              /* once done: 100..999 */
	struct str reason;       /* may be empty */
	bool has_status;         /* the backend said it itself */
	bool has_location;
	int64_t content_length; /* -1: none */
	size_t body_at;         /* raw.p + body_at: body bytes that came
	                               along with the head */
	struct err error;       /* why it is bad, for the log */
};

void cgi_head_init(struct cgi_head *h);
void cgi_head_release(struct cgi_head *h);
/*
 * Takes all `len` bytes. After DONE the fields stand, raw's tail from
 * body_at on is body, and it is not called again.
 */
enum cgi_head_state cgi_head_feed(
    struct cgi_head *h, const char *bytes, size_t len);
/* The first field of that name, whatever its case; NULL: none. */
const struct cgi_field *cgi_head_field(
    const struct cgi_head *h, struct str name);

#endif
