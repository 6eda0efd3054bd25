/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/add.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include <arm_mve.h>

/* Four elements, widened when they are loaded. */
static inline int32x4_t add_mve_four(const struct tinyml_add_s8 *p, int32x4_t a, int32x4_t b)
{
	int32x4_t sum = vmlaq_n_s32(vdupq_n_s32(p->offset), a, p->a_factor);

	sum = vshlq_r_s32(vmlaq_n_s32(sum, b, p->b_factor), -p->shift);
	return vminq_s32(vmaxq_s32(sum, vdupq_n_s32(p->out_min)), vdupq_n_s32(p->out_max));
}

void tinyml_add_mve_s8(const struct tinyml_add_s8 *p, const int8_t *a, const int8_t *b, int8_t *y)
{
	const struct tinyml_add_s8 q =
		*p; /* a copy, so that the compiler knows that y does not alias it */
	int32_t left = q.count;

	for (; left >= 4; left -= 4, a += 4, b += 4, y += 4) {
		vstrbq_s32(y, add_mve_four(&q, vldrbq_s32(a), vldrbq_s32(b)));
	}
	if (left > 0) {
		const mve_pred16_t some = vctp32q((uint32_t)left);

		vstrbq_p_s32(y, add_mve_four(&q, vldrbq_z_s32(a, some), vldrbq_z_s32(b, some)),
			     some);
	}
}

#endif /* TINYML_CORE_MVE */
