/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The outputs of a channel of a depthwise convolution with int16 activations and DSP instructions,
 * for kernels of three rows and at most three columns: eight of a line at a time, then two or one.
 */

#ifndef TINYML_DEPTHWISE_LINES_DSP_S16_H_
#define TINYML_DEPTHWISE_LINES_DSP_S16_H_

#include <stdint.h>

#include "../weighted/assembly.h"

/* What a channel needs. The function copies all of it to the stack. */
struct depthwise_lines_dsp_s16 {
	uint32_t taps[6]; /* two in a word: 0 1 and 1 2 of each row */
	int32_t bias;
	int32_t factor; /* that needs no shift */
	int16_t *next;  /* the output after those that were written */
	int32_t step;   /* bytes from one output of a line to the next */
	int32_t eights; /* bytes of the plane that the outputs make that are computed in eights */
	int32_t down;   /* bytes of the plane from a row of taps to the next */
	const int16_t *line;
	int32_t x_line; /* bytes of the plane from a line to the next */
	int32_t y_line; /* bytes of the output from a line to the next */
	int32_t lines;
	int32_t rest;   /* outputs of a line that are no eights */
	int32_t limits; /* 0: negative outputs become 0, and the others are not limited */
	uint32_t low;   /* in both halves of the word */
	uint32_t high;
	int16_t *y;
	const int16_t *end; /* of the eights in the plane */
	int32_t left;       /* outputs of the rest */
	int32_t unused;
};
TINYML_OFFSET(struct depthwise_lines_dsp_s16, taps, 0);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, bias, 24);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, factor, 28);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, next, 32);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, step, 36);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, eights, 40);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, down, 44);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, line, 48);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, x_line, 52);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, y_line, 56);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, lines, 60);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, rest, 64);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, limits, 68);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, low, 72);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, high, 76);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, y, 80);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, end, 84);
TINYML_OFFSET(struct depthwise_lines_dsp_s16, left, 88);
_Static_assert(sizeof(struct depthwise_lines_dsp_s16) == 96, "assembly copies so many bytes");

