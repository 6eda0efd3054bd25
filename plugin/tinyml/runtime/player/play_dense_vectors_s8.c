/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers with Helium and with vectors of RISC-V: <tinyml/dense.h> states what they read. */

#include <stddef.h>
#include <string.h>

#include <tinyml/dense.h>
#include <tinyml/play_records.h>

#include "window.h"

_Static_assert(sizeof(void *) != 4u || offsetof(struct tinyml_play_dense_mve_s8, round_once) ==
					       offsetof(struct tinyml_dense_mve_s8, round_once),
	       "records mirror structures");

/* Members in groups, so that compilers copy them with few instructions. */
#define FILL(p, play, record)                                                                      \
	do {                                                                                       \
		memcpy(&(p)->rows, &(record)->rows, 3 * sizeof(int32_t));                          \
		(p)->weights = (const void *)((play)->image + (record)->weights);                  \
		(p)->bias = (const void *)((play)->image + (record)->bias);                        \
		(p)->multiplier = (const void *)((play)->image + (record)->multiplier);            \
		(p)->shift = (const void *)((play)->image + (record)->shift);                      \
		memcpy((uint8_t *)(p) + offsetof(__typeof__(*(p)), out_zero), &(record)->out_zero, \
		       sizeof(*record) - offsetof(__typeof__(*(record)), out_zero));               \
	} while (false)

void tinyml_play_dense_mve_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_dense_mve_s8 *, const int8_t *, int8_t *);
	const struct tinyml_play_dense_mve_s8 *record = play->record;
	struct tinyml_dense_mve_s8 p;

	FILL(&p, play, record);
	p.loop = play->kernel->loop;
	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

void tinyml_play_dense_rvv_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_dense_rvv_s8 *, const int8_t *, int8_t *);
	const struct tinyml_play_dense_mve_s8 *record = play->record;
	struct tinyml_dense_rvv_s8 p;

	FILL(&p, play, record);
	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

/* Tables of so many filters, which have `weights` bytes together. */
static uint32_t play_dense_vectors_tables(struct tinyml_check *check, uint32_t filters,
					  uint32_t weights)
{
	const struct tinyml_play_dense_mve_s8 *r = check->record;
	const uint32_t inputs = (uint32_t)r->inputs;
	const uint32_t outputs = tinyml_check_times((uint32_t)r->rows, (uint32_t)r->outputs);
	const uint32_t words = tinyml_check_times(filters, 4);

	tinyml_check_that(check, r->rows > 0 && r->inputs > 0 && r->outputs > 0 &&
					 r->out_min <= r->out_max);
	tinyml_check_reads(check, 0, tinyml_check_times((uint32_t)r->rows, inputs), 1);
	tinyml_check_writes(check, 1, outputs, 1);
	tinyml_check_constants(check, r->weights, weights, 1);
	tinyml_check_constants(check, r->bias, words, 4);
	tinyml_check_constants(check, r->multiplier, words, 4);
	tinyml_check_constants(check, r->shift, filters, 1);
	return tinyml_check_times(outputs, tinyml_check_plus(inputs, 1));
}

static uint32_t play_dense_vectors_check(struct tinyml_check *check)
{
	const struct tinyml_play_dense_mve_s8 *r = check->record;
	const uint32_t filters = (uint32_t)r->outputs;

	return play_dense_vectors_tables(check, filters,
					 tinyml_check_times((uint32_t)r->inputs, filters));
}

/* Weights of four bits for Helium: whole fours of filters, two of them in the bytes of one. */
static uint32_t play_dense_vectors_nibbles(struct tinyml_check *check)
{
	const struct tinyml_play_dense_mve_s8 *r = check->record;
	const uint32_t filters = tinyml_check_times(tinyml_check_words((uint32_t)r->outputs), 4);

	return play_dense_vectors_tables(check, filters,
					 tinyml_check_times((uint32_t)r->inputs, filters / 2u));
}

uint32_t tinyml_check_dense_mve_once_s8(struct tinyml_check *check)
{
	const struct tinyml_play_dense_mve_s8 *r = check->record;

	tinyml_check_that(check, r->round_once == 1u);
	return play_dense_vectors_check(check);
}

uint32_t tinyml_check_dense_mve_twice_s8(struct tinyml_check *check)
{
	const struct tinyml_play_dense_mve_s8 *r = check->record;

	tinyml_check_that(check, r->round_once == 0u);
	return play_dense_vectors_check(check);
}

uint32_t tinyml_check_dense_rvv_s8(struct tinyml_check *check)
{
	const struct tinyml_play_dense_mve_s8 *r = check->record;

	tinyml_check_that(check, r->round_once <= 1u);
	return play_dense_vectors_check(check);
}

uint32_t tinyml_check_dense_mve_nibbles_once_s8(struct tinyml_check *check)
{
	const struct tinyml_play_dense_mve_s8 *r = check->record;

	tinyml_check_that(check, r->round_once == 1u);
	return play_dense_vectors_nibbles(check);
}

uint32_t tinyml_check_dense_mve_nibbles_twice_s8(struct tinyml_check *check)
{
	const struct tinyml_play_dense_mve_s8 *r = check->record;

	tinyml_check_that(check, r->round_once == 0u);
	return play_dense_vectors_nibbles(check);
}

uint32_t tinyml_check_dense_nibbles_rvv_s8(struct tinyml_check *check)
{
	const struct tinyml_play_dense_mve_s8 *r = check->record;
	const uint32_t inputs = (uint32_t)r->inputs, filters = (uint32_t)r->outputs;

	tinyml_check_that(check, r->round_once <= 1u);
	return play_dense_vectors_tables(check, filters,
					 tinyml_check_times(inputs / 2u + inputs % 2u, filters));
}
