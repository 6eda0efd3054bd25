/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What was learnt as bytes, and back. adapt/stored.py does the same. */

#include "exact.h"

#include <stddef.h>
#include <string.h>

#include "crc.h"

static uint32_t stored_crc(const uint8_t *data, size_t bytes)
{
	return ~crc_more(UINT32_MAX, data + 4, bytes - 4u);
}

/* Kind and digest, which follow each other in both structures. */
#define IDENTITY_BYTES (sizeof(uint32_t) + 8u)

_Static_assert(offsetof(struct tinyml_adapt, digest) == offsetof(struct tinyml_adapt, kind) + 4u &&
		       offsetof(struct tinyml_adapt_header, digest) ==
			       offsetof(struct tinyml_adapt_header, kind) + 4u,
	       "the digest follows the kind");

const void *tinyml_adapt_learnt(const struct tinyml_adapt *adapt, size_t *bytes)
{
	struct tinyml_adapt_header *const header = adapt->learnt;

	*bytes = 0;
	if (adapt->check != NULL && adapt->check(adapt) != 0) {
		return NULL;
	}
	memcpy((uint8_t *)header + 4, (const uint8_t *)adapt + offsetof(struct tinyml_adapt, kind),
	       IDENTITY_BYTES);
	header->crc = stored_crc((const uint8_t *)header, adapt->bytes);
	*bytes = adapt->bytes;
	return header;
}

int tinyml_adapt_accepts(const struct tinyml_adapt *adapt, const void *data, size_t bytes)
{
	const uint8_t *const from = data;
	uint32_t crc;

	if (bytes != adapt->bytes ||
	    memcmp(from + 4, (const uint8_t *)adapt + offsetof(struct tinyml_adapt, kind),
		   IDENTITY_BYTES) != 0) {
		return TINYML_ADAPT_EOTHER;
	}
	memcpy(&crc, from, sizeof(crc));
	return crc == stored_crc(from, bytes) &&
			       adapt->valid(adapt, from + sizeof(struct tinyml_adapt_header))
		       ? 0
		       : TINYML_ECORRUPT;
}

int tinyml_adapt_restore(const struct tinyml_adapt *adapt, const void *data, size_t bytes)
{
	const int status = tinyml_adapt_accepts(adapt, data, bytes);

	if (status == 0) {
		memset(adapt->run, 0, adapt->run_bytes);
		memmove(adapt->learnt, data, bytes);
	}
	return status;
}

void tinyml_adapt_factory(const struct tinyml_adapt *adapt)
{
	memset(adapt->learnt, 0, adapt->bytes);
	memset(adapt->run, 0, adapt->run_bytes);
}
