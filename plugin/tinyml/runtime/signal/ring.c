/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include <tinyml/stream.h>

/* Places are counted modulo twice the size: an empty ring differs from a full one, and any size
 * will do. Each side writes only its own place, after a barrier that lets the other see the bytes
 * first. */

static uint32_t ring_distance(const struct tinyml_ring *ring, uint32_t from, uint32_t to)
{
	return to >= from ? to - from : to + 2 * ring->size - from;
}

static uint32_t ring_moved(const struct tinyml_ring *ring, uint32_t place, uint32_t bytes)
{
	const uint32_t sum = place + bytes;

	return sum >= 2 * ring->size ? sum - 2 * ring->size : sum;
}

static uint32_t ring_offset(const struct tinyml_ring *ring, uint32_t place)
{
	return place >= ring->size ? place - ring->size : place;
}

bool tinyml_ring_put(struct tinyml_ring *ring, const void *data, uint32_t bytes)
{
	const uint32_t read = __atomic_load_n(&ring->read, __ATOMIC_ACQUIRE);
	const uint32_t written = ring->written;

	if (bytes > ring->size - ring_distance(ring, read, written)) {
		__atomic_store_n(&ring->dropped, ring->dropped + bytes, __ATOMIC_RELAXED);
		return false;
	}
	const uint32_t start = ring_offset(ring, written);
	const uint32_t room = ring->size - start;
	const uint32_t first = bytes < room ? bytes : room;

	memcpy(ring->data + start, data, first);
	memcpy(ring->data, (const uint8_t *)data + first, bytes - first);
	__atomic_store_n(&ring->written, ring_moved(ring, written, bytes), __ATOMIC_RELEASE);
	return true;
}

uint32_t tinyml_ring_peek(const struct tinyml_ring *ring, const void **data)
{
	const uint32_t start = ring_offset(ring, ring->read);
	const uint32_t used = tinyml_ring_used(ring);
	const uint32_t room = ring->size - start;

	*data = ring->data + start;
	return used < room ? used : room;
}

void tinyml_ring_skip(struct tinyml_ring *ring, uint32_t bytes)
{
	__atomic_store_n(&ring->read, ring_moved(ring, ring->read, bytes), __ATOMIC_RELEASE);
}

uint32_t tinyml_ring_get(struct tinyml_ring *ring, void *data, uint32_t bytes)
{
	uint32_t taken = 0;

	while (taken < bytes) { /* twice at most: up to the end of the array, and from its start */
		const void *piece;
		const uint32_t there = tinyml_ring_peek(ring, &piece);
		const uint32_t part = there < bytes - taken ? there : bytes - taken;

		if (part == 0) {
			break;
		}
		memcpy((uint8_t *)data + taken, piece, part);
		tinyml_ring_skip(ring, part);
		taken += part;
	}
	return taken;
}

uint32_t tinyml_ring_used(const struct tinyml_ring *ring)
{
	return ring_distance(ring, ring->read, __atomic_load_n(&ring->written, __ATOMIC_ACQUIRE));
}

uint32_t tinyml_ring_dropped(const struct tinyml_ring *ring)
{
	return __atomic_load_n(&ring->dropped, __ATOMIC_RELAXED);
}
