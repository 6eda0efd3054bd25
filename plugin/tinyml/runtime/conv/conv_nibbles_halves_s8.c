/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with weights of four bits for Arm cores without DSP instructions: four windows by
 * one filter at a time, with two windows in one word, as in conv_halves_s8.c. Products of eight
 * elements are added before they are taken apart, because 8 * 8 * 128 is far below 2^15: a quarter
 * of the instructions for that. */

#include <tinyml/tinyml.h>

#if defined(__thumb__) && !TINYML_CORE_DSP

#define WEIGHT_BITS 4
#include "conv_halves_s8.h"

void tinyml_conv_nibbles_halves_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x,
				   int8_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t size = w->kernel_h * w->kernel_w * (w->in_c / p->groups);

	conv_stream_convolve(p, x, y,
			     (uint32_t *)scratch + conv_halves_words_before_bytes((size + 3) & ~3));
}

#endif /* defined(__thumb__) && !TINYML_CORE_DSP */
