/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Shared by the kernels for Helium (MVE): copies, and rescaling of accumulators to int8 outputs.
 */

#ifndef TINYML_MVE_S8_H_
#define TINYML_MVE_S8_H_

#include <arm_mve.h>
#include <stdbool.h>
#include <stdint.h>

#define TINYML_LANES 16 /* bytes in a vector */

static inline void tinyml_copy(int8_t *to, const int8_t *from, int32_t count)
{
	for (; count >= TINYML_LANES; count -= TINYML_LANES) {
		vstrbq_s8(to, vldrbq_s8(from));
		to += TINYML_LANES;
		from += TINYML_LANES;
	}
	if (count > 0) {
		const mve_pred16_t some = vctp8q((uint32_t)count);

		vstrbq_p_s8(to, vldrbq_z_s8(from, some), some);
	}
}

static inline void tinyml_fill(int8_t *to, int8_t value, int32_t count)
{
	const int8x16_t values = vdupq_n_s8(value);

	for (; count > 0; count -= TINYML_LANES, to += TINYML_LANES) {
		vstrbq_p_s8(to, values, vctp8q((uint32_t)count));
	}
}

/** Four accumulators times their multipliers, as tinyml_rescale() or tinyml_rescale_once().
 *
 * Shifts are to the right: 0 or negative, and never 0 with one rounding.
 */
static inline int32x4_t tinyml_rescale_4(int32x4_t acc, int32x4_t multiplier, int32x4_t shift,
					 bool once)
{
	if (once) {
		/* Rounding down here changes nothing: the shift rounds at a higher bit. */
		acc = vqdmulhq_s32(acc, multiplier);
	} else {
		/* The shift rounds halves up, but negative halves must round down. */
		acc = vqrdmulhq_s32(acc, multiplier);
		acc = vqaddq_s32(acc, vshrq_n_s32(vandq_s32(acc, shift), 31));
	}
	return vrshlq_s32(acc, shift);
}

/** Zero point and limits, applied to four elements that are then stored as bytes. */
struct tinyml_limits {
	int32_t zero;
	int32_t low;
	int32_t high;
};

static inline int32x4_t tinyml_limit_4(int32x4_t value, const struct tinyml_limits *to)
{
	value = vminq_s32(vaddq_n_s32(value, to->zero), vdupq_n_s32(to->high));
	return vmaxq_s32(value, vdupq_n_s32(to->low));
}

#endif /* TINYML_MVE_S8_H_ */
