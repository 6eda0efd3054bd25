/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Weights of four bits for RISC-V's vectors (rvv_s8.h): (elements, channels) with two elements in a
 * byte, the first in its lower half. If the number of elements is odd, the last has bytes of its
 * own.
 */

#ifndef TINYML_RVV_NIBBLES_S8_H_
#define TINYML_RVV_NIBBLES_S8_H_

#include "rvv_s8.h"

/** All filters at one window. */
static inline void tinyml_rvv_apply_nibbles(const struct tinyml_rvv_filters *f, const int8_t *x,
					    int8_t *y)
{
	const size_t channels = (size_t)f->channels;
	const int8_t *end = x + f->elements, *last = end - f->elements % 2;

	for (size_t done = 0, vl; done < channels; done += vl) {
		const int8_t *w = &f->weights[done], *at = x;
		vint32m8_t sums;

		vl = __riscv_vsetvl_e32m8(channels - done);
		sums = __riscv_vle32_v_i32m8(&f->bias[done], vl);
		for (; at != end; at += 2, w += channels) {
			const vint8m2_t both = __riscv_vle8_v_i8m2(w, vl);
			const vint8m2_t low = __riscv_vsra(__riscv_vsll(both, 4, vl), 4, vl);

			sums = __riscv_vwmacc(sums, at[0], __riscv_vsext_vf2(low, vl), vl);
			if (at == last) {
				break;
			}
			sums = __riscv_vwmacc(sums, at[1],
					      __riscv_vsext_vf2(__riscv_vsra(both, 4, vl), vl), vl);
		}
		tinyml_rvv_store(f, done, sums, &y[done], vl);
	}
}

/** All filters at four windows that are `f->elements` bytes apart; their outputs are `step` bytes
 * apart. */
static inline void tinyml_rvv_apply_windows_nibbles(const struct tinyml_rvv_filters *f,
						    const int8_t *x, int8_t *y, int32_t step)
{
	const size_t channels = (size_t)f->channels;
	const int32_t elements = f->elements;

	for (size_t done = 0, vl; done < channels; done += vl, y += vl) {
		const int8_t *w = &f->weights[done];
		const int8_t *x0 = x, *x1 = x0 + elements, *x2 = x1 + elements, *x3 = x2 + elements;
		const int8_t *end = x1 - elements % 2;
		vint32m4_t s0, s1, s2, s3, multiplier, shift;

		vl = __riscv_vsetvl_e32m4(channels - done);
		s0 = __riscv_vle32_v_i32m4(&f->bias[done], vl);
		s1 = s0;
		s2 = s0;
		s3 = s0;
#define TIMES(i, bytes)                                                                            \
	do {                                                                                       \
		const vint16m2_t weights = __riscv_vsext_vf2(bytes, vl);                           \
		s0 = __riscv_vwmacc(s0, x0[i], weights, vl);                                       \
		s1 = __riscv_vwmacc(s1, x1[i], weights, vl);                                       \
		s2 = __riscv_vwmacc(s2, x2[i], weights, vl);                                       \
		s3 = __riscv_vwmacc(s3, x3[i], weights, vl);                                       \
	} while (0)
		for (; x0 != end; x0 += 2, x1 += 2, x2 += 2, x3 += 2, w += channels) {
			const vint8m1_t both = __riscv_vle8_v_i8m1(w, vl);

			TIMES(0, __riscv_vsra(__riscv_vsll(both, 4, vl), 4, vl));
			TIMES(1, __riscv_vsra(both, 4, vl));
		}
		if (elements % 2 != 0) {
			TIMES(0, __riscv_vle8_v_i8m1(w, vl));
		}
#undef TIMES
		multiplier = __riscv_vle32_v_i32m4(&f->multiplier[done], vl);
		shift = TINYML_RVV_SHIFTS(m4, m1, &f->shift[done], vl);
		__riscv_vse8(y, tinyml_rvv_outputs_m4(f, s0, multiplier, shift, vl), vl);
		__riscv_vse8(y + step, tinyml_rvv_outputs_m4(f, s1, multiplier, shift, vl), vl);
		__riscv_vse8(y + 2 * step, tinyml_rvv_outputs_m4(f, s2, multiplier, shift, vl), vl);
		__riscv_vse8(y + 3 * step, tinyml_rvv_outputs_m4(f, s3, multiplier, shift, vl), vl);
	}
}

#endif /* TINYML_RVV_NIBBLES_S8_H_ */
