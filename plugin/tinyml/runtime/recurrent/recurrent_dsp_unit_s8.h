/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Gates of four neighbouring cells, with DSP instructions: products with two rows in one int16
 * (pairs_s8.h), scaled, and the functions of the gates; for LSTM, the cells too. Copies of input
 * and state are int16, so that no word of them is unpacked twice: 27 instructions for 32 products.
 */

#ifndef TINYML_RECURRENT_DSP_UNIT_S8_H_
#define TINYML_RECURRENT_DSP_UNIT_S8_H_

#include <stddef.h>
#include <stdint.h>

#include <tinyml/recurrent_s8.h>

#include "../weighted/assembly.h"

/* From units of 2^-15 to the output: the high word of a product. */
struct scale {
	int32_t factor;
	int32_t zero;
};

/* What a function of gates is made with: it is loaded at once. */
struct curve {
	uint32_t add;          /* a half, and what makes tanh the logistic function */
	const int32_t *middle; /* of the table of tanh */
	int32_t bits;          /* CURVE_BITS */
};

/* A copy, and the address of the code for its first eight elements, or four: they are loaded at
 * once.
 */
struct products {
	const int16_t *copy;
	uint32_t first;
};

/* Where the products of other elements are computed: addresses of instructions. */
struct others {
	uint32_t entry;     /* a loop, or what comes after it */
	const int16_t *end; /* where the loop ends */
	uint32_t rest;      /* what comes after it */
};

/* What LSTM makes four cells of. */
struct cells {
	uint32_t gates[6]; /* input, output, forget: four int16 each */
	int32_t start;     /* a half of a cell's last bit, before a product loses `bits` */
	int32_t bits;      /* integer bits of a cell */
	int16_t *c;        /* the next four cells */
	int16_t *next;     /* and their states */
	int16_t *next_end; /* where states end */
	uint32_t fresh;    /* what the last gate becomes */
	uint32_t logistic; /* and the first gate of the next cells */
	uint32_t *to;      /* where that gate goes: `gates` */
};

/* GRU whose cells come in fours: what comes after all update and reset gates, and after the others.
 */
struct states {
	uint32_t becomes; /* the last gates: these four go into struct unit */
	uint32_t *next;   /* they are where the states after the step will be */
	uint32_t *next_end;
	uint32_t then;
	const int16_t *update; /* update gates */
	int16_t *c;            /* states */
	int16_t *masked;    /* reset gates, which become masked states as the matrix reads them */
	const int16_t *end; /* others.end of that copy */
};

/* Four cells. Assembly knows the layout. */
struct unit {
	struct products h;
	struct products x;
	struct others of_x;
	struct others of_h;
	struct curve curve;   /* of most gates */
	const int16_t *w;     /* the table at the next gate, see recurrent_s8.h */
	uint32_t becomes;     /* what a gate becomes: the address of BECOMES_... */
	uint32_t *to;         /* where the next gate goes: four int16 */
	uint32_t *to_end;     /* and where they end */
	uint32_t then;        /* what happens there: the address of THEN_... */
	struct scale scale;   /* of states as int8 */
	const int32_t *again; /* BECOMES_RESET: 4 biases of what the state adds */
	const int16_t *reset; /* and the reset gates of the next four cells */
	struct cells cells;
	struct states states;
};

TINYML_OFFSET(struct products, copy, 0);
TINYML_OFFSET(struct products, first, 4);
TINYML_OFFSET(struct others, entry, 0);
TINYML_OFFSET(struct others, end, 4);
TINYML_OFFSET(struct others, rest, 8);
TINYML_OFFSET(struct curve, add, 0);
TINYML_OFFSET(struct curve, middle, 4);
TINYML_OFFSET(struct curve, bits, 8);
TINYML_OFFSET(struct unit, h, 0);
TINYML_OFFSET(struct unit, x, 8);
TINYML_OFFSET(struct unit, of_x, 16);
TINYML_OFFSET(struct unit, of_h, 28);
TINYML_OFFSET(struct unit, curve, 40);
TINYML_OFFSET(struct unit, w, 52);
TINYML_OFFSET(struct unit, becomes, 56);
TINYML_OFFSET(struct unit, to, 60);
TINYML_OFFSET(struct unit, to_end, 64);
TINYML_OFFSET(struct unit, then, 68);
TINYML_OFFSET(struct unit, scale, 72);
TINYML_OFFSET(struct unit, again, 80);
TINYML_OFFSET(struct unit, reset, 84);
TINYML_OFFSET(struct unit, cells.gates, 88);
TINYML_OFFSET(struct unit, cells.start, 112);
TINYML_OFFSET(struct unit, cells.bits, 116);
TINYML_OFFSET(struct unit, cells.c, 120);
TINYML_OFFSET(struct unit, cells.next, 124);
TINYML_OFFSET(struct unit, cells.next_end, 128);
TINYML_OFFSET(struct unit, cells.fresh, 132);
TINYML_OFFSET(struct unit, cells.logistic, 136);
TINYML_OFFSET(struct unit, cells.to, 140);
TINYML_OFFSET(struct unit, states.becomes, 144);
TINYML_OFFSET(struct unit, states.next, 148);
TINYML_OFFSET(struct unit, states.next_end, 152);
TINYML_OFFSET(struct unit, states.then, 156);
TINYML_OFFSET(struct unit, states.update, 160);
TINYML_OFFSET(struct unit, states.c, 164);
TINYML_OFFSET(struct unit, states.masked, 168);
TINYML_OFFSET(struct unit, states.end, 172);

