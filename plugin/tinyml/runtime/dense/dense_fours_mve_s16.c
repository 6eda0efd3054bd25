/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers with int16 activations and Helium: four filters at a time, eight elements of each.
 */

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/mve_s16.h"

#define FILTERS 4
#define LANES   8

void tinyml_dense_mve_s16(const struct tinyml_dense_dsp_s16 *p, const int16_t *x, int16_t *y)
{
	for (int32_t row = 0; row < p->rows; row++, x += p->inputs, y += p->outputs) {
		const int8_t *w = p->weights;

		for (int32_t o = 0; o < p->outputs; o += FILTERS) {
			const int32_t left = p->outputs - o;
			const mve_pred16_t some = vctp32q((uint32_t)left);
			const int16_t *from = x;
			int32_t a = 0, b = 0, c = 0, d = 0;
			int32x4_t sums;

			for (int32_t i = p->inputs; i > 0; i -= LANES, from += LANES) {
				/* Nothing is read behind the last input. */
				const int16x8_t eight = vldrhq_z_s16(from, vctp16q((uint32_t)i));

				a = vmladavaq_s16(a, eight, vldrbq_s16(w));
				b = vmladavaq_s16(b, eight, vldrbq_s16(w + LANES));
				c = vmladavaq_s16(c, eight, vldrbq_s16(w + 2 * LANES));
				d = vmladavaq_s16(d, eight, vldrbq_s16(w + 3 * LANES));
				w += FILTERS * LANES;
			}
			sums = vsetq_lane_s32(a, vdupq_n_s32(d), 0);
			sums = vsetq_lane_s32(c, vsetq_lane_s32(b, sums, 1), 2);
			sums = vaddq_s32(sums, vldrwq_z_s32(&p->bias[o], some));
			sums = tinyml_outputs_mve_s16(
				sums, vldrwq_z_s32(&p->factor[o], some),
				vnegq_s32(vreinterpretq_s32_u32(vldrbq_z_u32(&p->shift[o], some))),
				p->out_min, p->out_max);
			vstrhq_p_s32(&y[o], sums, some);
		}
	}
}

#endif /* TINYML_CORE_MVE */
