/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions for Arm cores without DSP instructions: four windows by one filter at a time, with
 * two windows in one word, h = 65536 * p + q. With a weight w, w * h is 65536 * w * p + w * q, so
 * that one multiplication serves two windows.
 *
 * Products of two elements are added, A = w0 * h0 + w1 * h1, before they are taken apart. The
 * compiler proves for every layer that |w0| + |w1| <= 255, so both sums are within int16. Then
 * (A + 32768) >> 16 is exactly w0 * p0 + w1 * p1, and these add up to P. The A add up to T modulo
 * 2^32, so Q = T - 65536 * P in the end. */

#include <tinyml/tinyml.h>

#if defined(__thumb__) && !TINYML_CORE_DSP

#define WEIGHT_BITS 8
#include "conv_halves_s8.h"

void tinyml_conv_halves_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
			   void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t size = w->kernel_h * w->kernel_w * (w->in_c / p->groups);

	conv_stream_convolve(p, x, y,
			     (uint32_t *)scratch + conv_halves_words_before_bytes((size + 3) & ~3));
}

#endif /* defined(__thumb__) && !TINYML_CORE_DSP */
