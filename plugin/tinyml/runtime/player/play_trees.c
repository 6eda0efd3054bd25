/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Decision trees: from root to leaf, one comparison for each level. */

#include <string.h>

#include <tinyml/play_records.h>
#include <tinyml/trees.h>

#include "types.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* A number of 1, 2 or 4 bytes; often it is known how many where this is inlined. */
static ALWAYS_INLINE uint32_t play_trees_known(const uint8_t *p, uint32_t bytes)
{
	if (bytes == 1u) {
		return p[0];
	}
	return bytes == 2u ? tinyml_trees_u16(p) : tinyml_trees_u32(p);
}

static uint32_t play_trees_number(const uint8_t *p, uint32_t bytes)
{
	return play_trees_known(p, bytes);
}

static uint32_t play_trees_limit_bytes(const struct tinyml_play_trees *r)
{
	return r->from == TINYML_FLOAT32 ? 4u : 2u;
}

/* The distance to a "no"; the highest bit may be a mark. */
static uint32_t play_trees_mark(const struct tinyml_play_trees *r)
{
	return r->missing != 0u ? 1u << (8u * r->distance_bytes - 1u) : 0u;
}

/* What elements are compared as. */
enum play_trees_kind {
	PLAY_TREES_KEYS,
	PLAY_TREES_F32,
	PLAY_TREES_S16,
	PLAY_TREES_S8,
};

static enum play_trees_kind play_trees_kind(const struct tinyml_play_trees *r)
{
	if (r->keys != 0u) {
		return PLAY_TREES_KEYS;
	}
	if (r->from == TINYML_FLOAT32) {
		return PLAY_TREES_F32;
	}
	return r->from == TINYML_INT16 ? PLAY_TREES_S16 : PLAY_TREES_S8;
}

/* Whether the element of a row is at most the limit at `limit`, or is missing and `marked`. */
static ALWAYS_INLINE bool play_trees_yes(enum play_trees_kind kind, const void *row,
					 uint32_t feature, const uint8_t *limit, bool marked)
{
	if (kind == PLAY_TREES_KEYS) {
		const int32_t v = ((const int32_t *)row)[feature];

		return v <= tinyml_trees_s32(limit) || (v == INT32_MAX && marked);
	}
	if (kind == PLAY_TREES_F32) {
		const float v = ((const float *)row)[feature];

		return v <= tinyml_trees_f32(limit) || (v != v && marked);
	}
	if (kind == PLAY_TREES_S16) {
		return ((const int16_t *)row)[feature] <= tinyml_trees_s16(limit);
	}
	return ((const int8_t *)row)[feature] <= tinyml_trees_s16(limit);
}

/* The number of a leaf at `p`, whose head is `head`. */
static uint32_t play_trees_leaf(const struct tinyml_play_trees *r, const uint8_t *p, uint32_t head)
{
	if (r->number_bytes == 0u || head < r->last_head) {
		return head - r->features;
	}
	return play_trees_number(p + r->head_bytes, r->number_bytes);
}

/* From a root at `p` to a leaf. What is known where this is inlined makes it quick. */
static ALWAYS_INLINE uint32_t play_trees_steps(const struct tinyml_play_trees *r, const uint8_t *p,
					       const void *row, enum play_trees_kind kind,
					       uint32_t head_bytes, uint32_t distance_bytes,
					       uint32_t mark)
{
	const uint32_t no = head_bytes + (kind <= PLAY_TREES_F32 ? 4u : 2u);
	const uint32_t end = no + distance_bytes, features = r->features;
	uint32_t head = play_trees_known(p, head_bytes);

	while (head < features) {
		const uint32_t distance = play_trees_known(p + no, distance_bytes);

		p += play_trees_yes(kind, row, head, p + head_bytes, (distance & mark) != 0u)
			     ? end
			     : (distance & ~mark);
		head = play_trees_known(p, head_bytes);
	}
	return play_trees_leaf(r, p, head);
}

typedef uint32_t play_trees_walk(const struct tinyml_play_trees *r, const uint8_t *p,
				 const void *row);

static uint32_t play_trees_walk_any(const struct tinyml_play_trees *r, const uint8_t *p,
				    const void *row)
{
	return play_trees_steps(r, p, row, play_trees_kind(r), r->head_bytes, r->distance_bytes,
				play_trees_mark(r));
}

/* The forms of most models, whose elements are never missing. */
#define WALK(name, kind)                                                                           \
	static uint32_t play_trees_walk_##name(const struct tinyml_play_trees *r,                  \
					       const uint8_t *p, const void *row)                  \
	{                                                                                          \
		return play_trees_steps(r, p, row, kind, 1, 2, 0);                                 \
	}

WALK(keys, PLAY_TREES_KEYS)
WALK(f32, PLAY_TREES_F32)
WALK(s16, PLAY_TREES_S16)
WALK(s8, PLAY_TREES_S8)

