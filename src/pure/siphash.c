#include "pure/siphash.h"

#include <string.h>

static uint64_t
turn(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void
sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = turn(v[1], 13) ^ v[0];
	v[0] = turn(v[0], 32);
	v[2] += v[3];
	v[3] = turn(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = turn(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = turn(v[1], 17) ^ v[2];
	v[2] = turn(v[2], 32);
}

/* Up to 8 bytes, little endian, as the paper has it. */
static uint64_t
word(const char *p, size_t n)
{
	uint64_t w = 0;

	for (size_t i = 0; i < n; i++)
		w |= (uint64_t)(unsigned char)p[i] << (8 * i);
	return w;
}

uint64_t
siphash(const uint64_t secret[2], struct str s)
{
	uint64_t v[4] = { secret[0] ^ UINT64_C(0x736f6d6570736575),
		secret[1] ^ UINT64_C(0x646f72616e646f6d),
		secret[0] ^ UINT64_C(0x6c7967656e657261),
		secret[1] ^ UINT64_C(0x7465646279746573) };
	uint64_t last = (uint64_t)s.len << 56;
	size_t i = 0;

	for (; s.len - i >= 8; i += 8) {
		uint64_t m = word(s.p + i, 8);

		v[3] ^= m;
		sip_round(v);
		v[0] ^= m;
	}
	last |= word(s.p + i, s.len - i);
	v[3] ^= last;
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int k = 0; k < 3; k++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
