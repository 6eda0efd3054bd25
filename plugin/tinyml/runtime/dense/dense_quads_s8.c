/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers for Arm cores without DSP instructions, with the weights of four filters for one
 * element in one word, W = a + 256 * b + 65536 * c + 2^24 * d, where a, b and c are larger than the
 * weights by 128. The kernel adds up W * x, (W >> 8) * x, (W >> 16) * x and (W >> 24) * x. Each sum
 * less 256 times the next is that of a single filter, modulo 2^32; no byte is extended on the way.
 */

#include <tinyml/tinyml.h>

#if defined(__thumb__) && !TINYML_CORE_DSP

#include "../weighted/assembly.h"
#include "../weighted/output_s8.h"

#define WEIGHT_OFFSET 128

#if defined(__thumb2__)

/* Takes weights (r0), elements (r1), how many words they fill (r2), and sums (r3). */
TINYML_ASSEMBLY static const uint32_t *dense_stream_dot_four(const uint32_t *filters TINYML_UNSEEN,
							     const int8_t *x TINYML_UNSEEN,
							     int32_t words TINYML_UNSEEN,
							     int32_t *sums TINYML_UNSEEN)
{
	/* clang-format off */
#define ELEMENT(w)                                                                                 \
	"ldrsb lr, [r1], #1\n\t"                                                                   \
	"asr r12, " w ", #24\n\t"                                                                  \
	"mla r7, r12, lr, r7\n\t"                                                                  \
	"asr r12, " w ", #16\n\t"                                                                  \
	"mla r6, r12, lr, r6\n\t"                                                                  \
	"asr r12, " w ", #8\n\t"                                                                   \
	"mla r5, r12, lr, r5\n\t"                                                                  \
	"mla r4, " w ", lr, r4\n\t"
	__asm__ volatile(
		"push {r3-r11, lr}\n\t"
		"ldm r3, {r4-r7}\n\t"
		"add r2, r1, r2, lsl #2\n\t"
		"add r6, r6, r7, lsl #8\n\t"
		"add r5, r5, r6, lsl #8\n\t"
		"add r4, r4, r5, lsl #8\n\t"
		"1:\n\t"
		"ldm r0!, {r8-r11}\n\t"
		ELEMENT("r8")
		ELEMENT("r9")
		ELEMENT("r10")
		ELEMENT("r11")
		"cmp r1, r2\n\t"
		"bne 1b\n\t"
		"sub r4, r4, r5, lsl #8\n\t"
		"sub r5, r5, r6, lsl #8\n\t"
		"sub r6, r6, r7, lsl #8\n\t"
		"pop {r3}\n\t"
		"stm r3, {r4-r7}\n\t"
		"pop {r4-r11, pc}\n\t");
	/* clang-format on */
#undef ELEMENT
}

#else

/* The same for Armv6-M. */
TINYML_ASSEMBLY static const uint32_t *dense_stream_dot_four(const uint32_t *filters TINYML_UNSEEN,
							     const int8_t *x TINYML_UNSEEN,
							     int32_t words TINYML_UNSEEN,
							     int32_t *sums TINYML_UNSEEN)
{
	/* clang-format off */
#define ELEMENT(i, w)                                                                              \
	"movs r3, #" i "\n\t"                                                                      \
	"ldrsb r3, [r1, r3]\n\t"                                                                   \
	"asrs r2, " w ", #24\n\t"                                                                  \
	"muls r2, r3, r2\n\t"                                                                      \
	"add r11, r2\n\t"                                                                          \
	"asrs r2, " w ", #16\n\t"                                                                  \
	"muls r2, r3, r2\n\t"                                                                      \
	"add r10, r2\n\t"                                                                          \
	"asrs r2, " w ", #8\n\t"                                                                   \
	"muls r2, r3, r2\n\t"                                                                      \
	"add r9, r2\n\t"                                                                           \
	"muls " w ", r3, " w "\n\t"                                                                \
	"add r8, " w "\n\t"
	__asm__ volatile(
		".syntax unified\n\t"
		"push {r3-r7, lr}\n\t"
		"mov r4, r8\n\t"
		"mov r5, r9\n\t"
		"mov r6, r10\n\t"
		"mov r7, r11\n\t"
		"push {r4-r7}\n\t"
		"lsls r2, r2, #2\n\t"
		"adds r2, r2, r1\n\t"
		"mov r12, r2\n\t"
		"ldm r3!, {r4-r7}\n\t"
		"mov r11, r7\n\t"
		"lsls r7, r7, #8\n\t"
		"adds r6, r6, r7\n\t"
		"mov r10, r6\n\t"
		"lsls r6, r6, #8\n\t"
		"adds r5, r5, r6\n\t"
		"mov r9, r5\n\t"
		"lsls r5, r5, #8\n\t"
		"adds r4, r4, r5\n\t"
		"mov r8, r4\n\t"
		"1:\n\t"
		"ldm r0!, {r4-r7}\n\t"
		ELEMENT("0", "r4")
		ELEMENT("1", "r5")
		ELEMENT("2", "r6")
		ELEMENT("3", "r7")
		"adds r1, #4\n\t"
		"cmp r1, r12\n\t"
		"bne 1b\n\t"
		"mov r4, r8\n\t"
		"mov r5, r9\n\t"
		"mov r6, r10\n\t"
		"mov r7, r11\n\t"
		"lsls r1, r5, #8\n\t"
		"subs r4, r4, r1\n\t"
		"lsls r1, r6, #8\n\t"
		"subs r5, r5, r1\n\t"
		"lsls r1, r7, #8\n\t"
		"subs r6, r6, r1\n\t"
		"ldr r3, [sp, #16]\n\t"
		"stm r3!, {r4-r7}\n\t"
		"pop {r4-r7}\n\t"
		"mov r8, r4\n\t"
		"mov r9, r5\n\t"
		"mov r10, r6\n\t"
		"mov r11, r7\n\t"
		"pop {r3-r7, pc}\n\t");
	/* clang-format on */
#undef ELEMENT
}

#endif /* defined(__thumb2__) */

static inline const uint32_t *dense_stream_dot_one(const uint32_t *filter, const int8_t *x,
						   int32_t words, int32_t *sum)
{
	const int8_t *w = (const int8_t *)filter;
	int32_t s = *sum;

	for (const int8_t *end = x + 4 * words; x != end; x++, w++) {
		s += *w * *x;
	}
	*sum = s;
	return filter + words;
}

static inline int8_t dense_stream_rescale(int32_t sum, int32_t factor, int32_t exponent,
					  const struct tinyml_output *to)
{
	return tinyml_output_s8(sum, (int32_t)((uint32_t)factor >> 1), ~exponent, to);
}

#include "dense_stream_s8.h"

void tinyml_dense_quads_s8(const struct tinyml_dense_stream_s8 *p, const int8_t *x, int8_t *y)
{
	dense_stream_multiply(p, x, y);
}

#endif /* defined(__thumb__) && !TINYML_CORE_DSP */
