/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The columns of two windows (conv_columns_s8.h), filled at once with DSP instructions: that takes
 * half the instructions of one after the other.
 */

#ifndef TINYML_CONV_BOTH_S8_H_
#define TINYML_CONV_BOTH_S8_H_

#include "../weighted/dsp_s8.h"

#define WINDOWS   2
#define WORD_STEP 4 /* even bytes of both columns, then odd ones */

static inline void conv_columns_put_word(uint32_t *to, uint32_t word)
{
	to[0] = (uint32_t)tinyml_even_bytes(word);
	to[2] = (uint32_t)tinyml_odd_bytes(word);
}

#include "conv_columns_s8.h"

/* Copy `count` bytes of two windows, whole words, into both columns; returns what follows there. */
#ifdef __ARM_FEATURE_UNALIGNED

_Static_assert(WINDOWS == 2 && WORD_STEP == 4, "assembly stores four words at a time");
TINYML_ASSEMBLY static uint32_t *conv_both_copy(uint32_t *to TINYML_UNSEEN,
						const int8_t *first TINYML_UNSEEN,
						const int8_t *second TINYML_UNSEEN,
						int32_t count TINYML_UNSEEN)
{
	/* clang-format off */
#define WORD                                                                                       \
	"ldr r6, [r1], #4\n\t"                                                                     \
	"ldr r7, [r2], #4\n\t"                                                                     \
	"sxtb16 r4, r6\n\t"                                                                        \
	"sxtb16 r5, r7\n\t"                                                                        \
	"sxtb16 r6, r6, ror #8\n\t"                                                                \
	"sxtb16 r7, r7, ror #8\n\t"                                                                \
	"stmia r0!, {r4-r7}\n\t"
	__asm__ volatile(
		"push {r4-r7}\n\t"
		"add r12, r1, r3\n\t"
		"lsls r3, r3, #29\n\t" /* odd number of words: enter in the middle */
		"bmi 2f\n"
		"1:\n\t"
		WORD
		"2:\n\t"
		WORD
		"cmp r1, r12\n\t"
		"bne 1b\n\t"
		"pop {r4-r7}\n\t"
		"bx lr\n\t");
	/* clang-format on */
#undef WORD
}

#else /* windows can start at any address, and unaligned loads may trap */

static uint32_t *conv_both_copy(uint32_t *to, const int8_t *first, const int8_t *second,
				int32_t count)
{
	for (; count > 0; count -= 4, first += 4, second += 4, to += WORD_STEP) {
		const uint32_t a = conv_columns_load_word(first),
			       b = conv_columns_load_word(second);

		/* After both loads: a column can end in the other one's bytes. */
		conv_columns_put_word(to, a);
		conv_columns_put_word(to + 1, b);
	}
	return to;
}

#endif /* __ARM_FEATURE_UNALIGNED */

/* The same for any number of bytes, of which no others are read: as they are, to where the bytes of
 * both windows are collected. */
static inline void conv_both_copy_bytes(int8_t *to, int8_t *to_second, const int8_t *first,
					const int8_t *second, int32_t count)
{
	if (count >= 4) {
		int32_t i = 0;

		for (; i < count - 4; i += 4) {
			memcpy(&to[i], &first[i], 4);
			memcpy(&to_second[i], &second[i], 4);
		}
		i = count - 4; /* the last word may overlap the one before */
		memcpy(&to[i], &first[i], 4);
		memcpy(&to_second[i], &second[i], 4);
		return;
	}
	if (count > 1) {
		memcpy(to, first, 2);
		memcpy(to_second, second, 2);
	}
	to[count - 1] = first[count - 1];
	to_second[count - 1] = second[count - 1];
}

/* Bytes of the second window are where its column ends: conv_both_copy() just does not overtake
 * itself. What follows the last byte of a window does not matter: its weights are zero. */
static inline int8_t *conv_both_bytes(uint32_t *columns, int32_t column)
{
	return (int8_t *)&columns[column];
}

/* Columns from the bytes of both windows. */
static inline void conv_both_spread(uint32_t *columns, int32_t column)
{
	const int8_t *bytes = conv_both_bytes(columns, column);

	conv_both_copy(columns, bytes, bytes - column, column);
}

/* Copy the windows at position `at` and at its neighbour, which is 1, -1 or 0 away, unless one
 * extends past the input; returns whether it did. Rows of the windows may be any number of bytes.
 */
static inline bool conv_both_gather(const struct tinyml_window *w, bool pointwise, const int8_t *x,
				    int32_t at, int32_t neighbour, uint32_t *columns,
				    int32_t column)
{
	const int32_t in_c = w->in_c, row_bytes = w->in_w * in_c, count = w->kernel_w * in_c;
	int32_t apart = neighbour;

	if (pointwise) { /* a window is a pixel of the input */
		x += at * in_c;
	} else {
		const int32_t row = at / w->out_w, col = at - row * w->out_w;
		const int32_t top = row * w->stride_h - w->pad_top;
		const int32_t left = col * w->stride_w - w->pad_left, last = w->in_w - w->kernel_w;

		apart *= w->stride_w;
		if ((top | left | (left + apart)) < 0 || left > last || left + apart > last ||
		    top + w->kernel_h > w->in_h || col + neighbour >= w->out_w) {
			return false;
		}
		x += top * row_bytes + left * in_c;
	}
	apart *= in_c;
	if (in_c % 4 == 0) {
		for (int32_t ky = w->kernel_h; ky > 0; ky--, x += row_bytes) {
			columns = conv_both_copy(columns, x, &x[apart], count);
		}
	} else {
		int8_t *bytes = conv_both_bytes(columns, column);

		for (int32_t ky = w->kernel_h; ky > 0; ky--, x += row_bytes, bytes += count) {
			conv_both_copy_bytes(bytes, bytes - column, x, &x[apart], count);
		}
		conv_both_spread(columns, column);
	}
	return true;
}

/* Copy one window, which may extend past the input. */
static void conv_both_gather_one(const struct tinyml_conv_stream_s8 *p, const struct group *g,
				 const int8_t *x, int32_t at, struct column column)
{
	const struct tinyml_window *w = &p->window;
	const int32_t row = at / w->out_w, col = at - row * w->out_w;

	conv_columns_collect(p, g, x, row * w->stride_h - w->pad_top,
			     col * w->stride_w - w->pad_left, column);
}

#endif /* TINYML_CONV_BOTH_S8_H_ */