/* What elements of the table, which are negative, are multiplied by, with `share` above: -2^15. */
#define CURVE_BITS 0x8000

#define EIGHT_BYTES 108 /* of assembly for eight elements of four rows */
#define BACK_BYTES  4   /* of what comes before the last of them, if there are others */
#define EIGHTS      3   /* in a lap of the loop */

/* Places in the code below. What a gate becomes: the logistic function or tanh; states as int8 of
 * tanh; tanh of what the input adds and, times the reset gate, what the state adds with a bias of
 * its own; or cells of LSTM, after the others.
 */
enum place {
	BECOMES_LOGISTIC,
	BECOMES_TANH,
	BECOMES_STATES,
	BECOMES_RESET,
	BECOMES_CELLS,
	THEN_RETURN,
	THEN_LAST,  /* one gate is left, which becomes cells.fresh */
	THEN_MASK,  /* states are masked, then come the last gates of GRU */
	THEN_GATES, /* they come at once */
	THEN_RENEW, /* they become states */
	X_EIGHT,    /* products of the input: the first eight elements */
	X_FOUR,     /* the first four */
	X_LOOP,
	X_END,
	H_EIGHT, /* and those of the state */
	H_FOUR,
	H_LOOP,
	H_END,
};

/* Of the function below: r0 weights, r1 elements, r2 to r5 sums, r6, r7, r12 and lr eight elements,
 * r8 to r11 weights. Between products, lr is the unit at x. That is on the stack, below it its
 * curve.
 */
/* clang-format off */
#define WEIGHTS "ldmia.w r0!, {r8-r11}\n\t"
#define PRODUCTS(a, b, x)                                                                          \
	"smlad r2, " a ", " x ", r2\n\t"                                                           \
	"sxtb16 " a ", " a "\n\t"                                                                  \
	"smlad r4, " b ", " x ", r4\n\t"                                                           \
	"sxtb16 " b ", " b "\n\t"                                                                  \
	"smlad r3, " a ", " x ", r3\n\t"                                                           \
	"smlad r5, " b ", " x ", r5\n\t"
/* Those that begin sums. Elements can be in r2. */
#define FIRST(x)                                                                                   \
	"sxtb16 r3, r8\n\t"                                                                        \
	"smuad r3, r3, " x "\n\t"                                                                  \
	"smuad r4, r9, " x "\n\t"                                                                  \
	"sxtb16 r5, r9\n\t"                                                                        \
	"smuad r5, r5, " x "\n\t"                                                                  \
	"smuad r2, r8, " x "\n\t"
#define EIGHT_OF(a, b, c, d)                                                                       \
	WEIGHTS                                                                                    \
	PRODUCTS("r8", "r9", a)                                                                    \
	PRODUCTS("r10", "r11", b)                                                                  \
	WEIGHTS                                                                                    \
	PRODUCTS("r8", "r9", c)                                                                    \
	PRODUCTS("r10", "r11", d)
#define EIGHT      "ldmia.w r1!, {r6, r7, r12, lr}\n\t" EIGHT_OF("r6", "r7", "r12", "lr")
#define LAST_EIGHT "ldmia.w r1, {r1, r6, r7, r12}\n\t" EIGHT_OF("r1", "r6", "r7", "r12")
/* `p`: the first digit of its labels; `load`: struct products; `at`: where struct others is; `unit`:
 * on the stack.
 */
