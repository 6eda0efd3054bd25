/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What the player does with bytes, whatever they mean: copies, constants, tables. */

#include <string.h>

#include <tinyml/play_records.h>

#ifdef __riscv
typedef uint32_t __attribute__((may_alias)) play_bytes_word;
#endif

#define PLAY_BYTES_SHORT 32u

/* A few bytes, for which a call costs more than copying them; `to` is not behind `from`, or does
 * not meet it. */
static void play_bytes_short(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	for (; bytes >= 4u; bytes -= 4u, from += 4, to += 4) {
		uint32_t word;

		memcpy(&word, from, sizeof(word));
		memcpy(to, &word, sizeof(word));
		__asm__ volatile("" ::: "memory"); /* or it becomes a call of memmove() */
	}
	for (; bytes > 0u; bytes--) {
		*to++ = *from++;
		__asm__ volatile("" ::: "memory");
	}
}

/* memmove() takes several times as many instructions in some C libraries. */
static void play_bytes_move(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	const uintptr_t start = (uintptr_t)from, target = (uintptr_t)to;

#ifdef __riscv /* whose C libraries copy bytes, one after the other */
	if (((start | target) & 3u) == 0u && target - start >= bytes) {
		for (; bytes >= 16u; bytes -= 16u, from += 16, to += 16) {
			const play_bytes_word *const words = (const void *)from;
			const uint32_t a = words[0], b = words[1], c = words[2], d = words[3];
			play_bytes_word *const copies = (void *)to;

			copies[0] = a;
			copies[1] = b;
			copies[2] = c;
			copies[3] = d;
			__asm__ volatile("" ::: "memory"); /* or it becomes a call of memcpy() */
		}
	}
#endif
	if (bytes < PLAY_BYTES_SHORT && target - start >= bytes) {
		play_bytes_short(to, from, bytes);
	} else if (target - start >= bytes && start - target >= bytes) {
		memcpy(to, from, bytes);
	} else {
		memmove(to, from, bytes);
	}
}

void tinyml_play_copy(const struct tinyml_play *play)
{
	const struct tinyml_play_copy *record = play->record;
	const uint8_t *from = play->operand[0];
	uint8_t *to = play->operand[1];

	for (uint32_t rows = record->rows; rows > 0u; rows--) {
		play_bytes_move(to, from, record->bytes);
		from += record->from_step;
		to += record->to_step;
	}
}

static uint32_t play_bytes_span(uint32_t rows, uint32_t step, uint32_t bytes)
{
	return tinyml_check_plus(tinyml_check_times(rows - 1u, step), bytes);
}

uint32_t tinyml_check_copy(struct tinyml_check *check)
{
	const struct tinyml_play_copy *r = check->record;

	tinyml_check_that(check, r->rows > 0u);
	tinyml_check_reads(check, 0, play_bytes_span(r->rows, r->from_step, r->bytes), 1);
	tinyml_check_writes(check, 1, play_bytes_span(r->rows, r->to_step, r->bytes), 1);
	return tinyml_check_times(r->rows, tinyml_check_plus(r->bytes, 1));
}

void tinyml_play_fill(const struct tinyml_play *play)
{
	const struct tinyml_play_fill *record = play->record;

	memset(play->operand[0], (int)(uint8_t)record->value, record->bytes);
}

uint32_t tinyml_check_fill(struct tinyml_check *check)
{
	const struct tinyml_play_fill *r = check->record;

	tinyml_check_writes(check, 0, r->bytes, 1);
	return r->bytes;
}

void tinyml_play_lookup(const struct tinyml_play *play)
{
	const struct tinyml_play_lookup *record = play->record;
	const uint8_t *const table = play->image + record->table;
	const uint8_t *from = play->operand[0];
	const uint8_t *const end = from + record->count;
	const uint8_t *const fours = from + (record->count & ~3u);
	uint8_t *to = play->operand[1];

	for (; from != fours; from += 4, to += 4) {
		to[0] = table[from[0]];
		to[1] = table[from[1]];
		to[2] = table[from[2]];
		to[3] = table[from[3]];
	}
	while (from < end) {
		*to++ = table[*from++];
	}
}

uint32_t tinyml_check_lookup(struct tinyml_check *check)
{
	const struct tinyml_play_lookup *r = check->record;

	tinyml_check_reads(check, 0, r->count, 1);
	tinyml_check_writes(check, 1, r->count, 1);
	tinyml_check_constants(check, r->table, 256, 1);
	return r->count;
}
