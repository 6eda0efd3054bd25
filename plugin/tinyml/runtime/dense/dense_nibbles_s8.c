/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers with weights of four bits in plain C: four filters at a time. An int16 h has an
 * element of all four. The sums of x * h, x * (h >> 4), x * (h >> 8) and x * (h >> 12) begin with
 * nothing; each less 16 times the next is that of a single filter, modulo 2^32. */

#include <tinyml/dense.h>
#include <tinyml/tinyml.h>

#include "../weighted/assembly.h"
#include "../weighted/output_s8.h"

struct sums {
	uint32_t of[4];
};

TINYML_OFFSET(struct sums, of, 0);

#if defined(__thumb2__) && !TINYML_CORE_DSP

/* Takes weights (r0), elements (r1), how many words they fill (r2), and sums (r3); returns what
 * follows the weights. In assembly, because compilers need a third more instructions. */
TINYML_ASSEMBLY static const uint32_t *dense_nibbles_dot(const uint32_t *filters TINYML_UNSEEN,
							 const int8_t *x TINYML_UNSEEN,
							 int32_t words TINYML_UNSEEN,
							 struct sums *sums TINYML_UNSEEN)
{
	/* clang-format off */
#define ELEMENT(at)                                                                                \
	"ldrsb lr, [r1, #" at "]\n\t"                                                              \
	"ldrsh r12, [r0], #2\n\t"                                                                  \
	"mla r4, r12, lr, r4\n\t"                                                                  \
	"asr r8, r12, #4\n\t"                                                                      \
	"mla r5, r8, lr, r5\n\t"                                                                   \
	"asr r8, r12, #8\n\t"                                                                      \
	"mla r6, r8, lr, r6\n\t"                                                                   \
	"asr r8, r12, #12\n\t"                                                                     \
	"mla r7, r8, lr, r7\n\t"
	__asm__ volatile(
		"push {r3-r8, lr}\n\t"
		"ldm r3, {r4-r7}\n\t"
		"adds r2, r1, r2, lsl #2\n\t"
		"cmp r1, r2\n\t"
		"beq 2f\n\t"
		"1:\n\t"
		ELEMENT("0")
		ELEMENT("2")
		ELEMENT("1")
		ELEMENT("3")
		"adds r1, #4\n\t"
		"cmp r1, r2\n\t"
		"bne 1b\n\t"
		"2:\n\t"
		"pop {r3}\n\t"
		"stm r3, {r4-r7}\n\t"
		"pop {r4-r8, pc}\n\t");
	/* clang-format on */
#undef ELEMENT
}

#elif defined(__thumb__) && !defined(__thumb2__)

