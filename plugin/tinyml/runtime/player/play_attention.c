/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Attention of int8 and of float. */

#include <stddef.h>

#include <tinyml/attention.h>

#include "attention_calls.h"

enum { Q, K, V, Y, SCRATCH };                              /* operands of int8 */
enum { MASK = 3, Y_F32 = 4, SCRATCH_F32 = 5 };             /* and of float, from the fourth on */
enum { MOST = UINT16_MAX, EXPS = 256, MOST_FIXED = 8191 }; /* keys of softmax in fixed point */

static struct tinyml_heads play_attention_heads(const struct tinyml_play *play,
						const struct tinyml_play_heads *at)
{
	return (struct tinyml_heads){
		.heads = at->heads,
		.queries = at->queries,
		.keys = at->keys,
		.depth = at->depth,
		.values = at->values,
		.starts = tinyml_play_table(play, at->starts),
		.q_step = at->q_step,
		.k_step = at->k_step,
		.v_step = at->v_step,
		.y_step = at->y_step,
		.past = at->past,
	};
}

struct tinyml_attention_s8 tinyml_play_attention_all(const struct tinyml_play *play)
{
	const struct tinyml_play_attention_s8 *r = play->record;

	return (struct tinyml_attention_s8){
		.at = play_attention_heads(play, &r->at),
		.q_zero = r->q_zero,
		.k_zero = r->k_zero,
		.v_zero = r->v_zero,
		.score_multiplier = r->score_multiplier,
		.score_shift = r->score_shift,
		.score_zero = r->score_zero,
		.table = tinyml_play_table(play, r->table),
		.exps = tinyml_play_table(play, r->exps),
		.numerator = (uint64_t)r->numerator_high << 32 | r->numerator,
		.shift = r->shift,
		.weight_zero = r->weight_zero,
		.out_multiplier = r->out_multiplier,
		.out_shift = r->out_shift,
		.out_zero = r->out_zero,
		.by_table = r->by_table != 0u,
		.once = r->once != 0u,
	};
}

struct tinyml_attention_bytes tinyml_play_attention_bytes(const struct tinyml_play *play)
{
	return (struct tinyml_attention_bytes){
		.q = play->operand[Q],
		.k = play->operand[K],
		.v = play->operand[V],
		.y = play->operand[Y],
		.scratch = play->operand[SCRATCH],
	};
}

void tinyml_play_attention_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_attention_s8 *,
			    const struct tinyml_attention_bytes *);
	const struct tinyml_attention_s8 p = tinyml_play_attention_all(play);
	const struct tinyml_attention_bytes t = tinyml_play_attention_bytes(play);

	((kernel *)play->kernel->function)(&p, &t);
}

void tinyml_play_attention_masked_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_attention_s8 *,
			    const struct tinyml_attention_mask *,
			    const struct tinyml_attention_bytes *);
	const struct tinyml_play_attention_masked_s8 *r = play->record;
	const struct tinyml_attention_s8 p = tinyml_play_attention_all(play);
	const struct tinyml_attention_bytes t = tinyml_play_attention_bytes(play);
	const struct tinyml_attention_mask mask = {
		.visible = tinyml_play_table(play, r->visible),
		.step = p.at.keys,
	};

	((kernel *)play->kernel->function)(&p, &mask, &t);
}

struct tinyml_attention_f32 tinyml_play_attention_all_f32(const struct tinyml_play *play)
{
	const struct tinyml_play_attention_f32 *r = play->record;

	return (struct tinyml_attention_f32){
		.at = play_attention_heads(play, &r->at),
		.scale = r->scale,
		.softcap = r->softcap,
		.mask_starts = tinyml_play_table(play, r->mask_starts),
		.mask_step = r->mask_step,
		.empty = r->empty != 0u,
		.inverted = r->hides == 2u,
		.low = r->low,
	};
}

struct tinyml_attention_floats tinyml_play_attention_floats(const struct tinyml_play *play)
{
	const struct tinyml_play_attention_f32 *r = play->record;

	return (struct tinyml_attention_floats){
		.q = play->operand[Q],
		.k = play->operand[K],
		.v = play->operand[V],
		.mask = r->hides != 0u ? NULL : play->operand[MASK],
		.visible = r->hides != 0u ? play->operand[MASK] : NULL,
		.y = play->operand[Y_F32],
		.scratch = play->operand[SCRATCH_F32],
	};
}

void tinyml_play_attention_f32(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_attention_f32 *,
			    const struct tinyml_attention_floats *);
	const struct tinyml_attention_f32 p = tinyml_play_attention_all_f32(play);
	const struct tinyml_attention_floats t = tinyml_play_attention_floats(play);

	((kernel *)play->kernel->function)(&p, &t);
}

