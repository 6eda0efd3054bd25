/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The tiles of tile_f32.h for Arm's floating-point registers: s0 to s7 are the sums of the first
 * window, s8 to s15 those of the second, s16 to s23 weights, s24 to s27 elements of windows.
 * Compilers load every weight with an instruction of its own, and keep some sums in memory.
 */

#ifndef TINYML_TILE_VFP_F32_H_
#define TINYML_TILE_VFP_F32_H_

#include "widen_vfp_f32.h"

TINYML_OFFSET(struct tinyml_tile_f32, rows, 0);
TINYML_OFFSET(struct tinyml_tile_f32, count, 4);
TINYML_OFFSET(struct tinyml_tile_f32, x_skip, 8);
TINYML_OFFSET(struct tinyml_tile_f32, w_skip, 12);
TINYML_OFFSET(struct tinyml_tile_f32, start0, 16);
TINYML_OFFSET(struct tinyml_tile_f32, start1, 20);
TINYML_OFFSET(struct tinyml_tile_f32, bias, 24);

/* clang-format off */

/* Four sums += four weights times x. */
#if TINYML_FUSED_F32
#define TINYML_TILE_TIMES(a, b, c, d, i, j, k, l, x)                                               \
	"vfma.f32 s" #a ", s" #i ", s" #x "\n\t"                                                   \
	"vfma.f32 s" #b ", s" #j ", s" #x "\n\t"                                                   \
	"vfma.f32 s" #c ", s" #k ", s" #x "\n\t"                                                   \
	"vfma.f32 s" #d ", s" #l ", s" #x "\n\t"
#else
#define TINYML_TILE_TIMES(a, b, c, d, i, j, k, l, x)                                               \
	"vmul.f32 s28, s" #i ", s" #x "\n\t"                                                       \
	"vmul.f32 s29, s" #j ", s" #x "\n\t"                                                       \
	"vmul.f32 s30, s" #k ", s" #x "\n\t"                                                       \
	"vmul.f32 s31, s" #l ", s" #x "\n\t"                                                       \
	"vadd.f32 s" #a ", s" #a ", s28\n\t"                                                       \
	"vadd.f32 s" #b ", s" #b ", s29\n\t"                                                       \
	"vadd.f32 s" #c ", s" #c ", s30\n\t"                                                       \
	"vadd.f32 s" #d ", s" #d ", s31\n\t"
#endif

#define TINYML_TILE_4(x)     TINYML_TILE_TIMES(0, 1, 2, 3, 16, 17, 18, 19, x)
#define TINYML_TILE_8(x)     TINYML_TILE_4(x) TINYML_TILE_TIMES(4, 5, 6, 7, 20, 21, 22, 23, x)
#define TINYML_TILE_4_TOO(x) TINYML_TILE_TIMES(8, 9, 10, 11, 16, 17, 18, 19, x)
#define TINYML_TILE_8_TOO(x)                                                                       \
	TINYML_TILE_4_TOO(x) TINYML_TILE_TIMES(12, 13, 14, 15, 20, 21, 22, 23, x)

#if TINYML_HALF_WEIGHTS
#define TINYML_TILE_W4 "vldmia %[w]!, {s18-s19}\n\t" TINYML_WIDEN_4
#define TINYML_TILE_W8 "vldmia %[w]!, {s20-s23}\n\t" TINYML_WIDEN_8
#else
#define TINYML_TILE_W4 "vldmia %[w]!, {s16-s19}\n\t"
#define TINYML_TILE_W8 "vldmia %[w]!, {s16-s23}\n\t"
#endif

/* Rows of runs. The elements of a run that are too few for `several` at once, of which there are
 * 1 << bits, come first, one by one.
 */
#define TINYML_TILE_ROWS(bits, one, several, next)                                                 \
	"ldr %[rows], [%[t], #0]\n\t"                                                              \
	"cmp %[rows], #0\n\t"                                                                      \
	"beq 6f\n\t"                                                                               \
	"1:\n\t"                                                                                   \
	"ldr %[n], [%[t], #4]\n\t"                                                                 \
	"ands %[m], %[n], #((1 << " #bits ") - 1)\n\t"                                             \
	"beq 3f\n\t"                                                                               \
	"2:\n\t"                                                                                   \
	one                                                                                        \
	"subs %[m], #1\n\t"                                                                        \
	"bne 2b\n\t"                                                                               \
	"3:\n\t"                                                                                   \
	"lsrs %[n], %[n], #" #bits "\n\t"                                                          \
	"beq 5f\n\t"                                                                               \
	"4:\n\t"                                                                                   \
	several                                                                                    \
	"subs %[n], #1\n\t"                                                                        \
	"bne 4b\n\t"                                                                               \
	"5:\n\t"                                                                                   \
	"subs %[rows], #1\n\t"                                                                     \
	"beq 6f\n\t"                                                                               \
	"ldrd %[n], %[m], [%[t], #8]\n\t"                                                          \
	next                                                                                       \
	"add %[w], %[m]\n\t"                                                                       \
	"b 1b\n\t"                                                                                 \
	"6:\n\t"                                                                                   \
	"ldr %[m], [%[t], #24]\n\t"

