/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The tiles of tile_f32.h for Helium: lanes are filters, so that each sum keeps its order. q0 and
 * q1 are the sums of the first window, q2 and q3 those of the second, q4 to q7 weights. Compilers
 * fetch elements of windows through floating-point registers.
 */

#ifndef TINYML_TILE_MVE_F32_H_
#define TINYML_TILE_MVE_F32_H_

#include "widen_mve_f32.h"

TINYML_OFFSET(struct tinyml_tile_f32, rows, 0);
TINYML_OFFSET(struct tinyml_tile_f32, count, 4);
TINYML_OFFSET(struct tinyml_tile_f32, x_skip, 8);
TINYML_OFFSET(struct tinyml_tile_f32, w_skip, 12);
TINYML_OFFSET(struct tinyml_tile_f32, start0, 16);
TINYML_OFFSET(struct tinyml_tile_f32, start1, 20);
TINYML_OFFSET(struct tinyml_tile_f32, bias, 24);

/* clang-format off */

/* Rows of runs. The elements of a run that are too few for four at once come first, one by one. */
#define TINYML_TILE_ROWS(one, four, next)                                                          \
	"ldr %[rows], [%[t], #0]\n\t"                                                              \
	"cmp %[rows], #0\n\t"                                                                      \
	"beq 6f\n\t"                                                                               \
	"1:\n\t"                                                                                   \
	"ldr %[n], [%[t], #4]\n\t"                                                                 \
	"ands lr, %[n], #3\n\t"                                                                    \
	"beq 3f\n\t"                                                                               \
	"2:\n\t"                                                                                   \
	one                                                                                        \
	"le lr, 2b\n\t"                                                                            \
	"3:\n\t"                                                                                   \
	"lsr %[n], %[n], #2\n\t"                                                                   \
	"wls lr, %[n], 5f\n\t"                                                                     \
	"4:\n\t"                                                                                   \
	four                                                                                       \
	"le lr, 4b\n\t"                                                                            \
	"5:\n\t"                                                                                   \
	"subs %[rows], #1\n\t"                                                                     \
	"beq 6f\n\t"                                                                               \
	"ldrd %[a], %[b], [%[t], #8]\n\t"                                                          \
	next                                                                                       \
	"add %[w], %[b]\n\t"                                                                       \
	"b 1b\n\t"                                                                                 \
	"6:\n\t"                                                                                   \
	"ldr %[a], [%[t], #24]\n\t"

/* The weights of four filters. */
#if TINYML_HALF_WEIGHTS
#define TINYML_TILE_W(q)                                                                           \
	"vldrh.u32 " #q ", [%[w]], #8\n\t"                                                         \
	TINYML_WIDEN_##q
#else
#define TINYML_TILE_W(q) "vldrw.u32 " #q ", [%[w]], #16\n\t"
#endif

/* An element of one window, or of two, times four or eight filters. */
#define TINYML_TILE_1X8(a)                                                                         \
	TINYML_TILE_W(q4)                                                                          \
	TINYML_TILE_W(q5)                                                                          \
	"vfma.f32 q0, q4, %[" #a "]\n\t"                                                           \
	"vfma.f32 q1, q5, %[" #a "]\n\t"
#define TINYML_TILE_2X8(a, c)                                                                      \
	TINYML_TILE_1X8(a)                                                                         \
	"vfma.f32 q2, q4, %[" #c "]\n\t"                                                           \
	"vfma.f32 q3, q5, %[" #c "]\n\t"
#define TINYML_TILE_1X4(a)                                                                         \
	TINYML_TILE_W(q4)                                                                          \
	"vfma.f32 q0, q4, %[" #a "]\n\t"
#define TINYML_TILE_2X4(a, c)                                                                      \
	TINYML_TILE_1X4(a)                                                                         \
	"vfma.f32 q2, q4, %[" #c "]\n\t"

#define TINYML_TILE_REGISTERS "lr", "q0", "q1", "q2", "q3", "q4", "q5", "cc", "memory"

static inline void tinyml_tile_1x8_f32(const struct tinyml_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y)
{
	int32_t rows, n, a, b;

	__asm__ volatile(
		"ldr %[a], [%[t], #16]\n\t"
		"vldrw.u32 q0, [%[a]]\n\t"
		"vldrw.u32 q1, [%[a], #16]\n\t"
		TINYML_TILE_ROWS(
			"ldr %[a], [%[x]], #4\n\t"
			TINYML_TILE_1X8(a),
			"ldrd %[a], %[b], [%[x]], #8\n\t"
			TINYML_TILE_1X8(a) TINYML_TILE_1X8(b)
			"ldrd %[a], %[b], [%[x]], #8\n\t"
			TINYML_TILE_1X8(a) TINYML_TILE_1X8(b),
			"add %[x], %[a]\n\t")
		"vldrw.u32 q4, [%[a]]\n\t"
		"vldrw.u32 q5, [%[a], #16]\n\t"
		"vadd.f32 q0, q0, q4\n\t"
		"vadd.f32 q1, q1, q5\n\t"
		"vstrw.32 q0, [%[y]]\n\t"
		"vstrw.32 q1, [%[y], #16]\n\t"
		: [x] "+r"(x), [w] "+l"(w), [rows] "=&l"(rows), [n] "=&r"(n), [a] "=&l"(a),
		  [b] "=&r"(b)
		: [t] "r"(t), [y] "r"(y)
		: TINYML_TILE_REGISTERS);
}

