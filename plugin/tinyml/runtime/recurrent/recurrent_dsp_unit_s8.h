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

/* From units of 2^-15 to the output: the high word of a product. */
struct scale {
	int32_t factor;
	int32_t zero;
};

/* What recurrent_dsp_unit_gate() makes of a gate: tanh, which it returns; states as int8 of tanh,
 * for all gates until `to` is `to_end`; or tanh that it returns of what the input adds and of what
 * the state adds, with biases of its own, times the reset gate.
 */
enum { TANH, STATES, RESET };

/* What a function of gates is made with: it is loaded at once. */
struct curve {
	uint32_t add;          /* a half, and what makes tanh the logistic function */
	const int32_t *middle; /* of the table of tanh */
	int32_t bits;          /* CURVE_BITS */
};

/* Four cells. Assembly knows the layout. */
struct unit {
	struct curve tanh;
	struct curve logistic;
	const int16_t *w; /* the table at the next gate, see recurrent_s8.h */
	const int16_t *x; /* a copy of the input */
	int32_t x_again;  /* how often the loop over the copy goes back */
	int32_t x_entry;  /* where it begins */
	const int16_t *h; /* a copy of the state */
	int32_t h_again;
	int32_t h_entry;
	uint32_t *to;         /* where the next gate goes that is not returned: four int16 */
	uint32_t *to_end;     /* and where they end */
	const int32_t *again; /* 4 biases of what the state adds, for RESET */
	struct scale scale;   /* for STATES */
	int32_t becomes;      /* of a gate: TANH, STATES or RESET */
	const int16_t *reset; /* for RESET: the reset gates of the next four cells */
};

TINYML_OFFSET(struct unit, tanh, 0);
TINYML_OFFSET(struct unit, logistic, 12);
TINYML_OFFSET(struct unit, w, 24);
TINYML_OFFSET(struct unit, x, 28);
TINYML_OFFSET(struct unit, x_again, 32);
TINYML_OFFSET(struct unit, x_entry, 36);
TINYML_OFFSET(struct unit, h, 40);
TINYML_OFFSET(struct unit, h_again, 44);
TINYML_OFFSET(struct unit, h_entry, 48);
TINYML_OFFSET(struct unit, to, 52);
TINYML_OFFSET(struct unit, to_end, 56);
TINYML_OFFSET(struct unit, again, 60);
TINYML_OFFSET(struct unit, scale, 64);
TINYML_OFFSET(struct unit, becomes, 72);
TINYML_OFFSET(struct unit, reset, 76);

#define CURVE_BITS                                                                                 \
	(1 << 14) /* what elements of the table are multiplied by, with `share` above              \
		   */

#define CODE_OF_FOUR 56 /* bytes of assembly for four elements of four rows */
#define FOURS        9  /* of the loop */

/* The first four elements come before the loop over 36, which is entered so that it ends with the
 * last ones.
 */
static inline int32_t recurrent_dsp_unit_entry(int32_t padded)
{
	const int32_t rest = (padded >> 2) - 1;

	return CODE_OF_FOUR * (rest == 0 ? FOURS : FOURS - 1 - (rest - 1) % FOURS);
}

static inline int32_t recurrent_dsp_unit_again(int32_t padded)
{
	const int32_t rest = (padded >> 2) - 1;

	return rest == 0 ? 0 : (rest - 1) / FOURS;
}

/* Of the functions below: r0 weights, r1 elements, r2 how often the loop goes back, r3 and r12 four
 * elements, r4 to r7 sums, r8 to r11 weights, lr the unit's function `logistic`.
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
	FOUR(MORE) FOUR(MORE) FOUR(MORE)                                                           \
	FOUR(MORE) FOUR(MORE) FOUR(MORE)                                                           \
	FOUR(MORE) FOUR(MORE) FOUR(MORE)                                                           \
	"2:\n\t"                                                                                   \
	TINYML_CODE_BYTES("1b", "2b", 9 * CODE_OF_FOUR)                                            \
	"cbz r2, 3f\n\t"                                                                           \
	"subs r2, #1\n\t"                                                                          \
	"b.n 1b\n\t"                                                                               \
	"3:\n\t"
/* Sums times 256: r4 and r6 are, after r5 and r7 are subtracted. */
#define SHIFTED                                                                                    \
	"sub r4, r4, r5\n\t"                                                                       \
	"sub r6, r6, r7\n\t"                                                                       \
	"lsl r5, r5, #8\n\t"                                                                       \
	"lsl r7, r7, #8\n\t"
