/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Gates of four neighbouring cells, with DSP instructions: products with two rows in one int16
 * (pairs_s8.h), scaled, and the functions of the gates. Copies of input and state are int16, so
 * that no word of them is unpacked twice: 14 instructions for 16 products. */

#ifndef TINYML_RECURRENT_DSP_UNIT_S8_H_
#define TINYML_RECURRENT_DSP_UNIT_S8_H_

#include <stdint.h>

#include <tinyml/recurrent_s8.h>

#include "../weighted/assembly.h"

/* Four cells. Assembly knows the layout; it counts from `w`. */
struct unit {
	const int16_t *r; /* the recurrent weights of the next gate */
	const int16_t *h; /* a copy of the state */
	const int16_t *h_end;
	const int16_t *w; /* the weights of the next gate */
	const int16_t *x; /* a copy of the input */
	const int16_t *x_end;
	int32_t x_entry; /* where the loop over the copy begins */
	int32_t x_down;  /* sums of the first of two rows are shifted to the right */
	int32_t x_left;  /* sums of the second one are shifted to the left */
	int32_t h_entry;
	int32_t h_down;
	int32_t h_left;
	const int32_t *rows;   /* of the next gate: 4 biases, 4 factors of from_x, 4 of from_h */
	const int32_t *middle; /* of the table of tanh */
	int32_t curve;         /* CURVE_BITS */
	uint32_t *to;         /* where the next gate goes that is a logistic function: four int16 */
	uint32_t *to_end;     /* and where they end */
	const int32_t *again; /* 4 biases of what the state adds, for recurrent_dsp_apart() */
	int32_t from_x[4];    /* there what the input adds, in units of 2^-15 */
};

TINYML_OFFSET(struct unit, r, 0);
TINYML_OFFSET(struct unit, h, 4);
TINYML_OFFSET(struct unit, h_end, 8);
TINYML_OFFSET(struct unit, w, 12);
TINYML_OFFSET(struct unit, x, 16);
TINYML_OFFSET(struct unit, x_end, 20);
TINYML_OFFSET(struct unit, x_entry, 24);
TINYML_OFFSET(struct unit, x_down, 28);
TINYML_OFFSET(struct unit, x_left, 32);
TINYML_OFFSET(struct unit, h_entry, 36);
TINYML_OFFSET(struct unit, h_down, 40);
TINYML_OFFSET(struct unit, h_left, 44);
TINYML_OFFSET(struct unit, rows, 48);
TINYML_OFFSET(struct unit, middle, 52);
TINYML_OFFSET(struct unit, curve, 56);
TINYML_OFFSET(struct unit, to, 60);
TINYML_OFFSET(struct unit, to_end, 64);
TINYML_OFFSET(struct unit, again, 68);
TINYML_OFFSET(struct unit, from_x, 72);

#define CURVE_BITS                                                                                 \
	(1 << 14) /* what elements of the table are multiplied by, with `share` above              \
		   */

#define CODE_OF_FOUR 56 /* bytes of assembly for four elements of four rows */

/* The first four elements come before the loop over 32, which is entered so that it ends with the
 * last ones.
 */
static inline int32_t recurrent_dsp_unit_entry(int32_t padded)
{
	const int32_t rest = (padded >> 2) - 1;

	return CODE_OF_FOUR * (rest == 0 ? 8 : -rest & 7);
}

/* Of the functions below: r0 weights, r1 elements, r2 their end, r3 and r12 four elements, r4 to r7
 * sums, r8 to r11 weights, lr the unit from its `w`.
 */
/* clang-format off */
#define PRODUCTS(add, a, b, x)                                                                     \
	add("r4", a, x)                                                                            \
	"sxtb16 " a ", " a "\n\t"                                                                  \
	add("r6", b, x)                                                                            \
	"sxtb16 " b ", " b "\n\t"                                                                  \
	add("r5", a, x)                                                                            \
	add("r7", b, x)
