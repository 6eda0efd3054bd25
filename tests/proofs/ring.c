/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * deep: yes
 * proves: signal/ring.c
 * shapes: rings of one to six bytes in any state, any number of bytes put and got
 * unwind: 4
 */

#include <tinyml/stream.h>

#include "proof.h"

#define MOST 6

int main(void)
{
	const uint32_t size = (uint32_t)between(1, MOST);
	const uint32_t put = (uint32_t)between(0, 8), got = (uint32_t)between(0, 8);
	struct tinyml_ring ring = {.data = anything(size), .size = size};
	const uint8_t *data = anything(put);
	uint8_t *to = anything(got);
	uint32_t used, taken;

	ring.written = (uint32_t)between(0, 2 * MOST - 1);
	ring.read = (uint32_t)between(0, 2 * MOST - 1);
	ring.dropped = nondet_unsigned();
	__CPROVER_assume(ring.written < 2 * size && ring.read < 2 * size);
	__CPROVER_assume(tinyml_ring_used(&ring) <= size); /* what every call keeps: */
	used = tinyml_ring_used(&ring);
	if (tinyml_ring_put(&ring, data, put)) {
		__CPROVER_assert(tinyml_ring_used(&ring) == used + put, "all or nothing");
		used += put;
	}
	__CPROVER_assert(ring.written < 2 * size && tinyml_ring_used(&ring) <= size, "kept by put");
	taken = tinyml_ring_get(&ring, to, got);
	__CPROVER_assert(taken == (got < used ? got : used), "as many as there are");
	__CPROVER_assert(ring.read < 2 * size && tinyml_ring_used(&ring) == used - taken, "kept");
	return 0;
}
