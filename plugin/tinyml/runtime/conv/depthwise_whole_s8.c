/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with one output per channel, four channels at a time. */

#include <tinyml/depthwise_conv.h>

#include "../weighted/output_s8.h"

static void depthwise_whole_sum_four(int32_t sums[4], const int8_t *x, const int8_t *w,
				     int32_t taps, int32_t step)
{
	int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];

	for (; taps > 0; taps--, x += step, w += step) {
		s0 += x[0] * w[0];
		s1 += x[1] * w[1];
		s2 += x[2] * w[2];
		s3 += x[3] * w[3];
	}
	sums[0] = s0;
	sums[1] = s1;
	sums[2] = s2;
	sums[3] = s3;
}

void tinyml_depthwise_whole_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x, int8_t *y)
{
	const struct tinyml_window *window = &p->window;
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const int32_t channels = window->in_c, taps = window->in_h * window->in_w;

	for (int32_t n = 0; n < window->batches; n++, x += taps * channels, y += channels) {
		int32_t i = 0;

		for (; channels - i >= 4; i += 4) {
			int32_t sums[4] = {p->bias[i], p->bias[i + 1], p->bias[i + 2],
					   p->bias[i + 3]};

			depthwise_whole_sum_four(sums, &x[i], &p->weights[i], taps, channels);
			for (int32_t k = 0; k < 4; k++) {
				y[i + k] = tinyml_output_s8(sums[k], p->multiplier[i + k],
							    p->shift[i + k], &to);
			}
		}
		for (; i < channels; i++) {
			const int8_t *at = &x[i], *w = &p->weights[i];
			int32_t sum = p->bias[i];

			for (int32_t tap = taps; tap > 0; tap--, at += channels, w += channels) {
				sum += *at * *w;
			}
			y[i] = tinyml_output_s8(sum, p->multiplier[i], p->shift[i], &to);
		}
	}
}