#define TINYML_TILE_REGISTERS                                                                      \
	"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13",    \
	"s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", \
	"s27", "s28", "s29", "s30", "s31", "cc", "memory"

static inline void tinyml_tile_1x8_f32(const struct tinyml_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y)
{
	int32_t rows, n, m;

	__asm__ volatile(
		"ldr %[n], [%[t], #16]\n\t"
		"vldmia %[n], {s0-s7}\n\t"
		TINYML_TILE_ROWS(2,
			"vldmia %[x]!, {s24}\n\t"
			TINYML_TILE_W8 TINYML_TILE_8(24),
			"vldmia %[x]!, {s24-s27}\n\t"
			TINYML_TILE_W8 TINYML_TILE_8(24)
			TINYML_TILE_W8 TINYML_TILE_8(25)
			TINYML_TILE_W8 TINYML_TILE_8(26)
			TINYML_TILE_W8 TINYML_TILE_8(27),
			"add %[x], %[n]\n\t")
		"vldmia %[m], {s16-s23}\n\t"
		"vadd.f32 s0, s0, s16\n\t"
		"vadd.f32 s1, s1, s17\n\t"
		"vadd.f32 s2, s2, s18\n\t"
		"vadd.f32 s3, s3, s19\n\t"
		"vadd.f32 s4, s4, s20\n\t"
		"vadd.f32 s5, s5, s21\n\t"
		"vadd.f32 s6, s6, s22\n\t"
		"vadd.f32 s7, s7, s23\n\t"
		"vstmia %[y], {s0-s7}\n\t"
		: [x] "+r"(x), [w] "+r"(w), [rows] "=&l"(rows), [n] "=&l"(n), [m] "=&l"(m)
		: [t] "r"(t), [y] "r"(y)
		: TINYML_TILE_REGISTERS);
}

static inline void tinyml_tile_2x8_f32(const struct tinyml_tile_f32 *t, const float *x0,
				       const float *x1, const tinyml_weight_f32 *w, float *y0, float *y1)
{
	int32_t rows, n, m;

	__asm__ volatile(
		"ldrd %[n], %[m], [%[t], #16]\n\t"
		"vldmia %[n], {s0-s7}\n\t"
		"vldmia %[m], {s8-s15}\n\t"
		TINYML_TILE_ROWS(1,
			"vldmia %[x0]!, {s24}\n\t"
			"vldmia %[x1]!, {s26}\n\t"
			TINYML_TILE_W8 TINYML_TILE_8(24) TINYML_TILE_8_TOO(26),
			"vldmia %[x0]!, {s24-s25}\n\t"
			"vldmia %[x1]!, {s26-s27}\n\t"
			TINYML_TILE_W8 TINYML_TILE_8(24) TINYML_TILE_8_TOO(26)
			TINYML_TILE_W8 TINYML_TILE_8(25) TINYML_TILE_8_TOO(27),
			"add %[x0], %[n]\n\t"
			"add %[x1], %[n]\n\t")
		"vldmia %[m], {s16-s23}\n\t"
		"vadd.f32 s0, s0, s16\n\t"
		"vadd.f32 s1, s1, s17\n\t"
		"vadd.f32 s2, s2, s18\n\t"
		"vadd.f32 s3, s3, s19\n\t"
		"vadd.f32 s4, s4, s20\n\t"
		"vadd.f32 s5, s5, s21\n\t"
		"vadd.f32 s6, s6, s22\n\t"
		"vadd.f32 s7, s7, s23\n\t"
		"vadd.f32 s8, s8, s16\n\t"
		"vadd.f32 s9, s9, s17\n\t"
		"vadd.f32 s10, s10, s18\n\t"
		"vadd.f32 s11, s11, s19\n\t"
		"vadd.f32 s12, s12, s20\n\t"
		"vadd.f32 s13, s13, s21\n\t"
		"vadd.f32 s14, s14, s22\n\t"
		"vadd.f32 s15, s15, s23\n\t"
		"vstmia %[y0], {s0-s7}\n\t"
		"vstmia %[y1], {s8-s15}\n\t"
		: [x0] "+r"(x0), [x1] "+r"(x1), [w] "+r"(w), [rows] "=&l"(rows), [n] "=&l"(n),
		  [m] "=&l"(m)
		: [t] "r"(t), [y0] "r"(y0), [y1] "r"(y1)
		: TINYML_TILE_REGISTERS);
}

