/*
 * fcgi_record: the bytes of the FastCGI protocol (FastCGI Specification
 * 1.0, Open Market 1996). Pure: bytes in, counts out, 0 = need more.
 */
#ifndef SLUICE_FCGI_RECORD_H
#define SLUICE_FCGI_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define FCGI_HEADER_BYTES 8
#define FCGI_CONTENT_MAX  65535
#define FCGI_PAIR_MAX     65527 /* name, value and their lengths: php-fpm's */

enum fcgi_type {
	FCGI_BEGIN_REQUEST = 1,
	FCGI_ABORT_REQUEST = 2,
	FCGI_END_REQUEST = 3,
	FCGI_PARAMS = 4,
	FCGI_STDIN = 5,
	FCGI_STDOUT = 6,
	FCGI_STDERR = 7,
	FCGI_DATA = 8,
	FCGI_GET_VALUES = 9,
	FCGI_GET_VALUES_RESULT = 10,
	FCGI_UNKNOWN_TYPE = 11,
};

enum fcgi_role { FCGI_RESPONDER = 1, FCGI_AUTHORIZER = 2, FCGI_FILTER = 3 };

enum fcgi_protocol_status {
	FCGI_REQUEST_COMPLETE = 0,
	FCGI_CANT_MPX_CONN = 1,
	FCGI_OVERLOADED = 2,
	FCGI_UNKNOWN_ROLE = 3,
};

#define FCGI_KEEP_CONN 1

struct fcgi_header {
	uint8_t version;
	uint8_t type;
	uint16_t id;
	uint16_t content; /* bytes */
	uint8_t padding;
};

/* Reads 8 bytes. */
void fcgi_header_read(const uint8_t *bytes, struct fcgi_header *header);
/* Writes 8 bytes: version 1, reserved 0. */
void fcgi_header_write(uint8_t bytes[FCGI_HEADER_BYTES], uint8_t type,
    uint16_t id, uint16_t content, uint8_t padding);
/* One whole record of a small content. */
void fcgi_add_record(
    struct buf *out, uint8_t type, uint16_t id, struct str content);
void fcgi_add_begin(struct buf *out, uint16_t id, uint16_t role, uint8_t flags);
void fcgi_add_end(
    struct buf *out, uint16_t id, uint32_t app_status, uint8_t protocol_status);
/* Gives whole records, one after the other, another id. */
void fcgi_set_id(struct buf *records, uint16_t id);

/*
 * One pair from the front of *rest: 1, and rest moves on; 0 when *rest is
 * empty; -1 when a length runs beyond it.
 */
int fcgi_pair_read(struct str *rest, struct str *name, struct str *value);
/* The bytes a pair takes, its lengths included. */
size_t fcgi_pair_bytes(size_t name_len, size_t value_len);
void fcgi_pair_add(struct buf *out, struct str name, struct str value);

/*
 * A stream of records in which no pair is split: fcgi_params_add for each
 * pair, then fcgi_params_end for the rest and the empty record.
 */
struct fcgi_params_writer {
	struct buf *out;
	uint16_t id;
	size_t header_at; /* where the open record's header stands */
	bool open;
};
void fcgi_params_start(
    struct fcgi_params_writer *w, struct buf *out, uint16_t id);
void fcgi_params_add(
    struct fcgi_params_writer *w, struct str name, struct str value);
void fcgi_params_end(struct fcgi_params_writer *w);

#endif
