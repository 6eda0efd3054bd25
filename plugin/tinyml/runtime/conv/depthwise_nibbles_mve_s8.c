/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with weights of four bits for Helium. All weights are unpacked first: each
 * is used at every position, and rows are computed in the order of the input. Where there are few
 * of them, those of some channels are unpacked for every row instead, which needs no memory for the
 * others. */

#include <tinyml/depthwise_conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/mve_s8.h"
#include "depthwise_mve_s8.h"

/* The weights of sixteen channels; with an even number of taps, a vector more is written. Returns
 * where those of the next channels are. */
static inline const int8_t *depthwise_nibbles_mve_unpack(int8_t *to, const int8_t *from,
							 int32_t taps)
{
	int8x16_t two = vldrbq_s8(from);
	const int8x16_t left = vshrq_n_s8(vshlq_n_s8(two, 4), 4);

	vstrbq_s8(to, vshlq_s8(vshrq_n_s8(two, 4), left));
	to += TINYML_LANES;
	from += TINYML_LANES;
	for (int32_t tap = 1; tap < taps; tap += 2) { /* a last odd one is replaced */
		two = vldrbq_s8(from);
		vstrbq_s8(to, vshlq_s8(vshrq_n_s8(vshlq_n_s8(two, 4), 4), left));
		vstrbq_s8(to + TINYML_LANES, vshlq_s8(vshrq_n_s8(two, 4), left));
		to += 2 * TINYML_LANES;
		from += TINYML_LANES;
	}
	return from;
}

void tinyml_depthwise_nibbles_mve_s8(const struct tinyml_depthwise_conv_mve_s8 *p, const int8_t *x,
				     int8_t *y, void *scratch, bool copied)
{
	const struct tinyml_window *w = &p->window;
	const int32_t blocks = (w->in_c + TINYML_LANES - 1) / TINYML_LANES;
	const int32_t taps = w->kernel_h * w->kernel_w;
	struct tinyml_depthwise_conv_mve_s8 unpacked = *p;
	const int8_t *from = p->weights;
	int8_t *to = scratch;

	for (int32_t block = 0; block < blocks; block++, to += taps * TINYML_LANES) {
		from = depthwise_nibbles_mve_unpack(to, from, taps);
	}
	unpacked.weights = scratch;
	tinyml_depthwise_conv_mve_s8(&unpacked, x, y, copied ? to + TINYML_LANES : NULL);
}

#define TAPS     9 /* of a 3x3 kernel */
#define TOGETHER 2 /* blocks of sixteen channels */

/* A layer whose loop unpacks weights. */
struct unpacking {
	struct tinyml_depthwise_conv_mve_s8 layer; /* first: the loop is given its address */
	struct tinyml_depthwise_mve loop;
	const struct tinyml_depthwise_mve *inner; /* the loop over bytes */
};

static void depthwise_nibbles_mve_row(const struct tinyml_depthwise_conv_mve_s8 *p, struct row *row,
				      int8_t *y, struct run run)
{
	const struct unpacking *layer = (const struct unpacking *)(const void *)p;
	const int8_t *from = &p->weights[(TAPS + 1) / 2 * run.entry];
	struct tinyml_depthwise_conv_mve_s8 block = *p;
	int8_t weights[TOGETHER * TAPS * TINYML_LANES];

	block.weights = weights;
	block.bias += run.entry;
	block.multiplier += run.entry;
	block.shift += run.entry;
	for (int32_t left = run.count; left > 0; left -= TOGETHER) {
		const int32_t count = left < TOGETHER ? left : TOGETHER;
		int8_t *to = weights;

		for (int32_t i = 0; i < count; i++, to += TAPS * TINYML_LANES) {
			from = depthwise_nibbles_mve_unpack(to, from, TAPS);
		}
		layer->inner->convolve_row(&block, row, y, (struct run){run.channel, 0, count});
		run.channel += TOGETHER * TINYML_LANES;
		block.bias += TOGETHER * TINYML_LANES;
		block.multiplier += TOGETHER * TINYML_LANES;
		block.shift += TOGETHER * TINYML_LANES;
	}
}

void tinyml_depthwise_nibbles_rows_mve_s8(const struct tinyml_depthwise_conv_mve_s8 *p,
					  const int8_t *x, int8_t *y, void *scratch)
{
	struct unpacking unpacking = {
		.layer = *p,
		.loop = {depthwise_nibbles_mve_row, true},
		.inner = p->loop,
	};

	TINYML_ASSERT(scratch != NULL && p->loop->square);
	unpacking.layer.loop = &unpacking.loop;
	tinyml_depthwise_conv_mve_s8(&unpacking.layer, x, y, scratch);
}

#endif /* TINYML_CORE_MVE */
