/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * int8 convolutions with outputs that are not neighbours (struct tinyml_conv_apart_s8): the rows of
 * outputs one by one, by the kernel of a usual convolution. If outputs of a row are apart, the
 * kernel writes them side by side into the scratch memory.
 */

#ifndef TINYML_CONV_APART_S8_H_
#define TINYML_CONV_APART_S8_H_

#include <string.h>

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

/* The file that includes this may name other structures. */
#ifndef CONV_APART
#define CONV_APART struct tinyml_conv_apart_s8
#define CONV_ROW   struct tinyml_conv_stream_s8
#endif

typedef void conv_apart_s8_kernel(const CONV_ROW *p, const int8_t *x, int8_t *y, void *scratch);

static inline void conv_apart_s8_rows(const CONV_APART *p, const int8_t *x, int8_t *y,
				      void *scratch, conv_apart_s8_kernel *convolve)
{
	const struct tinyml_window *w = &p->conv.window;
	const int32_t channels = w->out_c;
	int8_t *const apart = p->step == channels ? NULL : (int8_t *)scratch + p->row;
	CONV_ROW row = p->conv;

	TINYML_ASSERT(w->stride_h == 1 && w->stride_w == 1 && !p->conv.from_the_end);
	row.window.batches = 1;
	row.window.out_h = 1;
	row.window.stride_h = 2; /* kernels look for padding in windows of a pixel, too */
	for (int32_t n = 0; n < w->batches; n++) {
		for (int32_t i = 0; i < w->out_h; i++) {
			int8_t *to = &y[n * p->image + i * p->line];
			const int8_t *from = apart;

			row.window.pad_top = (int16_t)(w->pad_top - i);
			convolve(&row, x, apart != NULL ? apart : to, scratch);
			for (int32_t left = w->out_w; apart != NULL && left > 0; left--) {
				memcpy(to, from, (size_t)channels);
				from += channels;
				to += p->step;
			}
		}
		x += w->in_h * w->in_w * w->in_c;
	}
}

#endif /* TINYML_CONV_APART_S8_H_ */
