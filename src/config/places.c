#include "config/places.h"

uint64_t
places_may_block(const struct config_gateway *gateway)
{
	uint64_t kept = gateway->threads / 8 < 1 ? 1 : gateway->threads / 8;

	return gateway->threads > kept ? gateway->threads - kept : 1;
}

uint64_t
places_of_backend(const struct config_gateway *gateway)
{
	uint64_t most = places_may_block(gateway);
	uint64_t usual = gateway->threads * 3 / 4;

	if (usual >= most)
		usual = most - 1;
	return usual < 1 ? 1 : usual;
}
