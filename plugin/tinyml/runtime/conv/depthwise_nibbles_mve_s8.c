/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with weights of four bits for Helium. All weights are unpacked first: each
 * is used at every position, and rows are computed in the order of the input. */

#include <tinyml/depthwise_conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/mve_s8.h"

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
		int8x16_t two = vldrbq_s8(from);
		const int8x16_t left = vshrq_n_s8(vshlq_n_s8(two, 4), 4);
		int8_t *at = to;

		vstrbq_s8(at, vshlq_s8(vshrq_n_s8(two, 4), left));
		at += TINYML_LANES;
		from += TINYML_LANES;
		for (int32_t tap = 1; tap < taps; tap += 2) { /* a last odd one is replaced */
			two = vldrbq_s8(from);
			vstrbq_s8(at, vshlq_s8(vshrq_n_s8(vshlq_n_s8(two, 4), 4), left));
			vstrbq_s8(at + TINYML_LANES, vshlq_s8(vshrq_n_s8(two, 4), left));
			at += 2 * TINYML_LANES;
			from += TINYML_LANES;
		}
	}
	unpacked.weights = scratch;
	tinyml_depthwise_conv_mve_s8(&unpacked, x, y, copied ? to + TINYML_LANES : NULL);
}

#endif /* TINYML_CORE_MVE */
