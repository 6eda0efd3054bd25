/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Dot products in float16 with Helium: lanes are filters, so that each sum keeps its order. q0 and
 * q1 are the sums of a block for the first window, q2 and q3 those for the second, q4 and q5
 * weights, then the same sums as floats: those of even lanes first, then those of odd ones.
 *
 * Conversions are numbers because GNU assemblers (2.40) write another register than the one that
 * they are given.
 */

#ifndef TINYML_SUMS_MVE_F16_H_
#define TINYML_SUMS_MVE_F16_H_

#include <stdbool.h>

#include "assembly.h"

/* clang-format off */

#define SUMS_MVE_BLOCK_TEXT_(block) #block
#define SUMS_MVE_BLOCK_TEXT(block)  SUMS_MVE_BLOCK_TEXT_(block)

/* vcvtb.f16.f32 qd, qm; vcvtb.f32.f16 qd, qm; vcvtt.f32.f16 qd, qm */
#define SUMS_MVE_NARROW(d, m) ".inst.w 0xee3f0e01 + 8192 * " #d " + 2 * " #m "\n\t"
#define SUMS_MVE_EVEN(d, m)   ".inst.w 0xfe3f0e01 + 8192 * " #d " + 2 * " #m "\n\t"
#define SUMS_MVE_ODD(d, m)    ".inst.w 0xfe3f1e01 + 8192 * " #d " + 2 * " #m "\n\t"

static inline void tinyml_narrow_f16(const struct tinyml_runs_f16 *r, const float *x, uint16_t *y)
{
	int32_t rows = r->rows;
	const float *from;
	uint16_t *to;

	__asm__ volatile(
		"1:\n\t"
		"mov %[from], %[x]\n\t"
		"mov %[to], %[y]\n\t"
		"wlstp.32 lr, %[count], 3f\n"
		"2:\n\t"
		"vldrw.u32 q0, [%[from]], #16\n\t"
		SUMS_MVE_NARROW(0, 0)
		"vstrh.32 q0, [%[to]], #8\n\t"
		"letp lr, 2b\n"
		"3:\n\t"
		"add %[x], %[x], %[x_bytes]\n\t"
		"add %[y], %[y], %[y_bytes]\n\t"
		"subs %[rows], %[rows], #1\n\t"
		"bgt 1b"
		: [x] "+r"(x), [y] "+r"(y), [rows] "+r"(rows), [from] "=&r"(from), [to] "=&l"(to)
		: [count] "r"(r->count), [x_bytes] "r"(r->x_step * 4), [y_bytes] "r"(r->y_step * 2)
		: "lr", "q0", "cc", "memory");
}

/* Where the sums of a tile begin and end, and its weights. */
struct sums_mve_tile {
	const float *from0, *from1; /* what the sums of both windows begin with */
	float *y0, *y1;
	int32_t step; /* bytes of the weights for an element */
};

TINYML_OFFSET(struct sums_mve_tile, from0, 0);
TINYML_OFFSET(struct sums_mve_tile, from1, 4);
TINYML_OFFSET(struct sums_mve_tile, y0, 8);
TINYML_OFFSET(struct sums_mve_tile, y1, 12);
TINYML_OFFSET(struct sums_mve_tile, step, 16);

/* All blocks: each has its fours of elements, then the rest one by one. */
#define SUMS_MVE_BLOCKS(zeros, four, one, add)                                                     \
	"1:\n\t"                                                                                   \
	"mov %[a], #" SUMS_MVE_BLOCK_TEXT(TINYML_SUMS_F16_BLOCK) "\n\t"                            \
	"cmp %[count], %[a]\n\t"                                                                   \
	"it lt\n\t"                                                                                \
	"movlt %[a], %[count]\n\t"                                                                 \
	"sub %[count], %[count], %[a]\n\t"                                                         \
	zeros                                                                                      \
	"and %[rest], %[a], #3\n\t"                                                                \
	"lsr %[a], %[a], #2\n\t"                                                                   \
	"wls lr, %[a], 3f\n"                                                                       \
	"2:\n\t"                                                                                   \
	four                                                                                       \
	"le lr, 2b\n"                                                                              \
	"3:\n\t"                                                                                   \
	"wls lr, %[rest], 5f\n"                                                                    \
	"4:\n\t"                                                                                   \
	one                                                                                        \
	"le lr, 4b\n"                                                                              \
	"5:\n\t"                                                                                   \
	"ldrd %[a], %[b], [%[t]]\n\t"                                                             \
	"ldrd %[c], %[d], [%[t], #8]\n\t"                                                         \
	add                                                                                        \
	"strd %[c], %[d], [%[t]]\n\t"                                                             \
	"cmp %[count], #0\n\t"                                                                     \
	"bgt 1b\n\t"

