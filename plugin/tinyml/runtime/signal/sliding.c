/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include <tinyml/stream.h>

size_t tinyml_sliding_push(struct tinyml_sliding *window, const void *frames, size_t count)
{
	const uint8_t *from = (const uint8_t *)frames;
	const uint32_t bytes = window->frame_bytes;
	const size_t missing = window->frames - window->filled;
	const size_t taken = count < missing ? count : missing;
	size_t left = taken;

	while (left > 0) { /* twice at most: up to the end of the ring, and from its start */
		const size_t room = window->frames - window->next;
		const size_t part = left < room ? left : room;

		memcpy((uint8_t *)window->data + window->next * bytes, from, part * bytes);
		from += part * bytes;
		left -= part;
		window->next = part == room ? 0 : window->next + (uint32_t)part;
	}
	window->filled += (uint32_t)taken;
	return taken;
}

void tinyml_sliding_copy(const struct tinyml_sliding *window, void *out)
{
	const uint8_t *data = (const uint8_t *)window->data;
	const size_t start = (size_t)window->next * window->frame_bytes;
	const size_t older = (size_t)window->frames * window->frame_bytes - start;

	memcpy(out, data + start, older);
	memcpy((uint8_t *)out + older, data, start);
}
