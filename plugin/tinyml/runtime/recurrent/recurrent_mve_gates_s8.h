/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Gates of four cells with Helium: sixteen elements of four rows at a time; int16 of two gates in
 * the lanes of a vector. */

#ifndef TINYML_RECURRENT_MVE_GATES_S8_H_
#define TINYML_RECURRENT_MVE_GATES_S8_H_

#include <arm_mve.h>
#include <stdint.h>

#include <tinyml/recurrent_s8.h>

#include "../weighted/assembly.h"
#include "recurrent_group_s8.h"

/* What a group adds to its gates. */
struct parts {
	int32x4_t from_x;
	int32x4_t from_h;
};

/* The products of four rows with a copy. In assembly, because compilers do not make loops of this
 * kind, and move sums to a vector one by one.
 */
static inline __attribute__((always_inline)) int32x4_t
recurrent_mve_gates_four(const int8_t **weights, const int8_t *x, recurrent_group_extent more)
{
	const int8_t *w = *weights;
	int32_t s0, s1, s2, s3;
	int32x4_t sums;

	/* clang-format off */
	__asm__ volatile(
		"vldrb.8 q0, [%[x]], #16\n\t"
		"vldrb.8 q1, [%[w]], #16\n\t"
		"vmladav.s8 %[s0], q0, q1\n\t"
		"vldrb.8 q2, [%[w]], #16\n\t"
		"vmladav.s8 %[s1], q0, q2\n\t"
		"vldrb.8 q1, [%[w]], #16\n\t"
		"vmladav.s8 %[s2], q0, q1\n\t"
		"vldrb.8 q2, [%[w]], #16\n\t"
		"vmladav.s8 %[s3], q0, q2\n\t"
		"wls lr, %[more], 2f\n"
		"1:\n\t"
		"vldrb.8 q0, [%[x]], #16\n\t"
		"vldrb.8 q1, [%[w]], #16\n\t"
		"vmladava.s8 %[s0], q0, q1\n\t"
		"vldrb.8 q2, [%[w]], #16\n\t"
		"vmladava.s8 %[s1], q0, q2\n\t"
		"vldrb.8 q1, [%[w]], #16\n\t"
		"vmladava.s8 %[s2], q0, q1\n\t"
		"vldrb.8 q2, [%[w]], #16\n\t"
		"vmladava.s8 %[s3], q0, q2\n\t"
		"le lr, 1b\n"
		"2:\n\t"
		"vmov %q[sums][2], %q[sums][0], %[s0], %[s2]\n\t"
		"vmov %q[sums][3], %q[sums][1], %[s1], %[s3]"
		: [x] "+r"(x), [w] "+r"(w), [sums] "=&w"(sums), [s0] "=&Te"(s0), [s1] "=&Te"(s1),
		  [s2] "=&Te"(s2), [s3] "=&Te"(s3)
		: [more] "r"(more)
		: "lr", "q0", "q1", "q2", "memory");
	/* clang-format on */
	*weights = w;
	return sums;
}

static inline __attribute__((always_inline)) struct parts
recurrent_mve_gates_parts(struct group *group)
{
	const int32_t *rows = group->rows;
	const int32x4_t x = recurrent_mve_gates_four(&group->w, group->x, group->x_extent);
	const int32x4_t h = recurrent_mve_gates_four(&group->r, group->h, group->h_extent);
	struct parts parts;

	parts.from_x = vmulhq_s32(vshlq_r_s32(x, group->x_left), vldrwq_s32(rows + ROWS));
	parts.from_x = vaddq_s32(parts.from_x, vldrwq_s32(rows));
	parts.from_h = vmulhq_s32(vshlq_r_s32(h, group->h_left), vldrwq_s32(rows + 2 * ROWS));
	group->rows = rows + 3 * ROWS;
	return parts;
}

static inline int32x4_t recurrent_mve_gates_sums(struct group *group)
{
	const struct parts parts = recurrent_mve_gates_parts(group);

	return vaddq_s32(parts.from_x, parts.from_h);
}

/* A gate of four cells as int16: in the low halves of the lanes of 32 bits. (Shifted and narrowed
 * apart: GNU's assembler 2.40 makes VQRSHRN, which rounds, of VQSHRN.)
 */
static inline int16x8_t recurrent_mve_gates_one(int32x4_t sums)
{
	return vqmovnbq_s32(vuninitializedq_s16(), vshrq_n_s32(sums, 3));
}

/* A second gate of the cells, in the high halves. */
static inline int16x8_t recurrent_mve_gates_join(int16x8_t gate, int32x4_t sums)
{
	return vqmovntq_s32(gate, vshrq_n_s32(sums, 3));
}

/* Of the function below: r0 the group, then the next elements of a copy; from r1 on the group's
 * members w, r, rows, x and h, in r7 and r9 the extents, in r11 x_left; r6, r8, r10 and r12 sums;
 * q0 the gates, q1 weights, q2 elements of a copy, q3 what the input adds.
 */
