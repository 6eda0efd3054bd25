/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * For conv_mve_s8.c: the loops over filters at four windows, with weights of eight and of four
 * bits, in assembly.
 */

#ifndef TINYML_CONV_FILTERS_MVE_S8_H_
#define TINYML_CONV_FILTERS_MVE_S8_H_

#include "conv_windows_mve_s8.h"

/* Groups of four filters at four windows. The assembly below knows the layout. */
struct filters {
	int32_t adjust; /* from behind the vectors of a pair to the next pair */
	const int8_t *columns;
	int32_t rounds;        /* of the loop over vectors, four each */
	int32_t skip;          /* bytes of its code to skip at first */
	const int8_t *weights; /* less the first adjustment */
	const int32_t *channels;
	int8_t *y;                   /* outputs of the first window */
	int32_t others[WINDOWS - 1]; /* from there to those of the other windows */
	const int8_t *end;           /* of the outputs of the first window */
	int32_t zero;
	int8_t low[TINYML_LANES];
	int8_t high[TINYML_LANES];
	int32_t saved;      /* r7 */
	int32_t pair_bytes; /* of the vectors of a pair; not for the assembly */
};
TINYML_OFFSET(struct filters, adjust, 0);
TINYML_OFFSET(struct filters, columns, 4);
TINYML_OFFSET(struct filters, rounds, 8);
TINYML_OFFSET(struct filters, skip, 12);
TINYML_OFFSET(struct filters, weights, 16);
TINYML_OFFSET(struct filters, channels, 20);
TINYML_OFFSET(struct filters, y, 24);
TINYML_OFFSET(struct filters, others, 28);
TINYML_OFFSET(struct filters, end, 40);
TINYML_OFFSET(struct filters, zero, 44);
TINYML_OFFSET(struct filters, low, 48);
TINYML_OFFSET(struct filters, high, 64);
TINYML_OFFSET(struct filters, saved, 80);

/* One instruction in a line. */
/* clang-format off */

/* A vector of two filters times one of four windows. Sums of the first filter are in r0, r2, r4 and
 * r6, of the second in r8, r10, r12 and lr.
 */
#define MULTIPLY(multiply)                                                                         \
	"vldrb.8 q2, [r3], #64\n\t"                                                                \
	"vldrb.8 q0, [r1], #32\n\t"                                                                \
	multiply " r0, q0, q2\n\t"                                                                 \
	"vldrb.8 q1, [r1, #-16]\n\t"                                                               \
	multiply " r8, q1, q2\n\t"                                                                 \
	"vldrb.8 q3, [r3, #-48]\n\t"                                                               \
	multiply " r2, q0, q3\n\t"                                                                 \
	"vldrb.8 q2, [r3, #-32]\n\t"                                                               \
	multiply " r10, q1, q3\n\t"                                                                \
	multiply " r4, q0, q2\n\t"                                                                 \
	"vldrb.8 q3, [r3, #-16]\n\t"                                                               \
	multiply " r12, q1, q2\n\t"                                                                \
	multiply " r6, q0, q3\n\t"                                                                 \
	multiply " lr, q1, q3\n\t"
/* The same with both filters in one vector: 16 * q + p, where p is between -8 and 7. */
#define MULTIPLY_NIBBLES(multiply)                                                                 \
	"vldrb.8 q2, [r3], #64\n\t"                                                                \
	"vldrb.8 q0, [r1], #16\n\t"                                                                \
	multiply " r0, q0, q2\n\t"                                                                 \
	"vrshr.s8 q1, q0, #4\n\t"                                                                  \
	multiply " r8, q1, q2\n\t"                                                                 \
	"vldrb.8 q3, [r3, #-48]\n\t"                                                               \
	multiply " r2, q0, q3\n\t"                                                                 \
	"vldrb.8 q2, [r3, #-32]\n\t"                                                               \
	multiply " r10, q1, q3\n\t"                                                                \
	multiply " r4, q0, q2\n\t"                                                                 \
	"vldrb.8 q3, [r3, #-16]\n\t"                                                               \
	multiply " r12, q1, q2\n\t"                                                                \
	multiply " r6, q0, q3\n\t"                                                                 \
	multiply " lr, q1, q3\n\t"