#define SUMS(p, load, at, unit)                                                                    \
	load ".w lr, {r1, pc}\n\t" /* copy, first */                                               \
	p "1:\n\t"                                                                                 \
	"ldmia.w r1!, {r2, r6, r7, r12}\n\t"                                                       \
	WEIGHTS                                                                                    \
	FIRST("r2")                                                                                \
	PRODUCTS("r10", "r11", "r6")                                                               \
	WEIGHTS                                                                                    \
	PRODUCTS("r8", "r9", "r7")                                                                 \
	PRODUCTS("r10", "r11", "r12")                                                              \
	"ldr.w pc, [lr, #" at "]\n\t"                                                              \
	p "2:\n\t"                                                                                 \
	"ldrd r6, r7, [r1], #8\n\t"                                                                \
	WEIGHTS                                                                                    \
	FIRST("r6")                                                                                \
	PRODUCTS("r10", "r11", "r7")                                                               \
	"ldr.w pc, [lr, #" at "]\n\t"                                                              \
	p "3:\n\t"                                                                                 \
	EIGHT EIGHT EIGHT                                                                          \
	"ldr lr, [sp, #" unit "]\n\t"                                                              \
	"ldr r6, [lr, #" at " + 4]\n\t"                                                            \
	"cmp r1, r6\n\t"                                                                           \
	"bne.w " p "3b\n\t"                                                                        \
	"ldr.w pc, [lr, #" at " + 8]\n\t"                                                          \
	p "4:\n\t"                                                                                 \
	EIGHT EIGHT                                                                                \
	"ldr lr, [sp, #" unit "]\n\t"                                                              \
	p "6:\n\t"                                                                                 \
	LAST_EIGHT                                                                                 \
	p "5:\n\t"                                                                                 \
	TINYML_CODE_BYTES(p "4b", p "6b", (EIGHTS - 1) * EIGHT_BYTES + BACK_BYTES)                 \
	TINYML_CODE_BYTES(p "6b", p "5b", EIGHT_BYTES)                                             \
	/* r2 and r4 have 256 times the sum of a row, and the next row's, too */                   \
	"sub r2, r2, r3\n\t"                                                                       \
	"sub r4, r4, r5\n\t"                                                                       \
	"lsl r3, r3, #8\n\t"                                                                       \
	"lsl r5, r5, #8\n\t"
#define ADD_PARTS                                                                                  \
	"pop.w {r1, r6, r7, r12}\n\t"                                                              \
	"smmla r2, r2, r8, r1\n\t"                                                                 \
	"smmla r3, r3, r9, r6\n\t"                                                                 \
	"smmla r4, r4, r10, r7\n\t"                                                                \
	"smmla r5, r5, r11, r12\n\t"                                                               \
	SATURATED
/* From units of 2^-15 to int16 in units of 2^-12. */
#define SATURATED                                                                                  \
	"ssat r2, #16, r2, asr #3\n\t"                                                             \
	"ssat r3, #16, r3, asr #3\n\t"                                                             \
	"ssat r4, #16, r4, asr #3\n\t"                                                             \
	"ssat r5, #16, r5, asr #3\n\t"
/* Between an element of the table and the next one, times 2^15: the element times a power of two,
 * and its step times the low bits, in one instruction. r1, r6, r7: struct curve.
 */
#define CURVE(x, bits, place)                                                                      \
	"asr r8, " x ", #" bits "\n\t"                                                             \
	"ldr r8, [r6, r8, lsl #2]\n\t"                                                             \
	"bfi r7, " x ", #" place ", #" bits "\n\t"                                                 \
	"smlad " x ", r8, r7, r1\n\t"
/* The curve is on the stack: r1, r6 and r7. */
#define CURVE_LOADED "ldm.w sp, {r1, r6, r7}\n\t"
#define LOGISTICS                                                                                  \
	CURVE_LOADED                                                                               \
	CURVE("r2", "8", "23")                                                                     \
	CURVE("r3", "8", "23")                                                                     \
	CURVE("r4", "8", "23")                                                                     \
	CURVE("r5", "8", "23")
#define TANH_LOADED                                                                                \
	"ldrd r6, r7, [sp, #4]\n\t"                                                                \
	"mov.w r1, #0x4000\n\t"
#define TANHS                                                                                      \
	CURVE("r2", "7", "24")                                                                     \
	CURVE("r3", "7", "24")                                                                     \
	CURVE("r4", "7", "24")                                                                     \
	CURVE("r5", "7", "24")