/* Bytes to the end of the last row, where `start` is the last head's. */
static uint32_t play_attention_end(uint32_t start, int32_t rows, int32_t step, int32_t elements,
				   uint32_t size)
{
	const uint32_t way = tinyml_check_times((uint32_t)rows - 1u, (uint32_t)step);

	return tinyml_check_times(
		tinyml_check_plus(tinyml_check_plus(start, way), (uint32_t)elements), size);
}

/* The largest of every `every`th number of a table, from `first` on; it is wrong if one is
 * negative. */
static uint32_t play_attention_last(struct tinyml_check *check, uint32_t table, int32_t heads,
				    uint32_t first, uint32_t every)
{
	const int32_t *starts = (const void *)(check->image + table);
	uint32_t last = 0;

	for (uint32_t i = 0; i < (uint32_t)heads; i++) {
		const int32_t start = starts[i * every + first];

		tinyml_check_that(check, start >= 0);
		last = (uint32_t)start > last ? (uint32_t)start : last;
	}
	return last;
}

static bool play_attention_count(int32_t number)
{
	return number > 0 && number <= MOST;
}

/* Where rows are; `y` is the operand that is written. Returns the work. */
static uint32_t play_attention_rows(struct tinyml_check *check, const struct tinyml_play_heads *at,
				    uint32_t size, uint32_t y)
{
	const uint32_t table = at->starts;
	uint32_t last[4];

	tinyml_check_that(
		check, play_attention_count(at->heads) && play_attention_count(at->queries) &&
			       play_attention_count(at->keys) && play_attention_count(at->depth) &&
			       play_attention_count(at->values) && at->q_step >= 0 &&
			       at->k_step >= 0 && at->v_step >= 0 && at->y_step >= 0 &&
			       at->past >= 0 && table != 0u);
	if (check->wrong) {
		return 0;
	}
	tinyml_check_constants(check, table, (uint32_t)at->heads * 16u, 4);
	if (check->wrong) {
		return 0;
	}
	for (uint32_t i = 0; i < 4u; i++) {
		last[i] = play_attention_last(check, table, at->heads, i, 4);
	}
	tinyml_check_reads(check, Q,
			   play_attention_end(last[0], at->queries, at->q_step, at->depth, size),
			   size);
	tinyml_check_reads(
		check, K, play_attention_end(last[1], at->keys, at->k_step, at->depth, size), size);
	tinyml_check_reads(check, V,
			   play_attention_end(last[2], at->keys, at->v_step, at->values, size),
			   size);
	tinyml_check_writes(check, y,
			    play_attention_end(last[3], at->queries, at->y_step, at->values, size),
			    size);
	return tinyml_check_times(
		tinyml_check_times((uint32_t)at->heads, (uint32_t)at->queries + 1u),
		tinyml_check_times((uint32_t)at->keys + 16u,
				   (uint32_t)at->depth + (uint32_t)at->values + 32u));
}

static bool play_attention_byte(int32_t zero)
{
	return zero >= INT8_MIN && zero <= INT8_MAX;
}

/* The sum of a row's exponentials is divided by: it is not 0, and does not start again. */
static void play_attention_exps(struct tinyml_check *check,
				const struct tinyml_play_attention_s8 *r)
{
	const uint32_t *const exps = (const void *)(check->image + r->exps);
	const uint32_t most =
		r->by_table != 0u ? UINT32_MAX / (uint32_t)r->at.keys : (uint32_t)INT32_MAX;

	tinyml_check_that(check, r->by_table != 0u
					 ? exps[0] > 0u
					 : exps[0] >= 1u << 11 && r->at.keys <= MOST_FIXED);
	for (uint32_t i = 0; i < EXPS; i++) {
		tinyml_check_that(check, exps[i] <= most);
	}
}

static uint32_t play_attention_bytes(struct tinyml_check *check, uint32_t scratch)
{
	const struct tinyml_play_attention_s8 *r = check->record;
	const uint32_t work = play_attention_rows(check, &r->at, 1, Y);

	tinyml_check_that(
		check,
		play_attention_byte(r->q_zero) && play_attention_byte(r->k_zero) &&
			play_attention_byte(r->v_zero) && play_attention_byte(r->score_zero) &&
			play_attention_byte(r->weight_zero) && play_attention_byte(r->out_zero) &&
			tinyml_check_factor(r->score_multiplier, r->score_shift) &&
			tinyml_check_factor(r->out_multiplier, r->out_shift) &&
			(r->by_table == 0u || (r->shift >= 1 && r->shift <= 63)) && r->exps != 0u);
	tinyml_check_constants(check, r->exps, 4u * EXPS, 4);
	if (r->table != 0u) {
		tinyml_check_constants(check, r->table, 256, 1);
	}
	tinyml_check_writes(check, SCRATCH, scratch, 4);
	if (!check->wrong) {
		play_attention_exps(check, r);
	}
	return work;
}

