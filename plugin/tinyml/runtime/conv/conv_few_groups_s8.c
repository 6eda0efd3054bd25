/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions in groups of few channels in plain C: the channels of a group are copied, with their
 * padding, and convolved as if they were the input.
 */

#include <stdint.h>

#include "conv_few_dot_s8.h"
#include "conv_few_s8.h"

/* Copy some of the channels of an image; the padding around them is there. */
static void conv_few_groups_take(const struct tinyml_conv_few_groups_s8 *p, const int8_t *x,
				 int8_t *to)
{
	const struct tinyml_window *w = &p->each.window;
	const int32_t channels = w->in_c, pixel = p->groups * channels;

	to += (p->pad_top * w->in_w + p->pad_left) * channels;
	for (int32_t i = 0; i < p->rows; i++) {
		const int8_t *from = x;
		int8_t *at = to;

		for (int32_t j = 0; j < p->columns; j++, from += pixel, at += channels) {
			at[0] = from[0];
			for (int32_t k = 1; k < channels; k++) {
				at[k] = from[k];
			}
		}
		x += p->in_w * pixel;
		to += w->in_w * channels;
	}
}

void tinyml_conv_few_groups_s8(const struct tinyml_conv_few_groups_s8 *p, const int8_t *x,
			       int8_t *y, void *scratch)
{
	int8_t *plane = scratch;
	const struct tinyml_window *w = &p->each.window;
	const int32_t outs = w->out_c, row = w->kernel_w * w->in_c;
	const int32_t bytes = w->in_h * w->in_w * w->in_c;

	memset(plane, p->each.in_zero, (size_t)bytes);
	for (int32_t n = 0; n < p->batches; n++) {
		struct tinyml_conv_few_s8 one = p->each;

		for (int32_t i = 0; i < p->groups; i++) {
			conv_few_groups_take(p, x + i * w->in_c, plane);
			conv_few_convolve(&one, plane, y + i * outs, p->groups * outs,
					  plane + bytes);
			one.weights += outs * w->kernel_h * row;
			one.bias += outs;
			one.multiplier += outs;
			one.shift += outs;
		}
		x += p->in_h * p->in_w * p->groups * w->in_c;
		y += w->out_h * w->out_w * p->groups * outs;
	}
}