static inline void tinyml_tile_2x8_f32(const struct tinyml_tile_f32 *t, const float *x0,
				       const float *x1, const tinyml_weight_f32 *w, float *y0, float *y1)
{
	int32_t rows, n, a, b, c, d;

	__asm__ volatile(
		"ldrd %[a], %[b], [%[t], #16]\n\t"
		"vldrw.u32 q0, [%[a]]\n\t"
		"vldrw.u32 q1, [%[a], #16]\n\t"
		"vldrw.u32 q2, [%[b]]\n\t"
		"vldrw.u32 q3, [%[b], #16]\n\t"
		TINYML_TILE_ROWS(
			"ldr %[a], [%[x0]], #4\n\t"
			"ldr %[c], [%[x1]], #4\n\t"
			TINYML_TILE_2X8(a, c),
			"ldrd %[a], %[b], [%[x0]], #8\n\t"
			"ldrd %[c], %[d], [%[x1]], #8\n\t"
			TINYML_TILE_2X8(a, c) TINYML_TILE_2X8(b, d)
			"ldrd %[a], %[b], [%[x0]], #8\n\t"
			"ldrd %[c], %[d], [%[x1]], #8\n\t"
			TINYML_TILE_2X8(a, c) TINYML_TILE_2X8(b, d),
			"add %[x0], %[a]\n\t"
			"add %[x1], %[a]\n\t")
		"vldrw.u32 q4, [%[a]]\n\t"
		"vldrw.u32 q5, [%[a], #16]\n\t"
		"vadd.f32 q0, q0, q4\n\t"
		"vadd.f32 q1, q1, q5\n\t"
		"vadd.f32 q2, q2, q4\n\t"
		"vadd.f32 q3, q3, q5\n\t"
		"vstrw.32 q0, [%[y0]]\n\t"
		"vstrw.32 q1, [%[y0], #16]\n\t"
		"vstrw.32 q2, [%[y1]]\n\t"
		"vstrw.32 q3, [%[y1], #16]\n\t"
		: [x0] "+r"(x0), [x1] "+r"(x1), [w] "+l"(w), [rows] "=&l"(rows), [n] "=&r"(n),
		  [a] "=&l"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d)
		: [t] "r"(t), [y0] "r"(y0), [y1] "r"(y1)
		: TINYML_TILE_REGISTERS);
}

static inline void tinyml_tile_1x4_f32(const struct tinyml_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y)
{
	int32_t rows, n, a, b;

	__asm__ volatile(
		"ldr %[a], [%[t], #16]\n\t"
		"vldrw.u32 q0, [%[a]]\n\t"
		TINYML_TILE_ROWS(
			"ldr %[a], [%[x]], #4\n\t"
			TINYML_TILE_1X4(a),
			"ldrd %[a], %[b], [%[x]], #8\n\t"
			TINYML_TILE_1X4(a) TINYML_TILE_1X4(b)
			"ldrd %[a], %[b], [%[x]], #8\n\t"
			TINYML_TILE_1X4(a) TINYML_TILE_1X4(b),
			"add %[x], %[a]\n\t")
		"vldrw.u32 q4, [%[a]]\n\t"
		"vadd.f32 q0, q0, q4\n\t"
		"vstrw.32 q0, [%[y]]\n\t"
		: [x] "+r"(x), [w] "+l"(w), [rows] "=&l"(rows), [n] "=&r"(n), [a] "=&l"(a),
		  [b] "=&r"(b)
		: [t] "r"(t), [y] "r"(y)
		: TINYML_TILE_REGISTERS);
}

static inline void tinyml_tile_2x4_f32(const struct tinyml_tile_f32 *t, const float *x0,
				       const float *x1, const tinyml_weight_f32 *w, float *y0, float *y1)
{
	int32_t rows, n, a, b, c, d;

	__asm__ volatile(
		"ldrd %[a], %[b], [%[t], #16]\n\t"
		"vldrw.u32 q0, [%[a]]\n\t"
		"vldrw.u32 q2, [%[b]]\n\t"
		TINYML_TILE_ROWS(
			"ldr %[a], [%[x0]], #4\n\t"
			"ldr %[c], [%[x1]], #4\n\t"
			TINYML_TILE_2X4(a, c),
			"ldrd %[a], %[b], [%[x0]], #8\n\t"
			"ldrd %[c], %[d], [%[x1]], #8\n\t"
			TINYML_TILE_2X4(a, c) TINYML_TILE_2X4(b, d)
			"ldrd %[a], %[b], [%[x0]], #8\n\t"
			"ldrd %[c], %[d], [%[x1]], #8\n\t"
			TINYML_TILE_2X4(a, c) TINYML_TILE_2X4(b, d),
			"add %[x0], %[a]\n\t"
			"add %[x1], %[a]\n\t")
		"vldrw.u32 q4, [%[a]]\n\t"
		"vadd.f32 q0, q0, q4\n\t"
		"vadd.f32 q2, q2, q4\n\t"
		"vstrw.32 q0, [%[y0]]\n\t"
		"vstrw.32 q2, [%[y1]]\n\t"
		: [x0] "+r"(x0), [x1] "+r"(x1), [w] "+l"(w), [rows] "=&l"(rows), [n] "=&r"(n),
		  [a] "=&l"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d)
		: [t] "r"(t), [y0] "r"(y0), [y1] "r"(y1)
		: TINYML_TILE_REGISTERS);
}
/* clang-format on */

#undef TINYML_TILE_ROWS
#undef TINYML_TILE_W
#undef TINYML_TILE_1X8
#undef TINYML_TILE_2X8
#undef TINYML_TILE_1X4
#undef TINYML_TILE_2X4
#undef TINYML_TILE_REGISTERS

#endif /* TINYML_TILE_MVE_F32_H_ */