/* An element times sixteen filters, or eight, or fewer; the same for two windows. */
#define SUMS_MVE_1X16(a)                                                                           \
	"vldrh.u16 q4, [%[w]], #16\n\t"                                                            \
	"vldrh.u16 q5, [%[w]], #16\n\t"                                                            \
	"vfma.f16 q0, q4, %[" #a "]\n\t"                                                           \
	"vfma.f16 q1, q5, %[" #a "]\n\t"
#define SUMS_MVE_2X16(a, c)                                                                        \
	SUMS_MVE_1X16(a)                                                                           \
	"vfma.f16 q2, q4, %[" #c "]\n\t"                                                           \
	"vfma.f16 q3, q5, %[" #c "]\n\t"
#define SUMS_MVE_1X8(a)                                                                            \
	"vldrh.u16 q4, [%[w]], #16\n\t"                                                            \
	"vfma.f16 q0, q4, %[" #a "]\n\t"
#define SUMS_MVE_2X8(a, c)                                                                         \
	SUMS_MVE_1X8(a)                                                                            \
	"vfma.f16 q2, q4, %[" #c "]\n\t"
#define SUMS_MVE_1XN(a)                                                                            \
	"vldrh.u16 q4, [%[w]]\n\t"                                                                 \
	"add %[w], %[w], %[step]\n\t"                                                              \
	"vfma.f16 q0, q4, %[" #a "]\n\t"

/* Elements come in pairs; multiplications read the lower half of a register. */
#define SUMS_MVE_FOUR_1(by)                                                                        \
	"ldrd %[a], %[b], [%[x0]], #8\n\t"                                                         \
	by(a)                                                                                      \
	"lsr %[a], %[a], #16\n\t"                                                                  \
	by(a)                                                                                      \
	by(b)                                                                                      \
	"lsr %[b], %[b], #16\n\t"                                                                  \
	by(b)
#define SUMS_MVE_ONE_1(by)                                                                         \
	"ldrh %[a], [%[x0]], #2\n\t"                                                               \
	by(a)
#define SUMS_MVE_FOUR_2(by)                                                                        \
	"ldrd %[a], %[b], [%[x0]], #8\n\t"                                                         \
	"ldrd %[c], %[d], [%[x1]], #8\n\t"                                                         \
	by(a, c)                                                                                   \
	"lsr %[a], %[a], #16\n\t"                                                                  \
	"lsr %[c], %[c], #16\n\t"                                                                  \
	by(a, c)                                                                                   \
	by(b, d)                                                                                   \
	"lsr %[b], %[b], #16\n\t"                                                                  \
	"lsr %[d], %[d], #16\n\t"                                                                  \
	by(b, d)
#define SUMS_MVE_ONE_2(by)                                                                         \
	"ldrh %[a], [%[x0]], #2\n\t"                                                               \
	"ldrh %[c], [%[x1]], #2\n\t"                                                               \
	by(a, c)

#define SUMS_MVE_ZERO(q) "vmov.i32 q" #q ", #0\n\t"

/* Adds the sums of a block to what the blocks before it added up to. */
#define SUMS_MVE_ADD(q, from, to, first, second)                                                   \
	SUMS_MVE_EVEN(4, q)                                                                        \
	SUMS_MVE_ODD(5, q)                                                                         \
	"vldrw.u32 q6, [%[" #from "], #" #first "]\n\t"                                           \
	"vldrw.u32 q7, [%[" #from "], #" #second "]\n\t"                                          \
	"vadd.f32 q6, q6, q4\n\t"                                                                 \
	"vadd.f32 q7, q7, q5\n\t"                                                                 \
	"vstrw.32 q6, [%[" #to "], #" #first "]\n\t"                                              \
	"vstrw.32 q7, [%[" #to "], #" #second "]\n\t"

#define SUMS_MVE_REGISTERS "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory"

/* Sixteen filters or eight with two windows. */
#define SUMS_MVE_TILE_2(zeros, by, add)                                                            \
	int32_t rest, a, b, c, d;                                                                  \
                                                                                                   \
	__asm__ volatile(                                                                          \
		SUMS_MVE_BLOCKS(zeros, SUMS_MVE_FOUR_2(by), SUMS_MVE_ONE_2(by), add)               \
		: [x0] "+r"(x0), [x1] "+r"(x1), [w] "+l"(w), [count] "+r"(count),                  \
		  [rest] "=&r"(rest), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d)       \
		: [t] "r"(t)                                                                       \
		: SUMS_MVE_REGISTERS)