#define MULTIPLY_BYTES 56
#define BRANCH_BYTES 8
#define ROUND_BYTES (4 * MULTIPLY_BYTES + BRANCH_BYTES)

/* Two filters at four windows: the sums of a filter become a vector. The loop is entered where the
 * vectors after the first one, divided by four, leave that remainder.
 */
#define PAIR(loop, first, second, product, part)                                                   \
	"ldm r11, {r0, r3, r7}\n\t"                                                                \
	"add r1, r1, r0\n\t"                                                                       \
	product("vmladav.s8")                                                                      \
	"4:\n\t"                                                                                   \
	"add pc, r5\n\t" /* from 4 bytes after this instruction */                                 \
	"nop\n"                                                                                    \
	loop ":\n\t"                                                                               \
	TINYML_CODE_BYTES("4b", loop "b", 4)                                                       \
	product("vmladava.s8")                                                                     \
	product("vmladava.s8")                                                                     \
	product("vmladava.s8")                                                                     \
	product("vmladava.s8")                                                                     \
	"5:\n\t"                                                                                   \
	TINYML_CODE_BYTES(loop "b", "5b", 4 * MULTIPLY_BYTES)                                      \
	"subs.w r7, r7, #1\n\t"                                                                    \
	"bne.w " loop "b\n\t"                                                                      \
	"6:\n\t"                                                                                   \
	TINYML_CODE_BYTES(loop "b", "6b", ROUND_BYTES)                                             \
	"vmov " first "[2], " first "[0], r0, r4\n\t"                                              \
	"vmov " first "[3], " first "[1], r2, r6\n\t"                                              \
	"vmov " second "[2], " second "[0], r8, r12\n\t"                                           \
	"vmov " second "[3], " second "[1], r10, lr\n\t"                                           \
	part(first, second)
#define APART(first, second) ""
/* Sums of 16 * q + p less 16 times those of q. */
#define APART_NIBBLES(first, second)                                                               \
	"vshl.i32 q0, " second ", #4\n\t"                                                          \
	"vsub.i32 " first ", " first ", q0\n\t"

/* The shift rounds halves up, but negative halves must round down. */
#define HALVES_AWAY                                                                                \
	"vshr.s32 q0, q4, #31\n\t"                                                                 \
	"vqadd.s32 q4, q4, q0\n\t"                                                                 \
	"vshr.s32 q1, q5, #31\n\t"                                                                 \
	"vqadd.s32 q5, q5, q1\n\t"                                                                 \
	"vshr.s32 q2, q6, #31\n\t"                                                                 \
	"vqadd.s32 q6, q6, q2\n\t"                                                                 \
	"vshr.s32 q3, q7, #31\n\t"                                                                 \
	"vqadd.s32 q7, q7, q3\n\t"
#define HALVES_UP ""

#define LIMIT                                                                                      \
	"vldrb.8 q0, [r11, #48]\n\t"                                                               \
	"vmax.s8 q4, q4, q0\n\t"                                                                   \
	"vldrb.8 q1, [r11, #64]\n\t"                                                               \
	"vmin.s8 q4, q4, q1\n\t"
#define NO_LIMIT ""

/* In assembly, because compilers spend more instructions on moving registers than on the sums. r9 is
 * left alone, because it may be the platform's register. r7 may be the frame pointer, which a
 * compiler does not let go, so it is saved here.
 */