/* All lines of a channel. */
TINYML_ASSEMBLY static void
depthwise_lines_dsp_s16(const struct depthwise_lines_dsp_s16 *all TINYML_UNSEEN)
{
	/* clang-format off */
	/* A row of taps: w0 w1 in r2, w1 w2 in r3. The sums so far are in these registers. */
#define ROW(taps, a, b, c, d, e, f, g, h)                                                          \
	"ldrd r2, r3, [sp, #" taps "]\n\t"                                                         \
	"ldrd r12, lr, [r0]\n\t"                                                                   \
	"smlad r4, r2, r12, " a "\n\t"                                                             \
	"smlabt r5, r2, r12, " b "\n\t"                                                            \
	"smlad r6, r2, lr, " c "\n\t"                                                              \
	"smlabt r7, r2, lr, " d "\n\t"                                                             \
	"smlatb r4, r3, lr, r4\n\t"                                                                \
	"smlad r5, r3, lr, r5\n\t"                                                                 \
	"ldrd r12, lr, [r0, #8]\n\t"                                                               \
	"smlatb r6, r3, r12, r6\n\t"                                                               \
	"smlad r7, r3, r12, r7\n\t"                                                                \
	"smlad r8, r2, r12, " e "\n\t"                                                             \
	"smlabt r9, r2, r12, " f "\n\t"                                                            \
	"smlad r10, r2, lr, " g "\n\t"                                                             \
	"smlabt r11, r2, lr, " h "\n\t"                                                            \
	"ldr r12, [r0, #16]\n\t"                                                                   \
	"smlatb r8, r3, lr, r8\n\t"                                                                \
	"smlad r9, r3, lr, r9\n\t"                                                                 \
	"smlatb r10, r3, r12, r10\n\t"                                                             \
	"smlad r11, r3, r12, r11\n\t"
#define SAME(taps) ROW(taps, "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11")
#define BIAS(taps) ROW(taps, "r11", "r11", "r11", "r11", "r11", "r11", "r11", "r11")
	/* The same for two outputs, and for one. */
#define ROW_OF_TWO(taps, from)                                                                     \
	"ldrd r2, r3, [sp, #" taps "]\n\t"                                                         \
	"ldrd r12, lr, [r0]\n\t"                                                                   \
	"smlad r4, r2, r12, " from "\n\t"                                                          \
	"smlabt r5, r2, r12, r5\n\t"                                                               \
	"smlatb r4, r3, lr, r4\n\t"                                                                \
	"smlad r5, r3, lr, r5\n\t"
#define ROW_OF_ONE(taps)                                                                           \
	"ldrd r2, r3, [sp, #" taps "]\n\t"                                                         \
	"ldrd r12, lr, [r0]\n\t"                                                                   \
	"smlad r4, r2, r12, r4\n\t"                                                                \
	"smlatb r4, r3, lr, r4\n\t"
#define ALL(what, more)                                                                            \
	what " r4, " more "r4\n\t"                                                                 \
	what " r5, " more "r5\n\t"                                                                 \
	what " r6, " more "r6\n\t"                                                                 \
	what " r7, " more "r7\n\t"                                                                 \
	what " r8, " more "r8\n\t"                                                                 \
	what " r9, " more "r9\n\t"                                                                 \
	what " r10, " more "r10\n\t"                                                               \
	what " r11, " more "r11\n\t"
	/* Lower halves of all are what is limited. */
#define CLAMP(sum)                                                                                 \
	"ssub16 r12, " sum ", r2\n\t"                                                              \
	"sel " sum ", " sum ", r2\n\t"                                                             \
	"ssub16 r12, r3, " sum "\n\t"                                                              \
	"sel " sum ", " sum ", r3\n\t"
	__asm__ volatile(
		"push {r4-r11, lr}\n\t"
		"add r12, r0, #48\n\t"
		"ldm r12, {r1-r12}\n\t"
		"push {r1-r12}\n\t"
		"ldm r0, {r1-r12}\n\t"
		"push {r1-r12}\n\t"
		"mov r1, r12\n" /* down */
		"1:\n\t" /* a line */
		"ldrd r0, r2, [sp, #48]\n\t"
		"ldr r3, [sp, #80]\n\t"
		"ldr r5, [sp, #40]\n\t"
		"ldr r6, [sp, #56]\n\t"
		"add r2, r0\n\t"
		"str r3, [sp, #32]\n\t"
		"add r6, r3\n\t"
		"str r2, [sp, #48]\n\t"
		"str r6, [sp, #80]\n\t"
		"cmp r5, #0\n\t"
		"beq.w 3f\n\t"
		"add r5, r0\n\t"
		"str r5, [sp, #84]\n"
		"2:\n\t" /* eight outputs */
		"ldr r11, [sp, #24]\n\t"
		BIAS("0")
		"add r0, r1\n\t"
		SAME("8")
		"add r0, r1\n\t"
		SAME("16")
		"ldr r12, [sp, #28]\n\t"
		"ldr r2, [sp, #68]\n\t"
		"sub r0, r0, r1, lsl #1\n\t"
		ALL("smmulr", "r12, ")
		"cbz r2, 19f\n\t"
		"b 8f\n"
		"19:\n\t"
		ALL("usat", "#15, ")
		"20:\n\t"
		"ldrd r2, r3, [sp, #32]\n\t"
		"add r0, #16\n\t"
		"strh r4, [r2]\n\t"
		"strh r5, [r2, r3]\n\t"
		"strh r6, [r2, r3, lsl #1]\n\t"
		"add r12, r2, r3, lsl #3\n\t"
		"strh r8, [r2, r3, lsl #2]\n\t"
		"add r2, r3\n\t"
		"str r12, [sp, #32]\n\t"
		"strh r7, [r2, r3, lsl #1]\n\t"
		"strh r9, [r2, r3, lsl #2]\n\t"
		"add r2, r2, r3, lsl #2\n\t"
		"ldr r12, [sp, #84]\n\t"
		"strh r10, [r2, r3]\n\t"
		"strh r11, [r2, r3, lsl #1]\n\t"
		"cmp r0, r12\n\t"
		"bne.w 2b\n"
		"3:\n\t"
		"ldr r6, [sp, #64]\n\t"
		"cmp r6, #0\n\t"
		"beq 7f\n\t"
		"subs r6, #2\n\t"
		"blt 5f\n"
		"4:\n\t" /* two outputs; r6: how many are left after them */
		"ldr r5, [sp, #24]\n\t"
		ROW_OF_TWO("0", "r5")
		"add r0, r1\n\t"
		ROW_OF_TWO("8", "r4")
		"add r0, r1\n\t"
		ROW_OF_TWO("16", "r4")
		"ldr r12, [sp, #28]\n\t"
		"ldr r2, [sp, #68]\n\t"
		"sub r0, r0, r1, lsl #1\n\t"
		"smmulr r4, r4, r12\n\t"
		"smmulr r5, r5, r12\n\t"
		"add r0, #4\n\t"
		"cbz r2, 39f\n\t"
		"b 9f\n"
		"39:\n\t"
		"usat r4, #15, r4\n\t"
		"usat r5, #15, r5\n"
		"40:\n\t"
		"ldrd r2, r3, [sp, #32]\n\t"
		"subs r6, #2\n\t"
		"strh r4, [r2]\n\t"
		"strh r5, [r2, r3]\n\t"
		"add r2, r2, r3, lsl #1\n\t"
		"str r2, [sp, #32]\n\t"
		"bge 4b\n"
		"cmn r6, #2\n\t"
		"beq 7f\n"
		"5:\n\t" /* one output */
		"ldr r4, [sp, #24]\n\t"
		ROW_OF_ONE("0")
		"add r0, r1\n\t"
		ROW_OF_ONE("8")
		"add r0, r1\n\t"
		ROW_OF_ONE("16")
		"ldr r12, [sp, #28]\n\t"
		"ldr r3, [sp, #68]\n\t"
		"ldr r2, [sp, #32]\n\t"
		"smmulr r4, r4, r12\n\t"
		"cbz r3, 59f\n\t"
		"b 10f\n"
		"59:\n\t"
		"usat r4, #15, r4\n"
		"6:\n\t"
		"strh r4, [r2]\n"
		"7:\n\t"
		"ldr r2, [sp, #60]\n\t"
		"subs r2, #1\n\t"
		"str r2, [sp, #60]\n\t"
		"bne.w 1b\n\t"
		"add sp, #96\n\t"
		"pop {r4-r11, pc}\n"
		"8:\n\t"
		"ldrd r2, r3, [sp, #72]\n\t"
		ALL("ssat", "#16, ")
		CLAMP("r4")
		CLAMP("r5")
		CLAMP("r6")
		CLAMP("r7")
		CLAMP("r8")
		CLAMP("r9")
		CLAMP("r10")
		CLAMP("r11")
		"b 20b\n"
		"9:\n\t"
		"ldrd r2, r3, [sp, #72]\n\t"
		"ssat r4, #16, r4\n\t"
		"ssat r5, #16, r5\n\t"
		CLAMP("r4")
		CLAMP("r5")
		"b 40b\n"
		"10:\n\t"
		"mov r5, r2\n\t"
		"ldrd r2, r3, [sp, #72]\n\t"
		"ssat r4, #16, r4\n\t"
		CLAMP("r4")
		"mov r2, r5\n\t"
		"b 6b\n\t");
	/* clang-format on */
#undef ROW
#undef SAME
#undef BIAS
#undef ROW_OF_TWO
#undef ROW_OF_ONE
#undef ALL
#undef CLAMP
}