#define PAIRED                                                                                     \
	"asr r2, r2, #15\n\t"                                                                      \
	"asr r4, r4, #15\n\t"                                                                      \
	"pkhbt r2, r2, r3, lsl #1\n\t"                                                             \
	"pkhbt r4, r4, r5, lsl #1\n\t"
#define ALL_15                                                                               \
	"asr r2, r2, #15\n\t"                                                                      \
	"asr r3, r3, #15\n\t"                                                                      \
	"asr r4, r4, #15\n\t"                                                                      \
	"asr r5, r5, #15\n\t"
/* Where the next gate goes, and back to it unless it is the end. */
#define STORED_AND_AGAIN(second)                                                                           \
	"ldrd r6, r7, [lr, #52]\n\t" /* to, to_end */                                              \
	"strd r2, " second ", [r6], #8\n\t"                                                                \
	"str r6, [lr, #52]\n\t"                                                                    \
	"cmp r6, r7\n\t"                                                                           \
	"bne.w 9b\n\t"                                                                             \
	"ldr.w pc, [lr, #60]\n\t" /* then */
/* Four states or products `a` to `d` as the matrix reads them, in `a` and `b`. */
#define PLACED(a, b, c, d)                                                                         \
	"pkhbt " a ", " a ", " c ", lsl #16\n\t"                                                   \
	"pkhbt " b ", " b ", " d ", lsl #16\n\t"                                                   \
	"ssat16 " a ", #8, " a "\n\t"                                                              \
	"ssat16 " b ", #8, " b "\n\t"
/* r2 to r5 are states in units of 2^-15, in r2 and r3 as the matrix reads them. */
#define OUTPUTS                                                                                    \
	"ldrd r6, r7, [lr, #64]\n\t" /* scale */                                                   \
	"smmlar r2, r2, r6, r7\n\t"                                                                \
	"smmlar r3, r3, r6, r7\n\t"                                                                \
	"smmlar r4, r4, r6, r7\n\t"                                                                \
	"smmlar r5, r5, r6, r7\n\t"                                                                \
	PLACED("r2", "r3", "r4", "r5")
/* Two of GRU's states after the reset gates `x`: in `x` and `other`. */
#define MASK(x, other)                                                                             \
	"ldr " other ", [r2], #4\n\t"                                                              \
	"smlabb r11, " x ", " other ", r3\n\t"                                                     \
	"smlatt " other ", " x ", " other ", r3\n\t"                                               \
	"asr r11, r11, #15\n\t"                                                                    \
	"asr " other ", " other ", #15\n\t"                                                        \
	"smmlar " x ", r11, r4, r5\n\t"                                                            \
	"smmlar " other ", " other ", r4, r5\n\t"
/* Two of them after a step: their parts of the update gates `u`, the rest of the fresh ones `f`.
 */
#define RENEW(u, f)                                                                                \
	"ldr r0, [r2]\n\t"                                                                         \
	"smlabb lr, " u ", r0, r7\n\t"                                                             \
	"smlatt r0, " u ", r0, r7\n\t"                                                             \
	"usub16 " u ", r8, " u "\n\t" /* 2^15 less the update, which is not 0 */                   \
	"smlabb lr, " u ", " f ", lr\n\t"                                                          \
	"smlatt r0, " u ", " f ", r0\n\t"                                                          \
	"asr lr, lr, #15\n\t"                                                                      \
	"asr r0, r0, #15\n\t"                                                                      \
	"smmlar " u ", lr, r4, r5\n\t"                                                             \
	"smmlar " f ", r0, r4, r5\n\t"                                                             \
	"pkhbt lr, lr, r0, lsl #16\n\t"                                                            \
	"str lr, [r2], #4\n\t"
#define PLACE(label) ".short " label "f - 8b\n\t"
/* clang-format on */

/* Gates of four cells, as the unit says, until `to` is `to_end`. Without a unit: how many bytes
 * after the address that is returned each place is.
 */
