/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SEGMENTS 64

struct state now;

static struct segment segments[MAX_SEGMENTS];
static unsigned segment_count;
static bool anywhere; /* a store reached an unknown place: what lies outside the stack is unknown */
static uint32_t unaligned;

static struct change *changes;
static size_t change_count, change_room;
static bool logging;

static void *more(void *memory, size_t bytes)
{
	void *found = realloc(memory, bytes);

	if (found == NULL) {
		fail("out of memory");
	}
	return found;
}

void add_segment(uint32_t base, uint32_t bytes, uint32_t writable, uint32_t is_stack,
		 const uint8_t *content, const uint8_t *unknown)
{
	struct segment *segment = &segments[segment_count];
	const size_t room = (size_t)bytes + 8;

	if (segment_count++ == MAX_SEGMENTS) {
		fail("too many segments");
	}
	*segment = (struct segment){
		base, bytes, writable, is_stack, calloc(room, 1), calloc(room, 1), calloc(room, 1)};
	if (segment->content == NULL || segment->unknown == NULL || segment->written == NULL) {
		fail("out of memory");
	}
	memcpy(segment->content, content, bytes);
	memcpy(segment->unknown, unknown, bytes);
}

static struct segment *segment_of(uint32_t address, unsigned bytes)
{
	static struct segment *last;

	if (last != NULL && address >= last->base && address - last->base + bytes <= last->bytes) {
		return last;
	}
	for (unsigned i = 0; i < segment_count; i++) {
		struct segment *segment = &segments[i];

		if (address >= segment->base && address - segment->base < segment->bytes &&
		    address - segment->base + bytes <= segment->bytes) {
			last = segment;
			return segment;
		}
	}
	return NULL;
}

static const struct value NOT_KNOWN = {0, true};

struct value load(uint32_t address, unsigned bytes)
{
	struct segment *segment = segment_of(address, bytes);
	struct value found = {0, false};
	uint32_t unknown = 0;

	unaligned += (address & (bytes - 1u)) != 0u;
	if (segment == NULL || (anywhere && segment->writable && !segment->is_stack)) {
		return NOT_KNOWN; /* a peripheral, or another image */
	}
	memcpy(&unknown, &segment->unknown[address - segment->base], 4);
	memcpy(&found.bits, &segment->content[address - segment->base], 4);
	if (bytes < 4u) { /* segments have room behind their end */
		const uint32_t mask = bytes == 1u ? 0xffu : 0xffffu;

		unknown &= mask;
		found.bits &= mask;
	}
	return unknown != 0u ? NOT_KNOWN : found;
}

static void log_word(struct segment *segment, uint32_t at)
{
	struct change *change;

	if (change_count == change_room) {
		change_room = change_room ? 2 * change_room : 1024;
		changes = more(changes, change_room * sizeof(*changes));
	}
	change = &changes[change_count++];
	change->segment = segment;
	change->at = at;
	memcpy(&change->content, &segment->content[at], 4);
	memcpy(&change->unknown, &segment->unknown[at], 4);
}

static void log_words(struct segment *segment, uint32_t at, unsigned bytes)
{
	for (uint32_t word = at & ~3u; word < at + bytes; word += 4) {
		log_word(segment, word);
	}
}

void store(uint32_t address, unsigned bytes, struct value value)
{
	struct segment *segment = segment_of(address, bytes);
	uint32_t at;

	unaligned += (address & (bytes - 1u)) != 0u;
	if (segment == NULL || !segment->writable) {
		char text[64];

		snprintf(text, sizeof(text), "a store to 0x%08x, which is no RAM of the image",
			 address);
		fail(text);
	}
	at = address - segment->base;
	if (logging) {
		log_words(segment, at, bytes);
	}
	for (unsigned i = 0; i < bytes; i++) {
		segment->content[at + i] = value.unknown ? 0 : (uint8_t)(value.bits >> (8 * i));
		segment->unknown[at + i] = value.unknown;
		segment->written[at + i] = 1;
	}
}

void store_anywhere(void)
{
	anywhere = true;
}

uint32_t unaligned_accesses(void)
{
	const uint32_t found = unaligned;

	unaligned = 0;
	return found;
}

void print_written(void)
{
	for (unsigned i = 0; i < segment_count; i++) {
		const struct segment *segment = &segments[i];
		uint32_t from = 0;

		for (uint32_t at = 0; at <= segment->bytes; at++) {
			const bool written = at < segment->bytes && segment->written[at];
			const bool before = at > 0 && segment->written[at - 1];

			if (written && !before) {
				from = at;
			} else if (!written && before) {
				printf("written %u %u\n", segment->base + from, segment->base + at);
			}
		}
	}
}

