/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* depthwise_tile_f32.h for Arm's floating-point registers: s0 to s7 are the sums of the first
 * window, s8 to s15 those of the second, s16 to s23 weights, s24 to s31 elements of a window.
 */

#ifndef TINYML_DEPTHWISE_VFP_F32_H_
#define TINYML_DEPTHWISE_VFP_F32_H_

#include "../weighted/widen_vfp_f32.h"

TINYML_OFFSET(struct depthwise_tile_f32, rows, 0);
TINYML_OFFSET(struct depthwise_tile_f32, taps, 4);
TINYML_OFFSET(struct depthwise_tile_f32, x_step, 8);
TINYML_OFFSET(struct depthwise_tile_f32, w_step, 12);
TINYML_OFFSET(struct depthwise_tile_f32, x_skip, 16);
TINYML_OFFSET(struct depthwise_tile_f32, w_skip, 20);
TINYML_OFFSET(struct depthwise_tile_f32, bias, 24);
TINYML_OFFSET(struct depthwise_tile_f32, x_other, 28);
TINYML_OFFSET(struct depthwise_tile_f32, y_other, 32);

/* clang-format off */
#if TINYML_FUSED_F32
#define TINYML_DEPTHWISE_TIMES(a, b, c, d, i, j, k, l, m, n, o, p)                                 \
	"vfma.f32 s" #a ", s" #i ", s" #m "\n\t"                                                   \
	"vfma.f32 s" #b ", s" #j ", s" #n "\n\t"                                                   \
	"vfma.f32 s" #c ", s" #k ", s" #o "\n\t"                                                   \
	"vfma.f32 s" #d ", s" #l ", s" #p "\n\t"
#else
#define TINYML_DEPTHWISE_TIMES(a, b, c, d, i, j, k, l, m, n, o, p)                                 \
	"vmul.f32 s" #m ", s" #i ", s" #m "\n\t"                                                   \
	"vmul.f32 s" #n ", s" #j ", s" #n "\n\t"                                                   \
	"vmul.f32 s" #o ", s" #k ", s" #o "\n\t"                                                   \
	"vmul.f32 s" #p ", s" #l ", s" #p "\n\t"                                                   \
	"vadd.f32 s" #a ", s" #a ", s" #m "\n\t"                                                   \
	"vadd.f32 s" #b ", s" #b ", s" #n "\n\t"                                                   \
	"vadd.f32 s" #c ", s" #c ", s" #o "\n\t"                                                   \
	"vadd.f32 s" #d ", s" #d ", s" #p "\n\t"
#endif

#if TINYML_HALF_WEIGHTS
#define TINYML_DEPTHWISE_W4 "vldmia %[w], {s18-s19}\n\t" TINYML_WIDEN_4
#define TINYML_DEPTHWISE_W8 "vldmia %[w], {s20-s23}\n\t" TINYML_WIDEN_8
#else
#define TINYML_DEPTHWISE_W4 "vldmia %[w], {s16-s19}\n\t"
#define TINYML_DEPTHWISE_W8 "vldmia %[w], {s16-s23}\n\t"
#endif

/* All taps of both windows. n: x_step, m: w_step */
#define TINYML_DEPTHWISE_TAPS(weights, elements, first, second)                                    \
	"ldr %[rows], [%[t], #0]\n\t"                                                              \
	"cmp %[rows], #0\n\t"                                                                      \
	"beq 4f\n\t"                                                                               \
	"1:\n\t"                                                                                   \
	"ldrd %[n], %[m], [%[t], #8]\n\t"                                                          \
	"ldr %[taps], [%[t], #4]\n\t"                                                              \
	"2:\n\t"                                                                                   \
	weights                                                                                    \
	"add %[w], %[m]\n\t"                                                                       \
	"vldmia %[x0], {s24-" elements "}\n\t"                                                     \
	first                                                                                      \
	"add %[x0], %[n]\n\t"                                                                      \
	"vldmia %[x1], {s24-" elements "}\n\t"                                                     \
	second                                                                                     \
	"add %[x1], %[n]\n\t"                                                                      \
	"subs %[taps], #1\n\t"                                                                     \
	"bne 2b\n\t"                                                                               \
	"subs %[rows], #1\n\t"                                                                     \
	"beq 4f\n\t"                                                                               \
	"ldrd %[n], %[m], [%[t], #16]\n\t"                                                         \
	"add %[x0], %[n]\n\t"                                                                      \
	"add %[x1], %[n]\n\t"                                                                      \
	"add %[w], %[m]\n\t"                                                                       \
	"b 1b\n\t"                                                                                 \
	"4:\n\t"                                                                                   \
	"ldr %[n], [%[t], #32]\n\t"                                                                \
	"add %[n], %[y]\n\t"

#define TINYML_DEPTHWISE_OPERANDS                                                                  \
	: [x0] "+r"(x), [x1] "=&r"(x1), [w] "+r"(w), [rows] "=&l"(rows), [taps] "=&l"(taps),       \
	  [n] "=&r"(n), [m] "=&r"(m)                                                               \
	: [t] "r"(t), [y] "r"(y)                                                                   \
	: "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13",  \
	  "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25",      \
	  "s26", "s27", "s28", "s29", "s30", "s31", "cc", "memory"

static inline void depthwise_vfp_f32_8(const struct depthwise_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y)
{
	const float *x1;
	int32_t rows, taps, n, m;

	__asm__ volatile(
		"ldrd %[n], %[x1], [%[t], #24]\n\t"
		"add %[x1], %[x0]\n\t"
		"vldmia %[n], {s0-s7}\n\t"
		"vldmia %[n], {s8-s15}\n\t"
		TINYML_DEPTHWISE_TAPS(TINYML_DEPTHWISE_W8, "s31",
			TINYML_DEPTHWISE_TIMES(0, 1, 2, 3, 16, 17, 18, 19, 24, 25, 26, 27)
			TINYML_DEPTHWISE_TIMES(4, 5, 6, 7, 20, 21, 22, 23, 28, 29, 30, 31),
			TINYML_DEPTHWISE_TIMES(8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
			TINYML_DEPTHWISE_TIMES(12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31))
		"vstmia %[y], {s0-s7}\n\t"
		"vstmia %[n], {s8-s15}\n\t"
		TINYML_DEPTHWISE_OPERANDS);
}

static inline void depthwise_vfp_f32_4(const struct depthwise_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y)
{
	const float *x1;
	int32_t rows, taps, n, m;

	__asm__ volatile(
		"ldrd %[n], %[x1], [%[t], #24]\n\t"
		"add %[x1], %[x0]\n\t"
		"vldmia %[n], {s0-s3}\n\t"
		"vldmia %[n], {s8-s11}\n\t"
		TINYML_DEPTHWISE_TAPS(TINYML_DEPTHWISE_W4, "s27",
			TINYML_DEPTHWISE_TIMES(0, 1, 2, 3, 16, 17, 18, 19, 24, 25, 26, 27),
			TINYML_DEPTHWISE_TIMES(8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27))
		"vstmia %[y], {s0-s3}\n\t"
		"vstmia %[n], {s8-s11}\n\t"
		TINYML_DEPTHWISE_OPERANDS);
}
/* clang-format on */

#undef TINYML_DEPTHWISE_TIMES
#undef TINYML_DEPTHWISE_W4
#undef TINYML_DEPTHWISE_W8
#undef TINYML_DEPTHWISE_TAPS
#undef TINYML_DEPTHWISE_OPERANDS

#endif /* TINYML_DEPTHWISE_VFP_F32_H_ */
