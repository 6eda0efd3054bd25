/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What was learnt as bytes, and back. adapt/stored.py does the same. */

#include "exact.h"

#include <string.h>

#include <tinyml/crc32.h>

static uint32_t stored_crc(const void *data, size_t bytes)
{
	return tinyml_crc32(0, (const uint8_t *)data + 4, bytes - 4u);
}

const void *tinyml_adapt_learnt(const struct tinyml_adapt *adapt, size_t *bytes)
{
	struct tinyml_adapt_header *const header = adapt->learnt;

	*bytes = 0;
	if (adapt->check != NULL && adapt->check(adapt) != 0) {
		return NULL;
	}
	header->kind = adapt->kind;
	memcpy(header->digest, adapt->digest, sizeof(header->digest));
	header->crc = stored_crc(header, adapt->bytes);
	*bytes = adapt->bytes;
	return header;
}

int tinyml_adapt_accepts(const struct tinyml_adapt *adapt, const void *data, size_t bytes)
{
	struct tinyml_adapt_header header;

	if (bytes < sizeof(header)) {
		return TINYML_ECORRUPT;
	}
	memcpy(&header, data, sizeof(header));
	if (header.kind != adapt->kind || memcmp(header.digest, adapt->digest, 8) != 0 ||
	    bytes != adapt->bytes) {
		return TINYML_ADAPT_EOTHER;
	}
	return header.crc == stored_crc(data, bytes) &&
			       adapt->valid(adapt, (const uint8_t *)data + sizeof(header))
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
