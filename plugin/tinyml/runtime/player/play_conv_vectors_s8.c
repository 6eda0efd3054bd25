/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with Helium and with vectors of RISC-V: <tinyml/conv.h> states what they read. */

#include <stddef.h>
#include <string.h>

#include <tinyml/play_records.h>

#include "window.h"

#define SCRATCH 2 /* operand */
#define LANES   16u

_Static_assert(offsetof(struct tinyml_play_conv_mve_s8, from_the_end) ==
		       offsetof(struct tinyml_conv_mve_s8, from_the_end),
	       "records mirror structures");
_Static_assert(offsetof(struct tinyml_play_conv_rvv_s8, from_the_end) ==
		       offsetof(struct tinyml_conv_rvv_s8, from_the_end),
	       "records mirror structures");

void tinyml_play_conv_mve_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_conv_mve_s8 *, const int8_t *, int8_t *, void *);
	const struct tinyml_play_conv_mve_s8 *record = play->record;
	struct tinyml_conv_mve_s8 p;

	memcpy(&p, record, offsetof(struct tinyml_play_conv_mve_s8, weights));
	p.weights = (const void *)(play->image + record->weights);
	p.channels = (const void *)(play->image + record->channels);
	p.loop = play->kernel->loop;
	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1],
					   play->operand[SCRATCH]);
}

/* `relu`: for the loop that leaves out limits; `nibbles`: two filters in the bytes of one. */
static uint32_t play_conv_vectors_check(struct tinyml_check *check, bool once, bool relu,
					bool nibbles)
{
	const struct tinyml_play_conv_mve_s8 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t outputs = tinyml_check_window_s8(check, w);
	uint32_t elements, whole, filters, pairs, pair, bytes;

	tinyml_check_that(check, r->round_once == (once ? 1u : 0u) && r->from_the_end <= 1u);
	tinyml_check_that(
		check, !relu || (r->out_zero == -128 && r->out_min == -128 && r->out_max == 127));
	if (check->wrong) {
		return 0;
	}
	elements = tinyml_check_times(tinyml_check_taps(w), (uint32_t)w->in_c);
	/* The kernel compares the product of elements and strides with the channels, in int32. */
	tinyml_check_that(check, tinyml_check_times(elements, (uint32_t)w->stride_h *
								      (uint32_t)w->stride_w) <=
						 INT32_MAX &&
					 r->out_min <= r->out_max);
	whole = tinyml_check_times(elements / LANES + (elements % LANES != 0u ? 1u : 0u), LANES);
	filters = (uint32_t)w->out_c;
	/* of a pair, the second one is not padded; after the last pair there is a padding */
	pairs = (filters + 1u) / 2u;
	pair = nibbles ? elements : tinyml_check_plus(whole, elements);
	bytes = tinyml_check_plus(tinyml_check_times(pairs, pair), whole - elements);
	tinyml_check_constants(check, r->weights, bytes, 1);
	tinyml_check_constants(check, r->channels, (filters + 3u) / 4u * 36u, 4);
	tinyml_check_writes(check, SCRATCH, tinyml_check_times(whole, 4), 4);
	return tinyml_check_times(outputs, tinyml_check_plus(elements, 1));
}

uint32_t tinyml_check_conv_mve_once_s8(struct tinyml_check *check)
{
	return play_conv_vectors_check(check, true, false, false);
}

uint32_t tinyml_check_conv_mve_twice_s8(struct tinyml_check *check)
{
	return play_conv_vectors_check(check, false, false, false);
}

uint32_t tinyml_check_conv_mve_relu_s8(struct tinyml_check *check)
{
	return play_conv_vectors_check(check, false, true, false);
}

uint32_t tinyml_check_conv_mve_nibbles_once_s8(struct tinyml_check *check)
{
	return play_conv_vectors_check(check, true, false, true);
}

uint32_t tinyml_check_conv_mve_nibbles_twice_s8(struct tinyml_check *check)
{
	return play_conv_vectors_check(check, false, false, true);
}

uint32_t tinyml_check_conv_mve_nibbles_relu_s8(struct tinyml_check *check)
{
	return play_conv_vectors_check(check, false, true, true);
}

void tinyml_play_conv_rvv_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_conv_rvv_s8 *, const int8_t *, int8_t *, void *);
	const struct tinyml_play_conv_rvv_s8 *record = play->record;
	struct tinyml_conv_rvv_s8 p;

	memcpy(&p, record, offsetof(struct tinyml_play_conv_rvv_s8, weights));
	p.weights = (const void *)(play->image + record->weights);
	p.bias = (const void *)(play->image + record->bias);
	p.multiplier = (const void *)(play->image + record->multiplier);
	p.shift = (const void *)(play->image + record->shift);
	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1],
					   play->operand[SCRATCH]);
}

/* `nibbles`: two elements in a byte, and an odd last one in a byte of its own. */
static uint32_t play_conv_vectors_rvv_check(struct tinyml_check *check, bool nibbles)
{
	const struct tinyml_play_conv_rvv_s8 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t outputs = tinyml_check_window_s8(check, w);
	uint32_t elements, filters;

	tinyml_check_that(check, r->round_once <= 1u && r->from_the_end <= 1u);
	if (check->wrong) {
		return 0;
	}
	elements = tinyml_check_times(tinyml_check_taps(w), (uint32_t)w->in_c);
	filters = (uint32_t)w->out_c;
	tinyml_check_constants(
		check, r->weights,
		tinyml_check_times(nibbles ? elements / 2u + elements % 2u : elements, filters), 1);
	tinyml_check_constants(check, r->bias, 4u * filters, 4);
	tinyml_check_constants(check, r->multiplier, 4u * filters, 4);
	tinyml_check_constants(check, r->shift, filters, 1);
	tinyml_check_writes(check, SCRATCH, tinyml_check_times(elements, 4), 4);
	return tinyml_check_times(outputs, tinyml_check_plus(elements, 1));
}

uint32_t tinyml_check_conv_rvv_s8(struct tinyml_check *check)
{
	return play_conv_vectors_rvv_check(check, false);
}

uint32_t tinyml_check_conv_nibbles_rvv_s8(struct tinyml_check *check)
{
	return play_conv_vectors_rvv_check(check, true);
}