/* Sixteen filters, or eight or fewer, with one window. */
#define SUMS_MVE_TILE_1(zeros, by, add)                                                            \
	int32_t rest, a, b, c, d;                                                                  \
                                                                                                   \
	__asm__ volatile(                                                                          \
		SUMS_MVE_BLOCKS(zeros, SUMS_MVE_FOUR_1(by), SUMS_MVE_ONE_1(by), add)               \
		: [x0] "+r"(x0), [w] "+l"(w), [count] "+r"(count), [rest] "=&r"(rest),             \
		  [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d)                           \
		: [t] "r"(t), [step] "r"(t->step)                                                  \
		: SUMS_MVE_REGISTERS)

static inline void sums_mve_2x16(struct sums_mve_tile *t, int32_t count, const uint16_t *w,
				 const uint16_t *x0, const uint16_t *x1)
{
	SUMS_MVE_TILE_2(
		SUMS_MVE_ZERO(0) SUMS_MVE_ZERO(1) SUMS_MVE_ZERO(2) SUMS_MVE_ZERO(3),
		SUMS_MVE_2X16,
		SUMS_MVE_ADD(0, a, c, 0, 16) SUMS_MVE_ADD(1, a, c, 32, 48)
		SUMS_MVE_ADD(2, b, d, 0, 16) SUMS_MVE_ADD(3, b, d, 32, 48));
}

static inline void sums_mve_2x8(struct sums_mve_tile *t, int32_t count, const uint16_t *w,
				const uint16_t *x0, const uint16_t *x1)
{
	SUMS_MVE_TILE_2(
		SUMS_MVE_ZERO(0) SUMS_MVE_ZERO(2),
		SUMS_MVE_2X8,
		SUMS_MVE_ADD(0, a, c, 0, 16) SUMS_MVE_ADD(2, b, d, 0, 16));
}

static inline void sums_mve_1x16(struct sums_mve_tile *t, int32_t count, const uint16_t *w,
				 const uint16_t *x0)
{
	SUMS_MVE_TILE_1(
		SUMS_MVE_ZERO(0) SUMS_MVE_ZERO(1),
		SUMS_MVE_1X16,
		SUMS_MVE_ADD(0, a, c, 0, 16) SUMS_MVE_ADD(1, a, c, 32, 48));
}

static inline void sums_mve_1xn(struct sums_mve_tile *t, int32_t count, const uint16_t *w,
				const uint16_t *x0)
{
	SUMS_MVE_TILE_1(
		SUMS_MVE_ZERO(0),
		SUMS_MVE_1XN,
		SUMS_MVE_ADD(0, a, c, 0, 16));
}
/* clang-format on */

static const float sums_mve_zeros[16];

/* Fewer filters than a vector has lanes, whose sums are not in their order: those of even lanes
 * come first.
 */
static void sums_mve_few(int32_t filters, int32_t count, const uint16_t *w, const float *bias,
			 const uint16_t *x, float *y)
{
	float sums[8];
	struct sums_mve_tile t = {sums, NULL, sums, NULL, filters * (int32_t)sizeof(*w)};

	for (int32_t i = 0; i < 8; i++) {
		sums[i % 2 * 4 + i / 2] = i < filters ? bias[i] : 0.0f;
	}
	sums_mve_1xn(&t, count, w, x);
	for (int32_t i = 0; i < filters; i++) {
		y[i] = sums[i % 2 * 4 + i / 2];
	}
}

/* So many filters, which take turns, with one window or two. */
static inline void tinyml_some_f16(int32_t filters, int32_t count, const uint16_t *w,
				   const float *bias, const uint16_t *x0, const uint16_t *x1,
				   float *y0, float *y1)
{
	const bool two = x1 != NULL;
	const float *const from = bias != NULL ? bias : sums_mve_zeros;
	struct sums_mve_tile t = {from, from, y0, y1, filters * (int32_t)sizeof(*w)};

	if (filters == 16) {
		if (two) {
			sums_mve_2x16(&t, count, w, x0, x1);
		} else {
			sums_mve_1x16(&t, count, w, x0);
		}
	} else if (filters == 8) {
		if (two) {
			sums_mve_2x8(&t, count, w, x0, x1);
		} else {
			sums_mve_1xn(&t, count, w, x0);
		}
	} else {
		sums_mve_few(filters, count, w, from, x0, y0);
		if (two) {
			sums_mve_few(filters, count, w, from, x1, y1);
		}
	}
}

#endif /* TINYML_SUMS_MVE_F16_H_ */