#define ADD_PARTS                                                                                  \
	"pop.w {r1, r2, r3, r12}\n\t"                                                              \
	"smmla r4, r4, r8, r1\n\t"                                                                 \
	"smmla r5, r5, r9, r2\n\t"                                                                 \
	"smmla r6, r6, r10, r3\n\t"                                                                \
	"smmla r7, r7, r11, r12\n\t"                                                               \
	GATES
/* Between an element of the table and the next one, times 2^14: the element times a power of two,
 * and its step times the low bits, in one instruction.
 */
#define CURVE(sum, bits, place)                                                                    \
	"asr r3, " sum ", #" bits "\n\t"                                                           \
	"ldr r3, [r8, r3, lsl #2]\n\t"                                                             \
	"bfi r9, " sum ", #" place ", #" bits "\n\t"                                               \
	"smlad " sum ", r3, r9, r2\n\t"
/* From units of 2^-15 to int16 in units of 2^-12. */
#define GATES                                                                                      \
	"ssat r4, #16, r4, asr #3\n\t"                                                             \
	"ssat r5, #16, r5, asr #3\n\t"                                                             \
	"ssat r6, #16, r6, asr #3\n\t"                                                             \
	"ssat r7, #16, r7, asr #3\n\t"
#define CURVES(bits, place)                                                                        \
	CURVE("r4", bits, place)                                                                   \
	CURVE("r5", bits, place)                                                                   \
	CURVE("r6", bits, place)                                                                   \
	CURVE("r7", bits, place)
/* Four sums, with the factors of what the state adds, and without that of the input, which is
 * pushed. r0 is the next gate's place in the table.
 */
#define GATE                                                                                       \
	"ldrd r1, r2, [lr, #16]\n\t" /* x, x_again */                                              \
	SUMS("24")                                                                                 \
	SHIFTED                                                                                    \
	"ldmia.w r0!, {r1, r2, r3, r8-r12}\n\t" /* biases, factors */                              \
	"smmla r4, r4, r9, r1\n\t"                                                                 \
	"smmla r5, r5, r10, r2\n\t"                                                                \
	"smmla r6, r6, r11, r3\n\t"                                                                \
	"smmla r7, r7, r12, r8\n\t"                                                                \
	"push {r4-r7}\n\t"                                                                         \
	"ldrd r1, r2, [lr, #28]\n\t" /* h, h_again */                                              \
	SUMS("36")                                                                                 \
	SHIFTED                                                                                    \
	"ldmia.w r0!, {r8-r11}\n\t"
#define TANHS                                                                                      \
	"ldmdb.w lr, {r2, r8, r9}\n\t"                                                             \
	CURVES("7", "23")
/* Where the next gate goes, and back to it unless it is the end. */
#define STORED_AND_AGAIN                                                                           \
	"ldrd r1, r2, [lr, #40]\n\t" /* to, to_end */                                              \
	"strd r4, r6, [r1], #8\n\t"                                                                \
	"str r1, [lr, #40]\n\t"                                                                    \
	"cmp r1, r2\n\t"                                                                           \
	"bne.w 5b\n\t"                                                                             \
	"str r0, [lr, #12]\n\t"
/* clang-format on */

/* Gates of four cells that are logistic functions, until `to` is `to_end`. */
TINYML_ASSEMBLY static void recurrent_dsp_unit_logistic(struct unit *unit TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r4-r11, lr}\n\t"
		"add.w lr, r0, #12\n\t"
		"ldr r0, [lr, #12]\n\t" /* w */
		"5:\n\t"
		GATE
		ADD_PARTS
		"ldmia.w lr, {r2, r8, r9}\n\t"
		CURVES("8", "22")
		"asr r4, r4, #15\n\t"
		"asr r6, r6, #15\n\t"
		"pkhbt r4, r4, r5, lsl #1\n\t"
		"pkhbt r6, r6, r7, lsl #1\n\t"
		STORED_AND_AGAIN
		"pop {r4-r11, pc}\n\t");
	/* clang-format on */
}