#define APPLY(filters, multiply, round, limit, product, part)                                      \
	do {                                                                                       \
		register struct filters *at __asm__("r0") = (filters);                             \
                                                                                                   \
		__asm__ volatile(                                                                  \
			"mov r11, r0\n\t"                                                          \
			"str r7, [r11, #80]\n\t"                                                   \
			"ldrd r5, r1, [r11, #12]\n"                                                \
			"1:\n\t"                                                                   \
			PAIR("2", "q4", "q5", product, part)                                       \
			PAIR("3", "q6", "q7", product, part)                                       \
			"ldr r0, [r11, #20]\n\t"                                                   \
			"ldm r0!, {r2, r3, r4, r6, r7, r8, r10, r12, lr}\n\t"                      \
			"str r0, [r11, #20]\n\t"                                                   \
			"vadd.i32 q4, q4, r2\n\t"                                                  \
			"vadd.i32 q5, q5, r3\n\t"                                                  \
			"vadd.i32 q6, q6, r4\n\t"                                                  \
			"vadd.i32 q7, q7, r6\n\t"                                                  \
			multiply " q4, q4, r7\n\t"                                                 \
			"sxtb r2, lr\n\t"                                                          \
			multiply " q5, q5, r8\n\t"                                                 \
			"sxtb r3, lr, ror #8\n\t"                                                  \
			multiply " q6, q6, r10\n\t"                                                \
			"sxtb r4, lr, ror #16\n\t"                                                 \
			multiply " q7, q7, r12\n\t"                                                \
			"asr lr, lr, #24\n\t"                                                      \
			round                                                                      \
			"vrshl.s32 q4, r2\n\t"                                                     \
			"vrshl.s32 q5, r3\n\t"                                                     \
			"vrshl.s32 q6, r4\n\t"                                                     \
			"vrshl.s32 q7, lr\n\t"                                                     \
			"ldr r6, [r11, #44]\n\t"                                                   \
			"vqmovnb.s32 q4, q4\n\t"                                                   \
			"vqmovnb.s32 q5, q5\n\t"                                                   \
			"vqmovnt.s32 q4, q6\n\t"                                                   \
			"vqmovnt.s32 q5, q7\n\t"                                                   \
			"vqadd.s16 q4, q4, r6\n\t"                                                 \
			"vqadd.s16 q5, q5, r6\n\t"                                                 \
			"vqmovnb.s16 q4, q4\n\t"                                                   \
			"vqmovnt.s16 q4, q5\n\t"                                                   \
			limit                                                                      \
			"ldrd r0, r2, [r11, #24]\n\t"                                              \
			"ldrd r3, r4, [r11, #32]\n\t"                                              \
			"vmov r6, r8, q4[2], q4[0]\n\t"                                            \
			"vmov r10, r12, q4[3], q4[1]\n\t"                                          \
			"str r12, [r0, r4]\n\t"                                                    \
			"str r8, [r0, r3]\n\t"                                                     \
			"str r10, [r0, r2]\n\t"                                                    \
			"str r6, [r0], #4\n\t"                                                     \
			"ldr r2, [r11, #40]\n\t"                                                   \
			"str r0, [r11, #24]\n\t"                                                   \
			"cmp r0, r2\n\t"                                                           \
			"bne.w 1b\n\t"                                                             \
			"str r1, [r11, #16]\n\t"                                                   \
			"ldr r7, [r11, #80]\n\t"                                                   \
			: "+r"(at)                                                                 \
			:                                                                          \
			: "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r10", "r11", "r12", "lr",     \
			  "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");         \
	} while (false)

/* clang-format on */

struct tinyml_conv_mve {
	void (*apply)(struct filters *filters);
};

/* One function each, so that only what a model uses is linked. */
#define LOOP(name, multiply, round, limit, product, part)                                          \
	NOT_INLINED void conv_filters_mve_apply_##name(struct filters *filters)                    \
	{                                                                                          \
		APPLY(filters, multiply, round, limit, product, part);                             \
	}                                                                                          \
	const struct tinyml_conv_mve tinyml_conv_mve_##name = {conv_filters_mve_apply_##name};
LOOP(once, "vqdmulh.s32", HALVES_UP, LIMIT, MULTIPLY, APART)
LOOP(twice, "vqrdmulh.s32", HALVES_AWAY, LIMIT, MULTIPLY, APART)
/* Nothing below the zero point is kept: how negative halves are rounded changes no output. The
 * limits are those of a byte. */
LOOP(relu, "vqrdmulh.s32", HALVES_UP, NO_LIMIT, MULTIPLY, APART)
LOOP(nibbles_once, "vqdmulh.s32", HALVES_UP, LIMIT, MULTIPLY_NIBBLES, APART_NIBBLES)
LOOP(nibbles_twice, "vqrdmulh.s32", HALVES_AWAY, LIMIT, MULTIPLY_NIBBLES, APART_NIBBLES)
LOOP(nibbles_relu, "vqrdmulh.s32", HALVES_UP, NO_LIMIT, MULTIPLY_NIBBLES, APART_NIBBLES)
#undef LOOP

#endif /* TINYML_CONV_FILTERS_MVE_S8_H_ */
