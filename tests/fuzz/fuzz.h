/*
 * fuzz: what the fuzz targets share. Each is one function over any bytes;
 * libFuzzer calls it (`make fuzz`), and replay.c with the kept corpus, as
 * an ordinary test.
 */
#ifndef SLUICE_FUZZ_H
#define SLUICE_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define FUZZ_EXPECT(law)                                                 \
	do {                                                             \
		if (!(law)) {                                            \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, \
			    __LINE__, #law);                             \
			abort();                                         \
		}                                                        \
	} while (0)

#endif