/* The next gate of four cells, or more of them, as unit.becomes says. What is returned: four int16,
 * from cell 0 in the lowest half to cell 3.
 */
TINYML_ASSEMBLY static uint64_t recurrent_dsp_unit_gate(struct unit *unit TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r4-r11, lr}\n\t"
		"add.w lr, r0, #12\n\t"
		"ldr r0, [lr, #12]\n\t" /* w */
		"5:\n\t"
		GATE
		"ldr r1, [lr, #60]\n\t" /* becomes */
		"tbb [pc, r1]\n\t"
		"6:\n\t"
		".byte (7f - 6b) / 2, (8f - 6b) / 2, (9f - 6b) / 2, 0\n\t"
		"7:\n\t"
		ADD_PARTS
		"4:\n\t"
		TANHS
		"str r0, [lr, #12]\n\t"
		"asr r4, r4, #14\n\t"
		"asr r6, r6, #14\n\t"
		"pkhbt r0, r4, r5, lsl #2\n\t"
		"pkhbt r1, r6, r7, lsl #2\n\t"
		"pop {r4-r11, pc}\n\t"
		"8:\n\t"
		ADD_PARTS
		TANHS
		"ldrd r2, r3, [lr, #52]\n\t" /* scale */
		"asr r4, r4, #14\n\t"
		"asr r5, r5, #14\n\t"
		"asr r6, r6, #14\n\t"
		"asr r7, r7, #14\n\t"
		"smmlar r4, r4, r2, r3\n\t"
		"smmlar r5, r5, r2, r3\n\t"
		"smmlar r6, r6, r2, r3\n\t"
		"smmlar r7, r7, r2, r3\n\t"
		"pkhbt r4, r4, r5, lsl #16\n\t"
		"pkhbt r6, r6, r7, lsl #16\n\t"
		"ssat16 r4, #8, r4\n\t"
		"ssat16 r6, #8, r6\n\t"
		STORED_AND_AGAIN
		"pop {r4-r11, pc}\n\t"
		"9:\n\t"
		"str r0, [lr, #12]\n\t"
		"ldr r12, [lr, #48]\n\t" /* again */
		"ldmia.w r12!, {r0-r3}\n\t"
		"str r12, [lr, #48]\n\t"
		"smmla r4, r4, r8, r0\n\t"
		"smmla r5, r5, r9, r1\n\t"
		"smmla r6, r6, r10, r2\n\t"
		"smmla r7, r7, r11, r3\n\t"
		GATES
		"ldr r12, [lr, #64]\n\t" /* reset */
		"ldrd r1, r3, [r12], #8\n\t"
		"str r12, [lr, #64]\n\t"
		"mov.w r2, #0x4000\n\t" /* a half */
		"smlabb r4, r4, r1, r2\n\t"
		"smlabt r5, r5, r1, r2\n\t"
		"smlabb r6, r6, r3, r2\n\t"
		"smlabt r7, r7, r3, r2\n\t"
		"pop.w {r8-r11}\n\t"
		"asr r4, r4, #15\n\t"
		"asr r5, r5, #15\n\t"
		"asr r6, r6, #15\n\t"
		"asr r7, r7, #15\n\t"
		"add r4, r4, r8, asr #3\n\t"
		"add r5, r5, r9, asr #3\n\t"
		"add r6, r6, r10, asr #3\n\t"
		"add r7, r7, r11, asr #3\n\t"
		"ssat r4, #16, r4\n\t"
		"ssat r5, #16, r5\n\t"
		"ssat r6, #16, r6\n\t"
		"ssat r7, #16, r7\n\t"
		"ldr r0, [lr, #12]\n\t"
		"b.n 4b\n\t");
	/* clang-format on */
}
#undef STORED_AND_AGAIN
#undef TANHS
#undef GATE
#undef CURVES
#undef CURVE
#undef GATES
#undef ADD_PARTS
#undef SHIFTED
#undef SUMS
#undef FOUR
#undef MORE
#undef FIRST
#undef PRODUCTS

#endif /* TINYML_RECURRENT_DSP_UNIT_S8_H_ */