/* The same for Armv6-M. */
TINYML_ASSEMBLY static const uint32_t *dense_nibbles_dot(const uint32_t *filters TINYML_UNSEEN,
							 const int8_t *x TINYML_UNSEEN,
							 int32_t words TINYML_UNSEEN,
							 struct sums *sums TINYML_UNSEEN)
{
	/* clang-format off */
#define FIELD(shift, sum)                                                                          \
	"asrs r2, r4, #" shift "\n\t"                                                              \
	"muls r2, r3, r2\n\t"                                                                      \
	"add " sum ", r2\n\t"
#define ELEMENT(h, at)                                                                             \
	"movs r2, #" at "\n\t"                                                                     \
	"ldrsb r3, [r1, r2]\n\t"                                                                   \
	"movs r2, #" h "\n\t"                                                                      \
	"ldrsh r4, [r0, r2]\n\t"                                                                   \
	FIELD("4", "r9")                                                                           \
	FIELD("8", "r10")                                                                          \
	FIELD("12", "r11")                                                                         \
	"muls r4, r3, r4\n\t"                                                                      \
	"add r8, r4\n\t"
	__asm__ volatile(
		".syntax unified\n\t"
		"push {r3-r7, lr}\n\t"
		"mov r4, r8\n\t"
		"mov r5, r9\n\t"
		"mov r6, r10\n\t"
		"mov r7, r11\n\t"
		"push {r4-r7}\n\t"
		"ldm r3!, {r4-r7}\n\t"
		"mov r8, r4\n\t"
		"mov r9, r5\n\t"
		"mov r10, r6\n\t"
		"mov r11, r7\n\t"
		"lsls r2, r2, #2\n\t"
		"adds r2, r2, r1\n\t"
		"mov r12, r2\n\t"
		"cmp r1, r12\n\t"
		"beq 2f\n\t"
		"1:\n\t"
		ELEMENT("0", "0")
		ELEMENT("2", "2")
		ELEMENT("4", "1")
		ELEMENT("6", "3")
		"adds r0, #8\n\t"
		"adds r1, #4\n\t"
		"cmp r1, r12\n\t"
		"bne 1b\n\t"
		"2:\n\t"
		"mov r4, r8\n\t"
		"mov r5, r9\n\t"
		"mov r6, r10\n\t"
		"mov r7, r11\n\t"
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
#undef FIELD
}

#else

/* Adds the products of `words` times four elements; returns what follows the weights. */
static inline const uint32_t *dense_nibbles_dot(const uint32_t *filters, const int8_t *x,
						int32_t words, struct sums *sums)
{
	const int16_t *h = (const int16_t *)filters;
	uint32_t s0 = sums->of[0], s1 = sums->of[1], s2 = sums->of[2], s3 = sums->of[3];

	for (const int8_t *end = x + 4 * words; x != end; x += 4, h += 4) {
#define STEP(i, at)                                                                                \
	do {                                                                                       \
		const int32_t four = h[i], value = x[at];                                          \
		s0 += (uint32_t)(four * value);                                                    \
		s1 += (uint32_t)((four >> 4) * value);                                             \
		s2 += (uint32_t)((four >> 8) * value);                                             \
		s3 += (uint32_t)((four >> 12) * value);                                            \
	} while (0)
		STEP(0, 0);
		STEP(1, 2);
		STEP(2, 1);
		STEP(3, 3);
#undef STEP
	}
	sums->of[0] = s0;
	sums->of[1] = s1;
	sums->of[2] = s2;
	sums->of[3] = s3;
	return filters + 2 * words;
}

#endif

static int32_t dense_nibbles_sum_elements(const int8_t *x, int32_t count)
{
	int32_t sum = 0;

	for (int32_t i = 0; i < count; i++) {
		sum += x[i];
	}
	return sum;
}

void tinyml_dense_nibbles_s8(const struct tinyml_dense_stream_s8 *p, const int8_t *x, int8_t *y)
{
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const int32_t inputs = p->inputs, whole = inputs / 4;

	TINYML_ASSERT(TINYML_ALIGNED(p->filters, 4) && p->out_min <= p->out_max);
	for (int32_t row = p->rows; row > 0; row--, x += inputs) {
		const int32_t all = dense_nibbles_sum_elements(x, inputs);
		const uint32_t *w = (const uint32_t *)p->filters;
		int8_t last[4] = {0}; /* so that no byte past the end is read */

		for (int32_t i = 4 * whole; i < inputs; i++) {
			last[i % 4] = x[i];
		}
		for (int32_t left = p->outputs; left > 0; left -= 4) {
			const int32_t *bias = (const int32_t *)w, *factor;
			const int8_t *exponent;
			struct sums s = {{0}};

			w = dense_nibbles_dot(w + 4, x, whole, &s);
			if (4 * whole < inputs) {
				w = dense_nibbles_dot(w, last, 1, &s);
			}
			s.of[0] -= s.of[1] << 4;
			s.of[1] -= s.of[2] << 4;
			s.of[2] -= s.of[3] << 4;
			s.of[3] += 8u * (uint32_t)all; /* the fourth field is less by 8 */
			factor = (const int32_t *)w;
			exponent = (const int8_t *)&w[4];
			for (int32_t i = 0; i < 4 && i < left; i++) {
				const int32_t sum = (int32_t)(s.of[i] + (uint32_t)bias[i]) -
						    p->weight_zero * all;

				*y++ = tinyml_output_s8(sum, (int32_t)((uint32_t)factor[i] >> 1),
							~exponent[i], &to);
			}
			w += 5;
		}
	}
}