TINYML_OFFSET(struct group, w, 0);
TINYML_OFFSET(struct group, r, 4);
TINYML_OFFSET(struct group, rows, 8);
TINYML_OFFSET(struct group, x, 12);
TINYML_OFFSET(struct group, h, 16);
TINYML_OFFSET(struct group, x_extent, 20);
TINYML_OFFSET(struct group, h_extent, 24);
TINYML_OFFSET(struct group, x_left, 28);
TINYML_OFFSET(struct group, h_left, 32);

/* clang-format off */
#define ROW(add, weights, sum)                                                                     \
	"vldrb.8 q1, [" weights "], #16\n\t"                                                       \
	add ".s8 " sum ", q2, q1\n\t"
#define ALL_ROWS(add, weights)                                                                     \
	ROW(add, weights, "r6")                                                                    \
	ROW(add, weights, "r8")                                                                    \
	ROW(add, weights, "r10")                                                                   \
	ROW(add, weights, "r12")
/* Four rows times a copy: `to`. */
#define SUMS(to, copy, extent, weights)                                                            \
	"vldrb.8 q2, [" copy "]\n\t"                                                               \
	ALL_ROWS("vmladav", weights)                                                               \
	"wls lr, " extent ", 2f\n\t"                                                               \
	"mov r0, " copy "\n"                                                                       \
	"1:\n\t"                                                                                   \
	"vldrb.8 q2, [r0, #16]!\n\t"                                                               \
	ALL_ROWS("vmladava", weights)                                                              \
	"le lr, 1b\n"                                                                              \
	"2:\n\t"                                                                                   \
	"vmov " to "[2], " to "[0], r6, r10\n\t"                                                   \
	"vmov " to "[3], " to "[1], r8, r12\n\t"
/* A gate, into the low or the high halves of q0. */
#define GATE(narrow)                                                                               \
	SUMS("q3", "r4", "r7", "r1")                                                               \
	"vshl.s32 q3, r11\n\t"                                                                     \
	"vldrw.32 q1, [r3, #16]\n\t"                                                               \
	"vmulh.s32 q3, q3, q1\n\t"                                                                 \
	"vldrw.32 q1, [r3], #32\n\t"                                                               \
	"vadd.i32 q3, q3, q1\n\t"                                                                  \
	SUMS("q2", "r5", "r9", "r2")                                                               \
	"ldr r6, [sp]\n\t"                                                                         \
	"ldr r6, [r6, #32]\n\t" /* h_left */                                                       \
	"vshl.s32 q2, r6\n\t"                                                                      \
	"vldrw.32 q1, [r3], #16\n\t"                                                               \
	"vmulh.s32 q2, q2, q1\n\t"                                                                 \
	"vadd.i32 q2, q2, q3\n\t"                                                                  \
	"vshr.s32 q2, q2, #3\n\t"                                                                  \
	narrow ".s32 q0, q2\n\t"
/* clang-format on */

/* Two gates of four cells: one in the low halves, the next one in the high halves. All of it in
 * assembly, so that what both need of the group is loaded once and stays in registers.
 */
TINYML_ASSEMBLY static int16x8_t recurrent_mve_gates_two(struct group *group TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r0, r4-r11, lr}\n\t"
		"ldm r0, {r1-r5, r7, r9, r11}\n\t"
		GATE("vqmovnb")
		GATE("vqmovnt")
		"pop {r0}\n\t"
		"stm r0, {r1-r3}\n\t"
		"pop {r4-r11, pc}\n\t");
	/* clang-format on */
}
#undef GATE
#undef SUMS
#undef ALL_ROWS
#undef ROW

/* Between an element of the table and the next one; `share`: of the step between them, times 2^16.
 */
static inline int16x8_t recurrent_mve_gates_between(int16x8_t place, uint16x8_t share)
{
	const uint16x8_t first = vreinterpretq_u16_s16(vaddq_n_s16(place, 256));
	const int16x8_t low = vldrhq_gather_shifted_offset_s16(tinyml_tanh_s16, first);
	const int16x8_t high = vldrhq_gather_shifted_offset_s16(tinyml_tanh_s16 + 1, first);
	const uint16x8_t step = vreinterpretq_u16_s16(vsubq_s16(high, low));

	return vaddq_s16(low, vreinterpretq_s16_u16(vrmulhq_u16(step, share)));
}

static inline int16x8_t recurrent_mve_gates_tanh(int16x8_t x)
{
	return recurrent_mve_gates_between(vshrq_n_s16(x, 7),
					   vshlq_n_u16(vreinterpretq_u16_s16(x), 9));
}

static inline int16x8_t recurrent_mve_gates_logistic(int16x8_t x)
{
	const int16x8_t curve = recurrent_mve_gates_between(
		vshrq_n_s16(x, 8), vshlq_n_u16(vreinterpretq_u16_s16(x), 8));
	const uint16x8_t upwards = vreinterpretq_u16_s16(vaddq_n_s16(curve, INT16_MIN));

	return vreinterpretq_s16_u16(vshrq_n_u16(upwards, 1));
}

/* The high halves in the place of the low ones. */
static inline int16x8_t recurrent_mve_gates_high(int16x8_t x)
{
	return vreinterpretq_s16_s32(vshrq_n_s32(vreinterpretq_s32_s16(x), 16));
}

#endif /* TINYML_RECURRENT_MVE_GATES_S8_H_ */
