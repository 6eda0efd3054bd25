/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers with Helium: a row by four filters at a time. */

#include <tinyml/dense.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/mve_s8.h"

/* Four interleaved filters; returns the address of the next filters. */
static inline const int8_t *dot_1x4(const int8_t *w, const int8_t *x, int32_t count, int32_t *sums)
{
	const int32_t rest = count % TINYML_LANES;
	int32_t a = 0, b = 0, c = 0, d = 0;

	for (int32_t n = count / TINYML_LANES; n > 0; n--) {
		const int8x16_t v = vldrbq_s8(x);

		d = vmladavaq_s8(d, vldrbq_s8(&w[3 * TINYML_LANES]), v);
		c = vmladavaq_s8(c, vldrbq_s8(&w[2 * TINYML_LANES]), v);
		b = vmladavaq_s8(b, vldrbq_s8(&w[TINYML_LANES]), v);
		a = vmladavaq_s8(a, vldrbq_s8(w), v);
		w += 4 * TINYML_LANES;
		x += TINYML_LANES;
	}
	if (rest > 0) {
		const mve_pred16_t some = vctp8q((uint32_t)rest);
		const int8x16_t v = vldrbq_z_s8(x, some);

		a = vmladavaq_s8(a, vldrbq_z_s8(w, some), v);
		b = vmladavaq_s8(b, vldrbq_z_s8(&w[rest], some), v);
		c = vmladavaq_s8(c, vldrbq_z_s8(&w[2 * rest], some), v);
		d = vmladavaq_s8(d, vldrbq_z_s8(&w[3 * rest], some), v);
		w += 4 * rest;
	}
	sums[0] = a;
	sums[1] = b;
	sums[2] = c;
	sums[3] = d;
	return w;
}

/* A single filter: one of the last, if their number is not a multiple of four. */
static int32_t dot_1x1(const int8_t *w, const int8_t *x, int32_t count)
{
	int32_t sum = 0;

	for (; count > 0; count -= TINYML_LANES, w += TINYML_LANES, x += TINYML_LANES) {
		const mve_pred16_t some = vctp8q((uint32_t)count);

		sum = vmladavaq_s8(sum, vldrbq_z_s8(w, some), vldrbq_z_s8(x, some));
	}
	return sum;
}

void tinyml_dense_mve_s8(const struct tinyml_dense_mve_s8 *p, const int8_t *x, int8_t *y)
{
	const struct tinyml_limits to = {p->out_zero, p->out_min, p->out_max};
	const bool once = p->round_once;
	const int32_t inputs = p->inputs;
	int32_t sums[4] = {0};

	for (int32_t row = 0; row < p->rows; row++, x += inputs) {
		const int32_t *bias = p->bias, *multiplier = p->multiplier;
		const int8_t *w = p->weights, *shift = p->shift;

		for (int32_t left = p->outputs; left > 0; left -= 4) {
			const mve_pred16_t some = vctp32q((uint32_t)left);
			const int32_t now = left < 4 ? left : 4;
			int32x4_t acc;

			if (now == 4) {
				w = dot_1x4(w, x, inputs, sums);
			} else {
				for (int32_t i = 0; i < now; i++, w += inputs) {
					sums[i] = dot_1x1(w, x, inputs);
				}
			}
			acc = vaddq_s32(vldrwq_s32(sums), vldrwq_z_s32(bias, some));
			acc = tinyml_rescale_4(acc, vldrwq_z_s32(multiplier, some),
					       vldrbq_z_s32(shift, some), once);
			vstrbq_p_s32(y, tinyml_limit_4(acc, &to), some);
			bias += 4;
			multiplier += 4;
			shift += 4;
			y += now;
		}
	}
}

#endif /* TINYML_CORE_MVE */
