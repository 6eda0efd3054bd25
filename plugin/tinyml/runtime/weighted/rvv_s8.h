/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * What int8 kernels for RISC-V's vectors share. Lanes are output channels: an element of the input
 * is multiplied by the weights of as many filters as fit, so no sum has to be gathered from several
 * lanes. Nothing depends on the length of vectors.
 */

#ifndef TINYML_RVV_S8_H_
#define TINYML_RVV_S8_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <riscv_vector.h>

/** Filters whose weights are (elements, channels), and how outputs are made of their sums. */
struct tinyml_rvv_filters {
	int32_t elements;
	int32_t channels;
	const int8_t *weights;
	const int32_t *bias;
	const int32_t *multiplier;
	const int8_t *shift; /* not positive; negative if it rounds once */
	int32_t zero;
	int32_t low;
	int32_t high;
	bool once;
};

/** The filters of a layer's parameters. */
#define TINYML_RVV_FILTERS(p, elements_of_each, count)                                             \
	{                                                                                          \
		.elements = (elements_of_each),                                                    \
		.channels = (count),                                                               \
		.weights = (p)->weights,                                                           \
		.bias = (p)->bias,                                                                 \
		.multiplier = (p)->multiplier,                                                     \
		.shift = (p)->shift,                                                               \
		.zero = (p)->out_zero,                                                             \
		.low = (p)->out_min,                                                               \
		.high = (p)->out_max,                                                              \
		.once = (p)->round_once,                                                           \
	}

static inline void tinyml_copy(int8_t *to, const int8_t *from, int32_t count)
{
	for (size_t left = (size_t)count, vl; left > 0; left -= vl, to += vl, from += vl) {
		vl = __riscv_vsetvl_e8m8(left);
		__riscv_vse8(to, __riscv_vle8_v_i8m8(from, vl), vl);
	}
}

static inline void tinyml_fill(int8_t *to, int8_t value, int32_t count)
{
	for (size_t left = (size_t)count, vl; left > 0; left -= vl, to += vl) {
		vl = __riscv_vsetvl_e8m8(left);
		__riscv_vse8(to, __riscv_vmv_v_x_i8m8(value, vl), vl);
	}
}

/* Outputs of as many channels as vectors of a size hold; m: registers of sums, h and q: those of
 * elements with half and a quarter of their bytes.
 *
 * With one rounding, the product is cut off and the shift rounds halves up. With two, the product
 * is rounded as well, and negative halves must round down: numbers that are shifted are decremented
 * if they are negative.
 */
#define TINYML_RVV_OUTPUTS(m, h, q)                                                                \
	static inline __attribute__((always_inline)) vint8##q##_t tinyml_rvv_outputs_##m(          \
		const struct tinyml_rvv_filters *f, vint32##m##_t sums, vint32##m##_t multiplier,  \
		vint32##m##_t shift, size_t vl)                                                    \
	{                                                                                          \
		const vuint32##m##_t exponent =                                                    \
			__riscv_vreinterpret_u32##m(__riscv_vneg(shift, vl));                      \
                                                                                                   \
		if (f->once) {                                                                     \
			sums = __riscv_vsmul(sums, multiplier, __RISCV_VXRM_RDN, vl);              \
		} else {                                                                           \
			sums = __riscv_vsmul(sums, multiplier, __RISCV_VXRM_RNU, vl);              \
			sums = __riscv_vadd(                                                       \
				sums, __riscv_vsra(__riscv_vand(sums, shift, vl), 31, vl), vl);    \
		}                                                                                  \
		sums = __riscv_vssra(sums, exponent, __RISCV_VXRM_RNU, vl);                        \
		sums = __riscv_vsadd(sums, f->zero, vl);                                           \
		sums = __riscv_vmin(__riscv_vmax(sums, f->low, vl), f->high, vl);                  \
		return __riscv_vncvt_x(__riscv_vncvt_x(sums, vl), vl);                             \
	}
TINYML_RVV_OUTPUTS(m4, m2, m1)
TINYML_RVV_OUTPUTS(m8, m4, m2)
#undef TINYML_RVV_OUTPUTS

/** Exponents of as many channels. */
#define TINYML_RVV_SHIFTS(m, q, at, vl) __riscv_vsext_vf4_i32##m(__riscv_vle8_v_i8##q(at, vl), vl)

