/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* RNN, GRU and LSTM on int8 with DSP instructions: two rows in one int16 (pairs_s8.h). Copies of
 * input and state are int16, so that no word of them is unpacked twice: 14 instructions for 16
 * products. The gates of four cells are computed in one call. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include <stdint.h>
#include <string.h>

#include <tinyml/recurrent_s8.h>

#include "../weighted/assembly.h"
#include "recurrent_group_s8.h"

TINYML_OFFSET(struct group, w, 0);
TINYML_OFFSET(struct group, x, 4);
TINYML_OFFSET(struct group, x_end, 8);
TINYML_OFFSET(struct group, x_entry, 12);
TINYML_OFFSET(struct group, r, 16);
TINYML_OFFSET(struct group, h, 20);
TINYML_OFFSET(struct group, h_end, 24);
TINYML_OFFSET(struct group, h_entry, 28);
TINYML_OFFSET(struct group, x_left, 32);
TINYML_OFFSET(struct group, rows, 36);
TINYML_OFFSET(struct group, h_left, 40);
TINYML_OFFSET(struct group, sums, 44);
TINYML_OFFSET(struct group, sums_end, 48);
TINYML_OFFSET(struct group, from_x, 52);

typedef int16_t recurrent_cells_element;

#define CODE_OF_FOUR 56 /* bytes of assembly for four elements of four rows */

static inline int32_t recurrent_cells_padded(int32_t count)
{
	return (count + 3) & ~3;
}

/* The first four elements come before the loop over sixteen, which is entered so that it ends with
 * the last ones.
 */
static inline int32_t recurrent_cells_entry(int32_t padded)
{
	const int32_t rest = (padded >> 2) - 1;

	return CODE_OF_FOUR * (rest == 0 ? 4 : -rest & 3);
}

static inline void recurrent_cells_take(int16_t *to, const int8_t *x, int32_t count)
{
	for (; count >= 4; count -= 4, x += 4, to += 4) {
		int32_t even, odd, first, second;

		/* clang-format off */
		__asm__("ldr %1, [%4]\n\t"
			"sxtb16 %0, %1\n\t"
			"sxtb16 %1, %1, ror #8\n\t"
			"pkhbt %2, %0, %1, lsl #16\n\t"
			"pkhtb %3, %1, %0, asr #16\n\t"
			: "=&r"(even), "=&r"(odd), "=&r"(first), "=r"(second)
			: "r"(x), "m"(*(const int8_t (*)[4])(const void *)x));
		/* clang-format on */
		memcpy(to, &first, 4);
		memcpy(to + 2, &second, 4);
	}
	for (int32_t i = 0; i < count; i++) {
		to[i] = x[i];
	}
}

static inline int32_t recurrent_cells_saturate16(int32_t x)
{
	int32_t limited;

	__asm__("ssat %0, #16, %1" : "=r"(limited) : "r"(x));
	return limited;
}

static inline int32_t recurrent_cells_from_30(int32_t x)
{
	int32_t limited;

	__asm__("ssat %0, #16, %1, asr #15" : "=r"(limited) : "r"(x));
	return limited;
}

static inline int32_t recurrent_cells_saturate8(int32_t x)
{
	int32_t limited;

	__asm__("ssat %0, #8, %1" : "=r"(limited) : "r"(x));
	return limited;
}

static inline int32_t recurrent_cells_gate(int32_t sum)
{
	int32_t limited;

	__asm__("ssat %0, #16, %1, asr #3" : "=r"(limited) : "r"(sum));
	return limited;
}

/* What the functions of gates keep in registers. */
struct recurrent_cells_curves {
	const int32_t *middle; /* of the table */
	int32_t wide;          /* 2^8 in the low half; the share of a step in the high half */
	int32_t narrow;        /* 2^7 */
};

static inline struct recurrent_cells_curves recurrent_cells_curves(void)
{
	struct recurrent_cells_curves curves = {&tinyml_tanh_steps_s16[256], 1 << 8, 1 << 7};

	__asm__("" : "+r"(curves.middle)); /* one address, which no index adds to */
	return curves;
}

/* Between an element of the table and the next one: the element times 2^bits and its step times the
 * low bits of x, in one instruction.
 */
static inline __attribute__((always_inline)) int32_t
recurrent_cells_tanh(struct recurrent_cells_curves *curves, int32_t x)
{
	const int32_t pair = curves->middle[x >> 7];
	int32_t sum;

	__asm__("bfi %0, %1, #16, #7" : "+r"(curves->narrow) : "r"(x));
	__asm__("smlad %0, %1, %2, %3" : "=r"(sum) : "r"(pair), "r"(curves->narrow), "r"(1 << 6));
	return sum >> 7;
}

static inline __attribute__((always_inline)) int32_t
recurrent_cells_logistic(struct recurrent_cells_curves *curves, int32_t x)
{
	const int32_t pair = curves->middle[x >> 8];
	int32_t sum;

	__asm__("bfi %0, %1, #16, #8" : "+r"(curves->wide) : "r"(x));
	__asm__("smlad %0, %1, %2, %3"
		: "=r"(sum)
		: "r"(pair), "r"(curves->wide), "r"((1 << 7) + (1 << 23)));
	return sum >> 9;
}