#define FIRST(sum, a, x) "smuad " sum ", " a ", " x "\n\t"
#define MORE(sum, a, x)  "smlad " sum ", " a ", " x ", " sum "\n\t"
#define FOUR(add)                                                                                  \
	"ldmia.w r0!, {r8-r11}\n\t"                                                                \
	"ldrd r3, r12, [r1], #8\n\t"                                                               \
	PRODUCTS(add, "r8", "r9", "r3")                                                            \
	PRODUCTS(MORE, "r10", "r11", "r12")
#define SUMS(entry)                                                                                \
	FOUR(FIRST)                                                                                \
	"ldr r12, [lr, #" entry "]\n\t"                                                            \
	"4:\n\t"                                                                                   \
	"add pc, r12\n\t" /* from 4 bytes after this instruction */                                \
	"nop\n\t"                                                                                  \
	"1:\n\t"                                                                                   \
	TINYML_CODE_BYTES("4b", "1b", 4)                                                           \
	FOUR(MORE) FOUR(MORE) FOUR(MORE) FOUR(MORE)                                                \
	FOUR(MORE) FOUR(MORE) FOUR(MORE) FOUR(MORE)                                                \
	"2:\n\t"                                                                                   \
	TINYML_CODE_BYTES("1b", "2b", 8 * CODE_OF_FOUR)                                            \
	"cmp r1, r2\n\t"                                                                           \
	"bne 1b\n\t"
/* r4 and r6 are 256 times the sums of their rows, after r5 and r7 are subtracted. */
#define SHIFTED                                                                                    \
	"sub r4, r4, r5\n\t"                                                                       \
	"sub r6, r6, r7\n\t"                                                                       \
	"asr r4, r4, r1\n\t"                                                                       \
	"asr r6, r6, r1\n\t"                                                                       \
	"lsl r5, r5, r2\n\t"                                                                       \
	"lsl r7, r7, r2\n\t"
#define ADD_PARTS                                                                                  \
	"pop {r0, r1, r2, r3, r12}\n\t"                                                            \
	"smmla r4, r4, r8, r1\n\t"                                                                 \
	"smmla r5, r5, r9, r2\n\t"                                                                 \
	"smmla r6, r6, r10, r3\n\t"                                                                \
	"smmla r7, r7, r11, r12\n\t"                                                               \
	"ldrd r0, r1, [lr, #40]\n\t" /* middle, curve */
/* Between an element of the table and the next one, times 2^14: the element times a power of two,
 * and its step times the low bits, in one instruction.
 */
#define CURVE(sum, bits, place)                                                                    \
	"ssat " sum ", #16, " sum ", asr #3\n\t"                                                   \
	"asr r3, " sum ", #" bits "\n\t"                                                           \
	"ldr r3, [r0, r3, lsl #2]\n\t"                                                             \
	"bfi r1, " sum ", #" place ", #" bits "\n\t"                                               \
	"smlad " sum ", r3, r1, r2\n\t"
#define CURVES(bits, place)                                                                        \
	CURVE("r4", bits, place)                                                                   \
	CURVE("r5", bits, place)                                                                   \
	CURVE("r6", bits, place)                                                                   \
	CURVE("r7", bits, place)
/* Four sums, with the factors of what the state adds, and without that of the input, which is
 * pushed above the address of the factors.
 */
#define GATE                                                                                       \
	"ldm.w lr, {r0-r2}\n\t" /* w, x, x_end */                                                  \
	SUMS("12")                                                                                 \
	"str r0, [lr]\n\t"                                                                         \
	"ldrd r1, r2, [lr, #16]\n\t" /* x_down, x_left */                                          \
	SHIFTED                                                                                    \
	"ldr r3, [lr, #36]\n\t"       /* rows */                                                   \
	"ldmia.w r3!, {r8-r11}\n\t"   /* biases */                                                 \
	"ldmia.w r3!, {r0, r1, r2, r12}\n\t"                                                       \
	"smmla r4, r4, r0, r8\n\t"                                                                 \
	"smmla r5, r5, r1, r9\n\t"                                                                 \
	"smmla r6, r6, r2, r10\n\t"                                                                \
	"smmla r7, r7, r12, r11\n\t"                                                               \
	"push {r3-r7}\n\t"                                                                         \
	"ldmdb.w lr, {r0-r2}\n\t" /* r, h, h_end */                                                \
	SUMS("24")                                                                                 \
	"str r0, [lr, #-12]\n\t"                                                                   \
	"ldrd r1, r2, [lr, #28]\n\t" /* h_down, h_left */                                          \
	SHIFTED                                                                                    \
	"ldr r3, [sp]\n\t"                                                                         \
	"ldmia.w r3!, {r8-r11}\n\t"                                                                \
	"str r3, [lr, #36]\n\t"