/* Copy elements that are `step` bytes apart. */
TINYML_ASSEMBLY static void depthwise_lines_dsp_s16_copy(int16_t *to TINYML_UNSEEN,
							 const int16_t *from TINYML_UNSEEN,
							 int32_t step TINYML_UNSEEN,
							 int32_t count TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r4-r7, lr}\n\t"
		"add lr, r2, r2, lsl #1\n\t"
		"subs r3, #8\n\t"
		"blt 2f\n"
		"1:\n\t"
		"ldrh r4, [r1]\n\t"
		"ldrh r5, [r1, r2]\n\t"
		"ldrh r6, [r1, r2, lsl #1]\n\t"
		"ldrh r7, [r1, lr]\n\t"
		"ldrh r12, [r1, r2, lsl #2]\n\t"
		"add r1, r1, r2, lsl #2\n\t"
		"strh r4, [r0]\n\t"
		"strh r5, [r0, #2]\n\t"
		"strh r6, [r0, #4]\n\t"
		"strh r7, [r0, #6]\n\t"
		"ldrh r4, [r1, r2]\n\t"
		"ldrh r5, [r1, r2, lsl #1]\n\t"
		"ldrh r6, [r1, lr]\n\t"
		"add r1, r1, r2, lsl #2\n\t"
		"strh r12, [r0, #8]\n\t"
		"strh r4, [r0, #10]\n\t"
		"strh r5, [r0, #12]\n\t"
		"strh r6, [r0, #14]\n\t"
		"add r0, #16\n\t"
		"subs r3, #8\n\t"
		"bge 1b\n"
		"2:\n\t"
		"adds r3, #8\n\t"
		"ble 4f\n"
		"3:\n\t"
		"ldrh r4, [r1]\n\t"
		"add r1, r2\n\t"
		"strh r4, [r0], #2\n\t"
		"subs r3, #1\n\t"
		"bne 3b\n"
		"4:\n\t"
		"pop {r4-r7, pc}\n\t");
	/* clang-format on */
}