void keep_log(bool keep)
{
	logging = keep;
	if (!keep) {
		change_count = 0;
	}
}

size_t log_length(void)
{
	return change_count;
}

size_t undo(size_t from, struct change **kept)
{
	const size_t count = change_count - from;

	*kept = more(NULL, count * sizeof(**kept) + 1);
	for (size_t i = 0; i < count; i++) { /* what each word is now */
		struct change *change = &(*kept)[i];

		*change = changes[from + i];
		memcpy(&change->content, &change->segment->content[change->at], 4);
		memcpy(&change->unknown, &change->segment->unknown[change->at], 4);
	}
	while (change_count > from) {
		const struct change *change = &changes[--change_count];

		memcpy(&change->segment->content[change->at], &change->content, 4);
		memcpy(&change->segment->unknown[change->at], &change->unknown, 4);
	}
	return count;
}

void redo(const struct change *kept, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct change *change = &kept[i];

		log_word(change->segment, change->at);
		memcpy(&change->segment->content[change->at], &change->content, 4);
		memcpy(&change->segment->unknown[change->at], &change->unknown, 4);
	}
}

/* Bytes that differ from ``content`` and ``unknown`` become unknown. */
static void join_word(struct segment *segment, uint32_t at, uint32_t content, uint32_t unknown)
{
	uint8_t *here = &segment->content[at], *here_unknown = &segment->unknown[at];

	for (unsigned i = 0; i < 4; i++) {
		const uint8_t other = (uint8_t)(content >> (8 * i));
		const uint8_t other_unknown = (uint8_t)(unknown >> (8 * i));

		if (other_unknown || here_unknown[i] || here[i] != other) {
			here[i] = 0;
			here_unknown[i] = 1;
		}
	}
}

static int by_place(const void *left, const void *right)
{
	const struct change *a = left, *b = right;

	if (a->segment != b->segment) {
		return a->segment < b->segment ? -1 : 1;
	}
	return a->at < b->at ? -1 : a->at > b->at;
}

void join_memory(size_t from, struct change *other, size_t count)
{
	const size_t own_end = change_count;

	qsort(other, count, sizeof(*other), by_place);
	/* Words of the second way that the first did not touch: there they are as before both,
	 * which the earliest entry of the log tells. Later entries of the same word compare with a
	 * value in between: that can only make more unknown. */
	for (size_t i = from; i < own_end; i++) {
		const struct change change = changes[i];

		if (bsearch(&change, other, count, sizeof(*other), by_place) == NULL) {
			join_word(change.segment, change.at, change.content, change.unknown);
		}
	}
	for (size_t i = 0; i < count; i++) {
		log_word(other[i].segment, other[i].at);
		join_word(other[i].segment, other[i].at, other[i].content, other[i].unknown);
	}
}

void assume(unsigned cond, bool holds)
{
	static const uint8_t flags[] = {FLAG_Z, FLAG_C, FLAG_N, FLAG_V};

	if (cond / 2u < sizeof(flags)) { /* the others are of several flags */
		set_flag(flags[cond / 2u], (struct value){holds != (cond % 2u != 0u), false});
	}
}

int condition(unsigned cond)
{
	static const uint8_t needs[] = {FLAG_Z,
					FLAG_C,
					FLAG_N,
					FLAG_V,
					FLAG_C | FLAG_Z,
					FLAG_N | FLAG_V,
					FLAG_Z | FLAG_N | FLAG_V};
	const bool n = now.flags & FLAG_N, z = now.flags & FLAG_Z, c = now.flags & FLAG_C,
		   v = now.flags & FLAG_V;
	const uint8_t known = (uint8_t)~now.flags_unknown;
	bool holds;

	if (cond >= 14u) {
		return 1;
	}
	if ((cond >> 1 == 4u && ((known & FLAG_Z && z) || (known & FLAG_C && !c))) ||
	    (cond >> 1 == 6u && known & FLAG_Z && z)) {
		return (int)(cond & 1u); /* hi, gt and their opposites: one flag decides */
	}
	if (now.flags_unknown & needs[cond >> 1]) {
		return -1;
	}
	switch (cond >> 1) {
	case 0:
		holds = z;
		break;
	case 1:
		holds = c;
		break;
	case 2:
		holds = n;
		break;
	case 3:
		holds = v;
		break;
	case 4:
		holds = c && !z;
		break;
	case 5:
		holds = n == v;
		break;
	default:
		holds = !z && n == v;
		break;
	}
	return (int)holds ^ (int)(cond & 1u);
}
