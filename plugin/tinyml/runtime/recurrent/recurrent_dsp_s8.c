/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* RNN, GRU and LSTM on int8 with DSP instructions: two rows in one int16 (pairs_s8.h). Copies of
 * input and state are int16, so that no word of them is unpacked twice: 14 instructions for 16
 * products. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include <stdint.h>

#include "../weighted/assembly.h"
#include "recurrent_group_s8.h"

TINYML_OFFSET(struct group, w, 0);
TINYML_OFFSET(struct group, x, 4);
TINYML_OFFSET(struct group, x_end, 8);
TINYML_OFFSET(struct group, r, 12);
TINYML_OFFSET(struct group, h, 16);
TINYML_OFFSET(struct group, h_end, 20);
TINYML_OFFSET(struct group, rows, 24);
TINYML_OFFSET(struct group, x_left, 28);
TINYML_OFFSET(struct group, h_left, 32);
TINYML_OFFSET(struct group, from_x, 36);
TINYML_OFFSET(struct group, from_h, 52);
TINYML_OFFSET(struct group, gates, 68);

typedef int16_t recurrent_cells_element;

static inline int32_t recurrent_cells_padded(int32_t count)
{
	return (count + 3) & ~3;
}

static inline int32_t recurrent_cells_saturate16(int32_t x)
{
	int32_t limited;

	__asm__("ssat %0, #16, %1" : "=r"(limited) : "r"(x));
	return limited;
}

static inline int32_t recurrent_cells_saturate8(int32_t x)
{
	int32_t limited;

	__asm__("ssat %0, #8, %1" : "=r"(limited) : "r"(x));
	return limited;
}

/* A group: its sums, what they add to the gates, and the gates. The code of four elements is
 * CODE_OF_A_WORD bytes long, so that the loop over sixteen can be entered in between.
 *
 * r0 weights, r1 elements, r2 their end, r3 and r12 four elements, r4 to r7 sums, r8 to r11 weights
 */
#define CODE_OF_A_WORD 56
TINYML_ASSEMBLY static void recurrent_cells_multiply(struct group *group TINYML_UNSEEN)
{
	/* clang-format off */
#define PRODUCTS(a, b, x)                                                                          \
	"smlad r4, " a ", " x ", r4\n\t"                                                           \
	"sxtb16 " a ", " a "\n\t"                                                                  \
	"smlad r6, " b ", " x ", r6\n\t"                                                           \
	"sxtb16 " b ", " b "\n\t"                                                                  \
	"smlad r5, " a ", " x ", r5\n\t"                                                           \
	"smlad r7, " b ", " x ", r7\n\t"
#define WORD                                                                                       \
	"ldmia.w r0!, {r8-r11}\n\t"                                                                \
	"ldrd r3, r12, [r1], #8\n\t"                                                               \
	PRODUCTS("r8", "r9", "r3")                                                                 \
	PRODUCTS("r10", "r11", "r12")
#define SHIFT                                                                                      \
	"lsl r4, r4, r2\n\t"                                                                       \
	"lsl r5, r5, r2\n\t"                                                                       \
	"lsl r6, r6, r2\n\t"                                                                       \
	"lsl r7, r7, r2\n\t"
	__asm__ volatile(
		"push {r0, r4-r11, lr}\n\t"
		"ldmia r0, {r0-r2}\n\t"
		"bl 3f\n\t"
		"ldr r12, [sp]\n\t"
		"str r0, [r12]\n\t"
		"ldrd r1, r2, [r12, #24]\n\t" /* rows, x_left */
		SHIFT
		"ldmia r1!, {r8-r11}\n\t" /* biases */
		"ldmia r1!, {r0, r2, r3, lr}\n\t"
		"smmla r4, r4, r0, r8\n\t"
		"smmla r5, r5, r2, r9\n\t"
		"smmla r6, r6, r3, r10\n\t"
		"smmla r7, r7, lr, r11\n\t"
		"str r1, [r12, #24]\n\t"
		"add r2, r12, #36\n\t"
		"stmia r2, {r4-r7}\n\t" /* from_x */
		"ldr r0, [r12, #12]\n\t"
		"ldrd r1, r2, [r12, #16]\n\t"
		"bl 3f\n\t"
		"pop {r12}\n\t"
		"str r0, [r12, #12]\n\t"
		"ldr r2, [r12, #32]\n\t" /* h_left */
		SHIFT
		"ldr r1, [r12, #24]\n\t"
		"ldmia r1!, {r8-r11}\n\t"
		"str r1, [r12, #24]\n\t"
		"smmul r4, r4, r8\n\t"
		"smmul r5, r5, r9\n\t"
		"smmul r6, r6, r10\n\t"
		"smmul r7, r7, r11\n\t"
		"add r12, r12, #36\n\t"
		"ldmia.w r12!, {r8-r11}\n\t"
		"stmia.w r12!, {r4-r7}\n\t" /* from_h */
		"add r4, r4, r8\n\t"
		"add r5, r5, r9\n\t"
		"add r6, r6, r10\n\t"
		"add r7, r7, r11\n\t"
		"ssat r4, #16, r4, asr #3\n\t"
		"ssat r5, #16, r5, asr #3\n\t"
		"ssat r6, #16, r6, asr #3\n\t"
		"ssat r7, #16, r7, asr #3\n\t"
		"stmia.w r12, {r4-r7}\n\t" /* gates */
		"pop {r4-r11, pc}\n\t"
		"3:\n\t"
		"subs r12, r1, r2\n\t"
		"and r12, r12, #24\n\t"
		"rsb r12, r12, r12, lsl #3\n\t" /* bytes of code: 56 for 8 of elements */
		"movs r4, #0\n\t"
		"movs r5, #0\n\t"
		"movs r6, #0\n\t"
		"movs r7, #0\n\t"
		"4:\n\t"
		"add pc, r12\n\t" /* from 4 bytes after this instruction */
		"nop\n\t"
		"1:\n\t"
		TINYML_CODE_BYTES("4b", "1b", 4)
		WORD
		WORD
		WORD
		WORD
		"2:\n\t"
		TINYML_CODE_BYTES("1b", "2b", 4 * CODE_OF_A_WORD)
		"cmp r1, r2\n\t"
		"bne 1b\n\t"
		"sub r4, r4, r5\n\t"
		"sub r6, r6, r7\n\t"
		"asr r4, r4, #8\n\t"
		"asr r6, r6, #8\n\t"
		"bx lr\n\t");
	/* clang-format on */
#undef SHIFT
#undef WORD
#undef PRODUCTS
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