/* What is copied of two channels. */
struct depthwise_lines_dsp_s16_copied {
	int16_t *to;    /* the first channel */
	int16_t *other; /* the second one */
	const int16_t *from;
	int32_t step;  /* bytes from one element of a line to the next */
	int32_t count; /* elements of a line */
	int32_t lines;
	int32_t gap;    /* bytes of a plane from the end of a line to the next */
	int32_t x_line; /* bytes of the input from a line to the next */
};
TINYML_OFFSET(struct depthwise_lines_dsp_s16_copied, to, 0);
TINYML_OFFSET(struct depthwise_lines_dsp_s16_copied, other, 4);
TINYML_OFFSET(struct depthwise_lines_dsp_s16_copied, from, 8);
TINYML_OFFSET(struct depthwise_lines_dsp_s16_copied, step, 12);
TINYML_OFFSET(struct depthwise_lines_dsp_s16_copied, count, 16);
TINYML_OFFSET(struct depthwise_lines_dsp_s16_copied, lines, 20);
TINYML_OFFSET(struct depthwise_lines_dsp_s16_copied, gap, 24);
TINYML_OFFSET(struct depthwise_lines_dsp_s16_copied, x_line, 28);

/* Copy two channels that are neighbours, which have an element or more. */
TINYML_ASSEMBLY static void
depthwise_lines_dsp_s16_copy_two(const struct depthwise_lines_dsp_s16_copied *all TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r0, r4-r11, lr}\n\t"
		"ldm r0, {r0-r5}\n\t"
		"add lr, r3, r3, lsl #1\n\t"
		"mov r11, r4\n\t"
		"mov r10, r2\n"
		"1:\n\t" /* a line */
		"subs r4, r11, #4\n\t"
		"blt 3f\n"
		"2:\n\t"
		"ldr r6, [r2]\n\t"
		"ldr r7, [r2, r3]\n\t"
		"ldr r8, [r2, r3, lsl #1]\n\t"
		"ldr r9, [r2, lr]\n\t"
		"add r2, r2, r3, lsl #2\n\t"
		"pkhbt r12, r6, r7, lsl #16\n\t"
		"pkhtb r6, r7, r6, asr #16\n\t"
		"str r12, [r0], #4\n\t"
		"pkhbt r7, r8, r9, lsl #16\n\t"
		"str r6, [r1], #4\n\t"
		"pkhtb r8, r9, r8, asr #16\n\t"
		"str r7, [r0], #4\n\t"
		"str r8, [r1], #4\n\t"
		"subs r4, #4\n\t"
		"bge 2b\n"
		"3:\n\t"
		"adds r4, #4\n\t"
		"beq 5f\n"
		"4:\n\t"
		"ldr r6, [r2]\n\t"
		"add r2, r3\n\t"
		"strh r6, [r0], #2\n\t"
		"lsrs r6, r6, #16\n\t"
		"subs r4, #1\n\t"
		"strh r6, [r1], #2\n\t"
		"bne 4b\n"
		"5:\n\t"
		"ldr r12, [sp]\n\t"
		"subs r5, #1\n\t"
		"ldrd r6, r7, [r12, #24]\n\t"
		"add r10, r7\n\t"
		"add r0, r6\n\t"
		"add r1, r6\n\t"
		"mov r2, r10\n\t"
		"bne 1b\n\t"
		"pop {r0, r4-r11, pc}\n\t");
	/* clang-format on */
}

#endif /* TINYML_DEPTHWISE_LINES_DSP_S16_H_ */