static play_trees_walk *play_trees_choose(const struct tinyml_play_trees *r)
{
	if (r->head_bytes != 1u || r->distance_bytes != 2u || r->missing != 0u) {
		return play_trees_walk_any;
	}
	switch (play_trees_kind(r)) {
	case PLAY_TREES_KEYS:
		return play_trees_walk_keys;
	case PLAY_TREES_F32:
		return play_trees_walk_f32;
	case PLAY_TREES_S16:
		return play_trees_walk_s16;
	default:
		return play_trees_walk_s8;
	}
}

/* Add the weights of a leaf to sums, which are integers or float as the weights are. */
static void play_trees_add(const struct tinyml_play *play, uint32_t leaf, void *sums)
{
	const struct tinyml_play_trees *r = play->record;
	const uint8_t *const starts = play->image + r->starts;
	const uint8_t *const targets = play->image + r->targets;
	const uint8_t *const weights = play->image + r->weights;
	uint32_t k = leaf, end = leaf + 1u;

	if (r->starts != 0u) {
		k = play_trees_number(starts + leaf * r->start_bytes, r->start_bytes);
		end = play_trees_number(starts + (leaf + 1u) * r->start_bytes, r->start_bytes);
	}
	if (r->to == TINYML_FLOAT32 && r->targets != 0u && r->target_bytes == 1u) {
		for (; k < end; k++) {
			((float *)sums)[targets[k]] += ((const float *)(const void *)weights)[k];
		}
		return;
	}
	for (; k < end; k++) {
		const uint32_t target =
			r->targets != 0u
				? play_trees_number(targets + k * r->target_bytes, r->target_bytes)
				: 0u;

		if (r->to == TINYML_FLOAT32) {
			((float *)sums)[target] += ((const float *)(const void *)weights)[k];
		} else {
			const void *const weight = weights + k * tinyml_play_type_bytes(r->to);

			((uint32_t *)sums)[target] += (uint32_t)tinyml_play_load(weight, r->to);
		}
	}
}

void tinyml_play_trees(const struct tinyml_play *play)
{
	const struct tinyml_play_trees *r = play->record;
	const uint8_t *const nodes = play->image + r->nodes;
	const uint8_t *const roots = play->image + r->roots;
	const uint8_t *x = play->operand[0];
	float *y = play->operand[1];
	int32_t *const keys = play->operand[2];
	int32_t *const whole = keys + (r->keys != 0u ? r->features : 0u);
	const bool real = r->to == TINYML_FLOAT32;
	play_trees_walk *const walk = play_trees_choose(r);

	for (uint32_t row = 0; row < r->rows; row++) {
		for (uint32_t k = 0; r->keys != 0u && k < r->features; k++) {
			keys[k] = tinyml_trees_key(((const float *)(const void *)x)[k]);
		}
		memset(real ? (void *)y : (void *)whole, 0, 4u * r->outputs);
		for (uint32_t t = 0; t < r->trees; t++) {
			const uint32_t root =
				play_trees_number(roots + t * r->root_bytes, r->root_bytes);
			const uint32_t leaf =
				walk(r, nodes + root, r->keys != 0u ? (const void *)keys : x);

			play_trees_add(play, leaf, real ? (void *)y : (void *)whole);
		}
		for (uint32_t k = 0; !real && k < r->outputs; k++) {
			y[k] = r->scale * (float)whole[k];
		}
		x += r->features * tinyml_play_type_bytes(r->from);
		y += r->outputs;
	}
}

/* Whether all ways from a root lead to leaves: where the tree ends, or 0. Of every node on the way
 * to the present one that is followed by a "no", `ends` has the place of that. */
static uint32_t play_trees_sound(const struct tinyml_play_trees *r, const uint8_t *nodes,
				 uint32_t at)
{
	const uint32_t no = r->head_bytes + play_trees_limit_bytes(r);
	const uint32_t end = no + r->distance_bytes, mark = play_trees_mark(r);
	uint32_t ends[TINYML_PLAY_TREE_DEPTH], depth = 0;

	while (at <= r->node_bytes && r->node_bytes - at >= r->head_bytes) {
		const uint32_t head = play_trees_number(nodes + at, r->head_bytes);
		const uint32_t left = r->node_bytes - at;

		if (head < r->features) {
			if (left < end || depth == TINYML_PLAY_TREE_DEPTH) {
				return 0;
			}
			ends[depth++] = tinyml_check_plus(
				at, play_trees_number(nodes + at + no, r->distance_bytes) & ~mark);
			at += end;
			continue;
		}
		if (r->number_bytes != 0u && head >= r->last_head &&
		    left < (uint32_t)r->head_bytes + r->number_bytes) {
			return 0;
		}
		if (play_trees_leaf(r, nodes + at, head) >= r->leaves) {
			return 0;
		}
		at += r->head_bytes;
		at += r->number_bytes != 0u && head >= r->last_head ? r->number_bytes : 0u;
		if (depth == 0u) {
			return at;
		}
		if (ends[--depth] != at) {
			return 0;
		}
	}
	return 0;
}