uint32_t tinyml_check_attention_rows(struct tinyml_check *check, uint32_t more)
{
	const struct tinyml_play_attention_s8 *r = check->record;
	const uint32_t rows = tinyml_check_plus(tinyml_check_times((uint32_t)r->at.values, 4),
						tinyml_check_times((uint32_t)r->at.depth, 2));

	return play_attention_bytes(
		check, tinyml_check_plus(tinyml_check_plus(rows, (uint32_t)r->at.keys), more));
}

uint32_t tinyml_check_attention_s8(struct tinyml_check *check)
{
	return tinyml_check_attention_rows(check, 0);
}

/* The keys that query `query` sees of those that `past` leaves it. */
static uint32_t play_attention_seen(const struct tinyml_play_heads *at, const uint8_t *visible,
				    int32_t query)
{
	uint32_t seen = 0;

	for (int32_t key = 0; key < at->keys && key - query <= at->past; key++) {
		seen += visible[key] != 0u ? 1u : 0u;
	}
	return seen;
}

/* Every query sees a key: a softmax of nothing divides by 0. */
uint32_t tinyml_check_attention_masked_s8(struct tinyml_check *check)
{
	const struct tinyml_play_attention_masked_s8 *r = check->record;
	const struct tinyml_play_heads *at = &r->all.at;
	const uint32_t work = tinyml_check_attention_s8(check);
	const uint8_t *visible = check->image + r->visible;

	tinyml_check_that(check, r->visible != 0u);
	if (check->wrong) {
		return 0;
	}
	tinyml_check_constants(check, r->visible,
			       tinyml_check_times((uint32_t)at->queries, (uint32_t)at->keys), 1);
	for (int32_t i = 0; i < at->queries && !check->wrong; i++, visible += at->keys) {
		tinyml_check_that(check, play_attention_seen(at, visible, i) > 0u);
	}
	return work;
}

/* Values of a head are transposed, with `keys` columns. */
static uint32_t play_attention_transposed(const struct tinyml_play_heads *at, uint32_t keys,
					  uint32_t rows)
{
	return tinyml_check_plus(rows, tinyml_check_times((uint32_t)at->values, keys));
}

uint32_t tinyml_check_attention_pairs(struct tinyml_check *check, uint32_t more)
{
	const struct tinyml_play_attention_s8 *r = check->record;
	const uint32_t depth = (uint32_t)r->at.depth;
	const uint32_t keys = ((uint32_t)r->at.keys + 3u) & ~3u;
	const uint32_t columns = tinyml_check_times(depth > keys ? depth : keys, 4);
	const uint32_t rows = tinyml_check_plus(columns, tinyml_check_times(keys, 2));

	tinyml_check_that(check, depth % 4u == 0u);
	return play_attention_bytes(
		check, play_attention_transposed(&r->at, keys, tinyml_check_plus(rows, more)));
}

uint32_t tinyml_check_attention_dsp_s8(struct tinyml_check *check)
{
	return tinyml_check_attention_pairs(check, 0);
}

uint32_t tinyml_check_attention_vectors(struct tinyml_check *check, uint32_t more)
{
	const struct tinyml_play_attention_s8 *r = check->record;
	const uint32_t keys = ((uint32_t)r->at.keys + 15u) & ~15u;
	const uint32_t sums =
		tinyml_check_times(tinyml_check_plus(keys, (uint32_t)r->at.values), 4);
	const uint32_t rows = tinyml_check_plus(sums, keys);

	return play_attention_bytes(
		check, play_attention_transposed(&r->at, keys, tinyml_check_plus(rows, more)));
}

uint32_t tinyml_check_attention_mve_s8(struct tinyml_check *check)
{
	return tinyml_check_attention_vectors(check, 0);
}

void tinyml_check_attention_keys(struct tinyml_check *check, const struct tinyml_play_heads *at,
				 uint32_t operand, uint32_t starts, int32_t step, uint32_t size)
{
	uint32_t last = 0;

	tinyml_check_that(check, step >= 0);
	if (starts != 0u && !check->wrong) {
		tinyml_check_constants(check, starts, (uint32_t)at->heads * 4u, 4);
		last = check->wrong ? 0u : play_attention_last(check, starts, at->heads, 0, 1);
	}
	if (!check->wrong && !tinyml_check_nothing(check, operand)) {
		tinyml_check_reads(check, operand,
				   play_attention_end(last, at->queries, step, at->keys, size),
				   size);
	}
}

uint32_t tinyml_check_attention_f32(struct tinyml_check *check)
{
	const struct tinyml_play_attention_f32 *r = check->record;
	const uint32_t work = play_attention_rows(check, &r->at, 4, Y_F32);

	if (check->wrong) {
		return 0;
	}
	tinyml_check_writes(check, SCRATCH_F32, tinyml_check_times((uint32_t)r->at.keys, 4), 4);
	tinyml_check_attention_keys(check, &r->at, MASK, r->mask_starts, r->mask_step,
				    r->hides != 0u ? 1u : 4u);
	return work;
}
