/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Convolutions with int16 activations and outputs that are not neighbours: the rows of outputs one
 * by one, by the kernel of a usual convolution. If outputs of a row are apart, the kernel writes
 * them side by side into the scratch memory. The file that includes this names the structures.
 */

#ifndef TINYML_CONV_APART_S16_H_
#define TINYML_CONV_APART_S16_H_

#include <string.h>

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

typedef void conv_apart_s16_kernel(const CONV_ROW *p, const int16_t *x, int16_t *y, void *scratch);

static inline void conv_apart_s16_rows(const CONV_APART *p, const int16_t *x, int16_t *y,
				       void *scratch, conv_apart_s16_kernel *convolve)
{
	const struct tinyml_window *w = &p->conv.window;
	const int32_t channels = w->out_c;
	int16_t *const apart = p->step == channels ? NULL : (int16_t *)scratch + p->row;
	CONV_ROW row = p->conv;

	TINYML_ASSERT(w->stride_h == 1 && w->stride_w == 1);
	row.window.batches = 1;
	row.window.out_h = 1;
	for (int32_t n = 0; n < w->batches; n++) {
		for (int32_t i = 0; i < w->out_h; i++) {
			int16_t *to = &y[n * p->image + i * p->line];
			const int16_t *from = apart;

			row.window.pad_top = (int16_t)(w->pad_top - i);
			convolve(&row, x, apart != NULL ? apart : to, scratch);
			for (int32_t left = w->out_w; apart != NULL && left > 0; left--) {
				memcpy(to, from, 2 * (size_t)channels);
				from += channels;
				to += p->step;
			}
		}
		x += w->in_h * w->in_w * w->in_c;
	}
}

#endif /* TINYML_CONV_APART_S16_H_ */