/* clang-format on */

/* Gates of four cells that are logistic functions, until `to` is `to_end`. */
TINYML_ASSEMBLY static void recurrent_dsp_unit_logistic(struct unit *unit TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r4-r11, lr}\n\t"
		"add lr, r0, #12\n\t"
		"5:\n\t"
		GATE
		ADD_PARTS
		"mov.w r2, #0x20002000\n\t" /* a half, and what makes tanh the logistic function */
		CURVES("8", "22")
		"ldrd r0, r1, [lr, #48]\n\t" /* to, to_end */
		"asr r4, r4, #15\n\t"
		"asr r6, r6, #15\n\t"
		"pkhbt r4, r4, r5, lsl #1\n\t"
		"pkhbt r6, r6, r7, lsl #1\n\t"
		"strd r4, r6, [r0], #8\n\t"
		"str r0, [lr, #48]\n\t"
		"cmp r0, r1\n\t"
		"bne.w 5b\n\t"
		"pop {r4-r11, pc}\n\t");
	/* clang-format on */
}

/* The next gate of four cells: tanh, if `apart` is 0. Otherwise what the state adds, with its own
 * biases and no function, and what the input adds, in `from_x`. Four int16, from cell 0 in the
 * lowest half to cell 3.
 */
TINYML_ASSEMBLY static uint64_t recurrent_dsp_unit_gate(struct unit *unit TINYML_UNSEEN,
							int32_t apart TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r1, r4-r11, lr}\n\t"
		"add lr, r0, #12\n\t"
		GATE
		"ldr r0, [sp, #20]\n\t" /* apart */
		"cbz r0, 7f\n\t"
		"ldr r0, [lr, #56]\n\t" /* again */
		"ldmia.w r0!, {r1, r2, r3, r12}\n\t"
		"str r0, [lr, #56]\n\t"
		"smmla r4, r4, r8, r1\n\t"
		"smmla r5, r5, r9, r2\n\t"
		"smmla r6, r6, r10, r3\n\t"
		"smmla r7, r7, r11, r12\n\t"
		"pop {r0, r1, r2, r3, r12}\n\t"
		"add r8, lr, #60\n\t"
		"stm.w r8, {r1, r2, r3, r12}\n\t" /* from_x */
		"ssat r4, #16, r4, asr #3\n\t"
		"ssat r5, #16, r5, asr #3\n\t"
		"ssat r6, #16, r6, asr #3\n\t"
		"ssat r7, #16, r7, asr #3\n\t"
		"pkhbt r0, r4, r5, lsl #16\n\t"
		"pkhbt r1, r6, r7, lsl #16\n\t"
		"pop {r3-r11, pc}\n\t"
		"7:\n\t"
		ADD_PARTS
		"mov.w r2, #0x2000\n\t"
		CURVES("7", "23")
		"asr r4, r4, #14\n\t"
		"asr r6, r6, #14\n\t"
		"pkhbt r0, r4, r5, lsl #2\n\t"
		"pkhbt r1, r6, r7, lsl #2\n\t"
		"pop {r3-r11, pc}\n\t");
	/* clang-format on */
}
#undef GATE
#undef CURVES
#undef CURVE
#undef ADD_PARTS
#undef SHIFTED
#undef SUMS
#undef FOUR
#undef MORE
#undef FIRST
#undef PRODUCTS

#endif /* TINYML_RECURRENT_DSP_UNIT_S8_H_ */