static bool play_trees_size(uint32_t bytes)
{
	return bytes == 1u || bytes == 2u || bytes == 4u;
}

/* The members, and that all tables are inside. */
static void play_trees_tables(struct tinyml_check *check, const struct tinyml_play_trees *r)
{
	const uint32_t size = tinyml_play_type_bytes(r->to);

	tinyml_check_that(
		check,
		r->rows > 0u && r->features > 0u && r->outputs > 0u && r->trees > 0u &&
			r->leaves > 0u && r->last_head >= r->features &&
			(r->from == TINYML_FLOAT32 || r->from == TINYML_INT16 ||
			 r->from == TINYML_INT8) &&
			(r->to == TINYML_FLOAT32 || r->to == TINYML_INT32 ||
			 r->to == TINYML_INT16 || r->to == TINYML_INT8) &&
			(r->keys == 0u || r->from == TINYML_FLOAT32) &&
			(r->head_bytes == 1u || r->head_bytes == 2u) &&
			(r->distance_bytes == 2u || r->distance_bytes == 4u) &&
			(r->number_bytes == 0u || r->number_bytes == 2u || r->number_bytes == 4u) &&
			play_trees_size(r->root_bytes) && play_trees_size(r->start_bytes) &&
			play_trees_size(r->target_bytes) &&
			(r->starts != 0u || r->leaves <= r->count) &&
			(r->targets != 0u || r->outputs == 1u));
	tinyml_check_constants(check, r->nodes, r->node_bytes, 1);
	tinyml_check_constants(check, r->roots, tinyml_check_times(r->trees, r->root_bytes), 1);
	tinyml_check_constants(check, r->weights, tinyml_check_times(r->count, size), size);
	if (r->starts != 0u) {
		tinyml_check_constants(
			check, r->starts,
			tinyml_check_times(tinyml_check_plus(r->leaves, 1), r->start_bytes), 1);
	}
	if (r->targets != 0u) {
		tinyml_check_constants(check, r->targets,
				       tinyml_check_times(r->count, r->target_bytes), 1);
	}
}

/* The contents of the tables of leaves; returns the most weights that one has. */
static uint32_t play_trees_leaves(struct tinyml_check *check, const struct tinyml_play_trees *r)
{
	const uint8_t *const starts = check->image + r->starts;
	const uint8_t *const targets = check->image + r->targets;
	uint32_t most = 1, before = 0;

	for (uint32_t i = 0; r->starts != 0u && i <= r->leaves; i++) {
		const uint32_t next =
			play_trees_number(starts + i * r->start_bytes, r->start_bytes);

		tinyml_check_that(check, next >= before && next <= r->count);
		most = i > 0u && next - before > most ? next - before : most;
		before = next;
	}
	for (uint32_t i = 0; r->targets != 0u && i < r->count; i++) {
		tinyml_check_that(check, play_trees_number(targets + i * r->target_bytes,
							   r->target_bytes) < r->outputs);
	}
	return most;
}

uint32_t tinyml_check_trees(struct tinyml_check *check)
{
	const struct tinyml_play_trees *r = check->record;
	const uint32_t size = tinyml_play_type_bytes(r->from);
	uint32_t most, scratch, end = 0;

	play_trees_tables(check, r);
	if (check->wrong) {
		return 0;
	}
	most = play_trees_leaves(check, r);
	/* One after the other, so that checking them takes no longer than reading them. */
	for (uint32_t t = 0; !check->wrong && t < r->trees; t++) {
		const uint32_t root = play_trees_number(check->image + r->roots + t * r->root_bytes,
							r->root_bytes);

		tinyml_check_that(check, root >= end);
		end = play_trees_sound(r, check->image + r->nodes, root);
		tinyml_check_that(check, end != 0u);
	}
	scratch = tinyml_check_plus(r->keys != 0u ? r->features : 0u,
				    r->to != TINYML_FLOAT32 ? r->outputs : 0u);
	tinyml_check_reads(
		check, 0, tinyml_check_times(tinyml_check_times(r->rows, r->features), size), size);
	tinyml_check_writes(check, 1,
			    tinyml_check_times(tinyml_check_times(r->rows, r->outputs), 4), 4);
	if (!tinyml_check_nothing(check, 2)) {
		tinyml_check_writes(check, 2, tinyml_check_times(scratch, 4), 4);
	} else {
		tinyml_check_that(check, scratch == 0u);
	}
	most = tinyml_check_plus(tinyml_check_times(most, 4), 16);
	return tinyml_check_times(
		r->rows, tinyml_check_plus(tinyml_check_plus(r->features, r->outputs),
					   tinyml_check_plus(tinyml_check_times(r->node_bytes, 2),
							     tinyml_check_times(r->trees, most))));
}