/** Store the outputs of channels from `first` on, one for each of `vl` sums. */
static inline void tinyml_rvv_store(const struct tinyml_rvv_filters *f, size_t first,
				    vint32m8_t sums, int8_t *y, size_t vl)
{
	__riscv_vse8(y,
		     tinyml_rvv_outputs_m8(f, sums,
					   __riscv_vle32_v_i32m8(&f->multiplier[first], vl),
					   TINYML_RVV_SHIFTS(m8, m2, &f->shift[first], vl), vl),
		     vl);
}

/** All filters at one window. */
static inline void tinyml_rvv_apply(const struct tinyml_rvv_filters *f, const int8_t *x, int8_t *y)
{
	const size_t channels = (size_t)f->channels;
	const int8_t *end = x + f->elements;

	for (size_t done = 0, vl; done < channels; done += vl) {
		const int8_t *w = &f->weights[done];
		vint32m8_t sums;

		vl = __riscv_vsetvl_e32m8(channels - done);
		sums = __riscv_vle32_v_i32m8(&f->bias[done], vl);
		for (const int8_t *at = x; at != end; at++, w += channels) {
			const vint8m2_t bytes = __riscv_vle8_v_i8m2(w, vl);

			sums = __riscv_vwmacc(sums, *at, __riscv_vsext_vf2(bytes, vl), vl);
		}
		tinyml_rvv_store(f, done, sums, &y[done], vl);
	}
}

#define TINYML_RVV_WINDOWS 4

/** All filters at four windows that are `f->elements` bytes apart; their outputs are `step` bytes
 * apart. */
static inline void tinyml_rvv_apply_windows(const struct tinyml_rvv_filters *f, const int8_t *x,
					    int8_t *y, int32_t step)
{
	const size_t channels = (size_t)f->channels;
	const int32_t elements = f->elements;

	for (size_t done = 0, vl; done < channels; done += vl, y += vl) {
		const int8_t *w = &f->weights[done];
		const int8_t *x0 = x, *x1 = x0 + elements, *x2 = x1 + elements, *x3 = x2 + elements;
		const int8_t *end = x1, *rest = end - elements % 4;
		vint32m4_t s0, s1, s2, s3, multiplier, shift;

		vl = __riscv_vsetvl_e32m4(channels - done);
		s0 = __riscv_vle32_v_i32m4(&f->bias[done], vl);
		s1 = s0;
		s2 = s0;
		s3 = s0;
#define STEP(i)                                                                                    \
	do {                                                                                       \
		const vint16m2_t weights = __riscv_vsext_vf2(__riscv_vle8_v_i8m1(w, vl), vl);      \
		s0 = __riscv_vwmacc(s0, x0[i], weights, vl);                                       \
		s1 = __riscv_vwmacc(s1, x1[i], weights, vl);                                       \
		s2 = __riscv_vwmacc(s2, x2[i], weights, vl);                                       \
		s3 = __riscv_vwmacc(s3, x3[i], weights, vl);                                       \
		w += channels;                                                                     \
	} while (0)
#define ADVANCE(i) x0 += (i), x1 += (i), x2 += (i), x3 += (i)
		for (; x0 != rest; ADVANCE(4)) {
			STEP(0);
			STEP(1);
			STEP(2);
			STEP(3);
		}
		for (; x0 != end; ADVANCE(1)) {
			STEP(0);
		}
#undef ADVANCE
#undef STEP
		multiplier = __riscv_vle32_v_i32m4(&f->multiplier[done], vl);
		shift = TINYML_RVV_SHIFTS(m4, m1, &f->shift[done], vl);
		__riscv_vse8(y, tinyml_rvv_outputs_m4(f, s0, multiplier, shift, vl), vl);
		__riscv_vse8(y + step, tinyml_rvv_outputs_m4(f, s1, multiplier, shift, vl), vl);
		__riscv_vse8(y + 2 * step, tinyml_rvv_outputs_m4(f, s2, multiplier, shift, vl), vl);
		__riscv_vse8(y + 3 * step, tinyml_rvv_outputs_m4(f, s3, multiplier, shift, vl), vl);
	}
}

#endif /* TINYML_RVV_S8_H_ */
