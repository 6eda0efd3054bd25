/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Convolutions with int16 activations and outputs that are not neighbours: the rows of outputs one
 * by one, by a kernel that is told how far apart they are.
 */

#ifndef TINYML_CONV_APART_STEPS_S16_H_
#define TINYML_CONV_APART_STEPS_S16_H_

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

typedef void conv_apart_steps_s16_kernel(const struct tinyml_conv_dsp_s16 *p, const int16_t *x,
					 int16_t *y, int32_t step, void *scratch);

static inline void conv_apart_steps_s16(const struct tinyml_conv_apart_dsp_s16 *p, const int16_t *x,
					int16_t *y, void *scratch,
					conv_apart_steps_s16_kernel *convolve)
{
	const struct tinyml_window *w = &p->conv.window;
	struct tinyml_conv_dsp_s16 row = p->conv;

	TINYML_ASSERT(w->stride_h == 1 && w->stride_w == 1);
	row.window.batches = 1;
	row.window.out_h = 1;
	for (int32_t n = 0; n < w->batches; n++) {
		for (int32_t i = 0; i < w->out_h; i++) {
			row.window.pad_top = (int16_t)(w->pad_top - i);
			convolve(&row, x, &y[n * p->image + i * p->line], p->step, scratch);
		}
		x += w->in_h * w->in_w * w->in_c;
	}
}

#endif /* TINYML_CONV_APART_STEPS_S16_H_ */