/* The groups up to sums_end: sums of products with the input, scaled and pushed; then those with
 * the state, added to them.
 *
 * r0 weights, r1 elements, r2 their end, r3 and r12 four elements, r4 to r7 sums, r8 to r11
 * weights, lr the group
 */
TINYML_ASSEMBLY static void recurrent_dsp_groups(struct group *group TINYML_UNSEEN)
{
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
#define PART(weights, entry)                                                                       \
	FOUR(FIRST)                                                                                \
	"ldr r12, [lr, #" entry "]\n\t"                                                            \
	"4:\n\t"                                                                                   \
	"add pc, r12\n\t" /* from 4 bytes after this instruction */                                \
	"nop\n\t"                                                                                  \
	"1:\n\t"                                                                                   \
	TINYML_CODE_BYTES("4b", "1b", 4)                                                           \
	FOUR(MORE)                                                                                 \
	FOUR(MORE)                                                                                 \
	FOUR(MORE)                                                                                 \
	FOUR(MORE)                                                                                 \
	"2:\n\t"                                                                                   \
	TINYML_CODE_BYTES("1b", "2b", 4 * CODE_OF_FOUR)                                            \
	"cmp r1, r2\n\t"                                                                           \
	"bne 1b\n\t"                                                                               \
	"str r0, [lr, #" weights "]\n\t"                                                           \
	"sub r4, r4, r5\n\t"                                                                       \
	"sub r6, r6, r7\n\t"                                                                       \
	"asr r4, r4, #8\n\t"                                                                       \
	"asr r6, r6, #8\n\t"
#define SHIFT                                                                                      \
	"lsl r4, r4, r2\n\t"                                                                       \
	"lsl r5, r5, r2\n\t"                                                                       \
	"lsl r6, r6, r2\n\t"                                                                       \
	"lsl r7, r7, r2\n\t"
	__asm__ volatile(
		"push {r4-r11, lr}\n\t"
		"mov lr, r0\n\t"
		"5:\n\t"
		"ldm.w lr, {r0-r2}\n\t" /* w, x, x_end */
		PART("0", "12")
		"ldrd r2, r3, [lr, #32]\n\t" /* x_left, rows */
		SHIFT
		"ldmia.w r3!, {r8-r11}\n\t" /* biases */
		"ldm.w r3, {r1, r2, r3, r12}\n\t"
		"smmla r4, r4, r1, r8\n\t"
		"smmla r5, r5, r2, r9\n\t"
		"smmla r6, r6, r3, r10\n\t"
		"smmla r7, r7, r12, r11\n\t"
		"push {r4-r7}\n\t"
		"ldrd r0, r1, [lr, #16]\n\t" /* r, h */
		"ldr r2, [lr, #24]\n\t"      /* h_end */
		PART("16", "28")
		"ldrd r3, r2, [lr, #36]\n\t" /* rows, h_left */
		SHIFT
		"adds r3, #32\n\t"
		"ldmia.w r3!, {r8-r11}\n\t"
		"str r3, [lr, #36]\n\t"
		"pop {r1, r2, r3, r12}\n\t"
		"smmla r4, r4, r8, r1\n\t"
		"smmla r5, r5, r9, r2\n\t"
		"smmla r6, r6, r10, r3\n\t"
		"smmla r7, r7, r11, r12\n\t"
		"ldrd r8, r9, [lr, #44]\n\t" /* sums, sums_end */
		"stmia.w r8!, {r4-r7}\n\t"
		"str r8, [lr, #44]\n\t"
		"cmp r8, r9\n\t"
		"bne 5b\n\t"
		"add r0, lr, #52\n\t"
		"stm.w r0, {r1, r2, r3, r12}\n\t" /* from_x */
		"pop {r4-r11, pc}\n\t");
	/* clang-format on */
#undef SHIFT
#undef PART
#undef FOUR
#undef MORE
#undef FIRST
#undef PRODUCTS
}

static inline void recurrent_cells_multiply(struct group *group, int32_t *sums, int32_t groups)
{
	group->sums = sums;
	group->sums_end = sums + groups * ROWS;
	recurrent_dsp_groups(group);
}

#include "recurrent_cells_s8.h"

void tinyml_rnn_dsp_s8(const struct tinyml_recurrent_s8 *p,
		       const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, false, recurrent_cells_step_rnn);
}

void tinyml_gru_dsp_s8(const struct tinyml_recurrent_s8 *p,
		       const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, true,
			  p->again != NULL ? recurrent_cells_step_gru_linear
					   : recurrent_cells_step_gru);
}

void tinyml_recurrent_lstm_dsp_s8(const struct tinyml_recurrent_s8 *p,
				  const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, false, recurrent_cells_step_lstm);
}

#endif /* TINYML_CORE_DSP */