TINYML_ASSEMBLY static const uint16_t *
recurrent_dsp_unit_gates(struct products *x_of_unit TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"cbnz r0, 7f\n\t"
		"adr.w r0, 8f\n\t"
		"bx lr\n\t"
		".balign 4\n\t"
		"8:\n\t"
		PLACE("10") PLACE("20") PLACE("30") PLACE("40") PLACE("50")
		PLACE("60") PLACE("70") PLACE("71") PLACE("72") PLACE("73")
		PLACE("81") PLACE("82") PLACE("83") PLACE("85")
		PLACE("91") PLACE("92") PLACE("93") PLACE("95")
		"7:\n\t"
		"push {r0, r4-r11, lr}\n\t"
		"mov lr, r0\n\t"
		"ldrd r2, r3, [lr, #32]\n\t" /* curve */
		"ldr r4, [lr, #40]\n\t"
		"push {r2-r4}\n\t"
		"ldr r0, [lr, #44]\n\t" /* w */
		"9:\n\t"
		SUMS("8", "ldmia", "8", "12")
		"ldmia.w r0!, {r1, r6, r7, r8-r12}\n\t" /* biases, factors */
		"smmla r2, r2, r9, r1\n\t"
		"smmla r3, r3, r10, r6\n\t"
		"smmla r4, r4, r11, r7\n\t"
		"smmla r5, r5, r12, r8\n\t"
		"push {r2-r5}\n\t"
		SUMS("9", "ldmdb", "20", "28")
		"ldmia.w r0!, {r8-r11}\n\t" /* factors */
		"ldr.w pc, [lr, #48]\n\t" /* becomes */

		"10:\n\t" /* BECOMES_LOGISTIC */
		ADD_PARTS
		LOGISTICS
		"pkhtb r2, r3, r2, asr #16\n\t"
		"pkhtb r4, r5, r4, asr #16\n\t"
		STORED_AND_AGAIN("r4")

		"20:\n\t" /* BECOMES_TANH */
		ADD_PARTS
		TANH_LOADED
		TANHS
		PAIRED
		STORED_AND_AGAIN("r4")

		"30:\n\t" /* BECOMES_STATES: the curve is tanh */
		ADD_PARTS
		CURVE_LOADED
		TANHS
		ALL_15
		OUTPUTS
		STORED_AND_AGAIN("r3")

		"40:\n\t" /* BECOMES_RESET */
		"ldrd r12, r7, [lr, #72]\n\t" /* again, reset */
		"ldrd r1, r6, [r12], #8\n\t"
		"smmla r2, r2, r8, r1\n\t"
		"smmla r3, r3, r9, r6\n\t"
		"ldrd r1, r6, [r12], #8\n\t"
		"smmla r4, r4, r10, r1\n\t"
		"smmla r5, r5, r11, r6\n\t"
		SATURATED
		"ldrd r1, r6, [r7], #8\n\t"
		"strd r12, r7, [lr, #72]\n\t"
		"mov.w r7, #0x4000\n\t" /* a half */
		"smlabb r2, r2, r1, r7\n\t"
		"smlabt r3, r3, r1, r7\n\t"
		"smlabb r4, r4, r6, r7\n\t"
		"smlabt r5, r5, r6, r7\n\t"
		"pop.w {r8-r11}\n\t"
		ALL_15
		"add r2, r2, r8, asr #3\n\t"
		"add r3, r3, r9, asr #3\n\t"
		"add r4, r4, r10, asr #3\n\t"
		"add r5, r5, r11, asr #3\n\t"
		"ssat r2, #16, r2\n\t"
		"ssat r3, #16, r3\n\t"
		"ssat r4, #16, r4\n\t"
		"ssat r5, #16, r5\n\t"
		TANH_LOADED
		TANHS
		PAIRED
		STORED_AND_AGAIN("r4")

		"50:\n\t" /* BECOMES_CELLS; r2 and r4 become two cells each, in r2 to r5 */
		ADD_PARTS
		TANH_LOADED
		TANHS
		PAIRED
		"ldrd r6, r7, [lr, #104]\n\t" /* start, bits */
		"ldrd r8, r9, [lr, #80]\n\t" /* input gates */
		"smlabb r1, r8, r2, r6\n\t"
		"smlatt r3, r8, r2, r6\n\t"
		"smlatt r5, r9, r4, r6\n\t"
		"smlabb r4, r9, r4, r6\n\t"
		"asr r1, r1, r7\n\t"
		"asr r3, r3, r7\n\t"
		"asr r4, r4, r7\n\t"
		"asr r5, r5, r7\n\t"
		"ldrd r10, r11, [lr, #112]\n\t" /* c, next */
		"ldr r6, [r10]\n\t"
		"ldr r12, [r10, #4]\n\t"
		"ldrd r8, r9, [lr, #96]\n\t" /* forget gates */
		"smlabb r2, r8, r6, r1\n\t"
		"smlatt r3, r8, r6, r3\n\t"
		"smlabb r4, r9, r12, r4\n\t"
		"smlatt r5, r9, r12, r5\n\t"
		"ssat r2, #16, r2, asr #15\n\t"
		"ssat r3, #16, r3, asr #15\n\t"
		"ssat r4, #16, r4, asr #15\n\t"
		"ssat r5, #16, r5, asr #15\n\t"
		"pkhbt r6, r2, r3, lsl #16\n\t"
		"pkhbt r12, r4, r5, lsl #16\n\t"
		"str r6, [r10], #4\n\t"
		"str r12, [r10], #4\n\t"
		"lsl r2, r2, r7\n\t"
		"lsl r3, r3, r7\n\t"
		"lsl r4, r4, r7\n\t"
		"lsl r5, r5, r7\n\t"
		SATURATED
		TANH_LOADED
		TANHS
		ALL_15
		"ldrd r8, r9, [lr, #88]\n\t" /* output gates; r1 is a half */
		"smlabb r2, r8, r2, r1\n\t"
		"smlatb r3, r8, r3, r1\n\t"
		"smlabb r4, r9, r4, r1\n\t"
		"smlatb r5, r9, r5, r1\n\t"
		ALL_15
		OUTPUTS
		"strd r2, r3, [r11], #8\n\t"
		"strd r10, r11, [lr, #112]\n\t"
		"ldr r6, [lr, #120]\n\t" /* next_end */
		"ldrd r2, r3, [lr, #128]\n\t" /* logistic, to */
		"strd r2, r3, [lr, #48]\n\t" /* becomes, to */
		"cmp r11, r6\n\t"
		"bne.w 9b\n\t"

		"60:\n\t" /* THEN_RETURN */
		"str r0, [lr, #44]\n\t" /* w */
		"add sp, #12\n\t"
		"pop {r0, r4-r11, pc}\n\t"

		"70:\n\t" /* THEN_LAST */
		"ldr r6, [lr, #124]\n\t" /* fresh */
		"str r6, [lr, #48]\n\t"
		"b.w 9b\n\t"

		"71:\n\t" /* THEN_MASK; r6 is where reset gates end */
		"ldrd r2, r1, [lr, #156]\n\t" /* c, masked */
		"ldrd r4, r5, [lr, #64]\n\t" /* scale */
		"mov.w r3, #0x4000\n\t" /* a half */
		"1:\n\t"
		"ldrd r8, r9, [r1]\n\t"
		MASK("r8", "r10")
		MASK("r9", "r12")
		PLACED("r8", "r10", "r9", "r12")
		"strd r8, r10, [r1], #8\n\t"
		"cmp r1, r6\n\t"
		"bne 1b\n\t"
		"ldrd r1, r2, [lr, #160]\n\t" /* masked, end */
		"str r1, [lr, #-8]\n\t"
		"str r2, [lr, #24]\n\t"

		"72:\n\t" /* THEN_GATES */
		"add.w r5, lr, #136\n\t" /* becomes, next, next_end, then */
		"ldmia r5, {r1-r4}\n\t"
		"add.w r5, lr, #48\n\t"
		"stmia.w r5, {r1-r4}\n\t"
		"b.w 9b\n\t"

		"73:\n\t" /* THEN_RENEW; r6 is where states end */
		"ldrd r1, r2, [lr, #152]\n\t" /* update, c */
		"ldr r3, [lr, #140]\n\t" /* next */
		"ldrd r4, r5, [lr, #64]\n\t" /* scale */
		"mov.w r7, #0x4000\n\t"
		"mov.w r8, #0x80008000\n\t"
		"1:\n\t"
		"ldrd r9, r10, [r1], #8\n\t"
		"ldrd r11, r12, [r3]\n\t"
		RENEW("r9", "r11")
		RENEW("r10", "r12")
		PLACED("r9", "r11", "r10", "r12")
		"strd r9, r11, [r3], #8\n\t"
		"cmp r3, r6\n\t"
		"bne 1b\n\t"
		"add sp, #12\n\t"
		"pop {r0, r4-r11, pc}\n\t");
	/* clang-format on */
}
#undef PLACE
#undef RENEW
#undef MASK
#undef STORED_AND_AGAIN
#undef OUTPUTS
#undef ALL_15
#undef PAIRED
#undef TANHS
#undef TANH_LOADED
#undef LOGISTICS
#undef CURVE_LOADED
#undef CURVE
#undef SATURATED
#undef ADD_PARTS
#undef SUMS
#undef LAST_EIGHT
#undef EIGHT
#undef EIGHT_OF
#undef FIRST
#undef PRODUCTS
#undef WEIGHTS

#endif /* TINYML_RECURRENT_DSP_UNIT_S8_H_ */