static inline void tinyml_tile_1x4_f32(const struct tinyml_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y)
{
	int32_t rows, n, m;

	__asm__ volatile(
		"ldr %[n], [%[t], #16]\n\t"
		"vldmia %[n], {s0-s3}\n\t"
		TINYML_TILE_ROWS(1,
			"vldmia %[x]!, {s24}\n\t"
			TINYML_TILE_W4 TINYML_TILE_4(24),
			"vldmia %[x]!, {s24-s25}\n\t"
			TINYML_TILE_W8
			TINYML_TILE_4(24)
			TINYML_TILE_TIMES(0, 1, 2, 3, 20, 21, 22, 23, 25),
			"add %[x], %[n]\n\t")
		"vldmia %[m], {s16-s19}\n\t"
		"vadd.f32 s0, s0, s16\n\t"
		"vadd.f32 s1, s1, s17\n\t"
		"vadd.f32 s2, s2, s18\n\t"
		"vadd.f32 s3, s3, s19\n\t"
		"vstmia %[y], {s0-s3}\n\t"
		: [x] "+r"(x), [w] "+r"(w), [rows] "=&l"(rows), [n] "=&l"(n), [m] "=&l"(m)
		: [t] "r"(t), [y] "r"(y)
		: TINYML_TILE_REGISTERS);
}

static inline void tinyml_tile_2x4_f32(const struct tinyml_tile_f32 *t, const float *x0,
				       const float *x1, const tinyml_weight_f32 *w, float *y0, float *y1)
{
	int32_t rows, n, m;

	__asm__ volatile(
		"ldrd %[n], %[m], [%[t], #16]\n\t"
		"vldmia %[n], {s0-s3}\n\t"
		"vldmia %[m], {s8-s11}\n\t"
		TINYML_TILE_ROWS(1,
			"vldmia %[x0]!, {s24}\n\t"
			"vldmia %[x1]!, {s26}\n\t"
			TINYML_TILE_W4 TINYML_TILE_4(24) TINYML_TILE_4_TOO(26),
			"vldmia %[x0]!, {s24-s25}\n\t"
			"vldmia %[x1]!, {s26-s27}\n\t"
			TINYML_TILE_W8
			TINYML_TILE_4(24) TINYML_TILE_4_TOO(26)
			TINYML_TILE_TIMES(0, 1, 2, 3, 20, 21, 22, 23, 25)
			TINYML_TILE_TIMES(8, 9, 10, 11, 20, 21, 22, 23, 27),
			"add %[x0], %[n]\n\t"
			"add %[x1], %[n]\n\t")
		"vldmia %[m], {s16-s19}\n\t"
		"vadd.f32 s0, s0, s16\n\t"
		"vadd.f32 s1, s1, s17\n\t"
		"vadd.f32 s2, s2, s18\n\t"
		"vadd.f32 s3, s3, s19\n\t"
		"vadd.f32 s8, s8, s16\n\t"
		"vadd.f32 s9, s9, s17\n\t"
		"vadd.f32 s10, s10, s18\n\t"
		"vadd.f32 s11, s11, s19\n\t"
		"vstmia %[y0], {s0-s3}\n\t"
		"vstmia %[y1], {s8-s11}\n\t"
		: [x0] "+r"(x0), [x1] "+r"(x1), [w] "+r"(w), [rows] "=&l"(rows), [n] "=&l"(n),
		  [m] "=&l"(m)
		: [t] "r"(t), [y0] "r"(y0), [y1] "r"(y1)
		: TINYML_TILE_REGISTERS);
}
/* clang-format on */

#undef TINYML_TILE_TIMES
#undef TINYML_TILE_4
#undef TINYML_TILE_8
#undef TINYML_TILE_4_TOO
#undef TINYML_TILE_8_TOO
#undef TINYML_TILE_W4
#undef TINYML_TILE_W8
#undef TINYML_TILE_ROWS
#undef TINYML_TILE_REGISTERS

#endif /* TINYML_TILE_VFP_F32_H_ */
