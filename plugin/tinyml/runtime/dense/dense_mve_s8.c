/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers with Helium: a row by four filters at a time. */

#include <tinyml/dense.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/mve_s8.h"

/* Groups of four filters. The assembly below knows the layout. */
struct fours {
	const int8_t *x;
	int32_t vectors; /* whole ones in a row */
	int32_t rest;    /* elements after them */
	int32_t zero;
	int32_t low;
	int32_t high;
	const int8_t *end;         /* of the outputs */
	const int8_t *weights;     /* r1 */
	const int32_t *bias;       /* r5 */
	const int32_t *multiplier; /* r8 */
	const int8_t *shift;       /* r10 */
	int8_t *y;                 /* r12 */
};
TINYML_OFFSET(struct fours, x, 0);
TINYML_OFFSET(struct fours, vectors, 4);
TINYML_OFFSET(struct fours, rest, 8);
TINYML_OFFSET(struct fours, zero, 12);
TINYML_OFFSET(struct fours, low, 16);
TINYML_OFFSET(struct fours, high, 20);
TINYML_OFFSET(struct fours, end, 24);
TINYML_OFFSET(struct fours, weights, 28);
TINYML_OFFSET(struct fours, bias, 32);
TINYML_OFFSET(struct fours, multiplier, 36);
TINYML_OFFSET(struct fours, shift, 40);
TINYML_OFFSET(struct fours, y, 44);

/* One instruction in a line. */
/* clang-format off */

/* A vector of a row times those of four filters; the sums are in r0, r2, r4 and r6. */
#define MULTIPLY                                                                                   \
	"vldrb.8 q0, [r3], #16\n\t"                                                                \
	"vldrb.8 q1, [r1, #16]\n\t"                                                                \
	"vmladava.s8 r2, q0, q1\n\t"                                                               \
	"vldrb.8 q2, [r1, #32]\n\t"                                                                \
	"vmladava.s8 r4, q0, q2\n\t"                                                               \
	"vldrb.8 q3, [r1, #48]\n\t"                                                                \
	"vmladava.s8 r6, q0, q3\n\t"                                                               \
	"vldrb.8 q1, [r1], #64\n\t"                                                                \
	"vmladava.s8 r0, q0, q1\n\t"

/* The elements after the last whole vector: lr of them. */
#define MULTIPLY_REST                                                                              \
	"vctp.8 lr\n\t"                                                                            \
	"vpst\n\t"                                                                                 \
	"vldrbt.8 q0, [r3]\n\t"                                                                    \
	"vpst\n\t"                                                                                 \
	"vldrbt.8 q1, [r1]\n\t"                                                                    \
	"vmladava.s8 r0, q0, q1\n\t"                                                               \
	"add r1, r1, lr\n\t"                                                                       \
	"vpst\n\t"                                                                                 \
	"vldrbt.8 q1, [r1]\n\t"                                                                    \
	"vmladava.s8 r2, q0, q1\n\t"                                                               \
	"add r1, r1, lr\n\t"                                                                       \
	"vpst\n\t"                                                                                 \
	"vldrbt.8 q1, [r1]\n\t"                                                                    \
	"vmladava.s8 r4, q0, q1\n\t"                                                               \
	"add r1, r1, lr\n\t"                                                                       \
	"vpst\n\t"                                                                                 \
	"vldrbt.8 q1, [r1]\n\t"                                                                    \
	"vmladava.s8 r6, q0, q1\n\t"                                                               \
	"add r1, r1, lr\n\t"

/* The same with two filters in a vector: 16 * q + p, where p is between -8 and 7. */
#define MULTIPLY_NIBBLES                                                                           \
	"vldrb.8 q0, [r3], #16\n\t"                                                                \
	"vldrb.8 q1, [r1], #32\n\t"                                                                \
	"vmladava.s8 r0, q0, q1\n\t"                                                               \
	"vldrb.8 q2, [r1, #-16]\n\t"                                                               \
	"vrshr.s8 q1, q1, #4\n\t"                                                                  \
	"vmladava.s8 r4, q0, q2\n\t"                                                               \
	"vrshr.s8 q2, q2, #4\n\t"                                                                  \
	"vmladava.s8 r2, q0, q1\n\t"                                                               \
	"vmladava.s8 r6, q0, q2\n\t"

#define MULTIPLY_REST_NIBBLES                                                                      \
	"vctp.8 lr\n\t"                                                                            \
	"vpst\n\t"                                                                                 \
	"vldrbt.8 q0, [r3]\n\t"                                                                    \
	"vpst\n\t"                                                                                 \
	"vldrbt.8 q1, [r1]\n\t"                                                                    \
	"vmladava.s8 r0, q0, q1\n\t"                                                               \
	"vrshr.s8 q1, q1, #4\n\t"                                                                  \
	"vmladava.s8 r2, q0, q1\n\t"                                                               \
	"add r1, r1, lr\n\t"                                                                       \
	"vpst\n\t"                                                                                 \
	"vldrbt.8 q1, [r1]\n\t"                                                                    \
	"vmladava.s8 r4, q0, q1\n\t"                                                               \
	"vrshr.s8 q1, q1, #4\n\t"                                                                  \
	"vmladava.s8 r6, q0, q1\n\t"                                                               \
	"add r1, r1, lr\n\t"

#define APART ""
/* Sums of 16 * q + p less 16 times those of q. */
#define APART_NIBBLES                                                                              \
	"sub r0, r0, r2, lsl #4\n\t"                                                               \
	"sub r4, r4, r6, lsl #4\n\t"

/* Shifts of the sums (q0) to the left, as far as shifts (q3) are above 0, or above -1; these remain
 * for the shift to the right. */
#define SHIFT_LEFT(most)                                                                           \
	most                                                                                       \
	"vmin.s32 q4, q3, q4\n\t"                                                                  \
	"vsub.i32 q1, q3, q4\n\t"                                                                  \
	"vmov q3, q4\n\t"                                                                          \
	"vshl.s32 q0, q0, q1\n\t"
#define ABOVE_0     SHIFT_LEFT("vmov.i32 q4, #0\n\t")
#define ABOVE_LESS1 SHIFT_LEFT("vmvn.i32 q4, #0\n\t")

/* The shift rounds halves up, but negative halves must round down. */
#define HALVES_AWAY                                                                                \
	"vand q4, q0, q3\n\t"                                                                      \
	"vshr.s32 q4, q4, #31\n\t"                                                                 \
	"vqadd.s32 q0, q0, q4\n\t"
#define HALVES_UP ""

/* In assembly, because compilers spend more instructions on moving registers than on a short row.
 * r7 and r9 are left alone, because they may be the frame pointer and the platform's register.
 */
#define APPLY(fours, multiply, round, products, rest, part)                                        \
	do {                                                                                       \
		register const struct fours *at __asm__("r0") = (fours);                           \
                                                                                                   \
		__asm__ volatile(                                                                  \
			"mov r11, r0\n\t"                                                          \
			"ldrd r2, r3, [r11, #16]\n\t"                                              \
			"vdup.32 q5, r2\n\t"                                                       \
			"vdup.32 q6, r3\n\t"                                                       \
			"add r0, r0, #28\n\t"                                                      \
			"ldm r0, {r1, r5, r8, r10, r12}\n\t"                                       \
			"1:\n\t"                                                                   \
			"ldrd r3, lr, [r11]\n\t"                                                   \
			"mov r0, #0\n\t"                                                           \
			"mov r2, #0\n\t"                                                           \
			"mov r4, #0\n\t"                                                           \
			"mov r6, #0\n\t"                                                           \
			"wls lr, lr, 3f\n\t"                                                       \
			"2:\n\t"                                                                   \
			products                                                                   \
			"le lr, 2b\n\t"                                                            \
			"3:\n\t"                                                                   \
			"ldr lr, [r11, #8]\n\t"                                                    \
			"cmp lr, #0\n\t"                                                           \
			"beq 4f\n\t"                                                               \
			rest                                                                       \
			"4:\n\t"                                                                   \
			part                                                                       \
			"vmov q0[2], q0[0], r0, r4\n\t"                                            \
			"vmov q0[3], q0[1], r2, r6\n\t"                                            \
			"mov r0, r10\n\t"                                                          \
			"vldrw.32 q1, [r5], #16\n\t"                                               \
			"vldrw.32 q2, [r8], #16\n\t"                                               \
			"vldrb.s32 q3, [r0], #4\n\t"                                               \
			"mov r10, r0\n\t"                                                          \
			"ldr r2, [r11, #12]\n\t"                                                   \
			"vadd.i32 q0, q0, q1\n\t"                                                  \
			multiply " q0, q0, q2\n\t"                                                 \
			round                                                                      \
			"vrshl.s32 q0, q0, q3\n\t"                                                 \
			"vqadd.s32 q0, q0, r2\n\t"                                                 \
			"mov r0, r12\n\t"                                                          \
			"vmin.s32 q0, q0, q6\n\t"                                                  \
			"vmax.s32 q0, q0, q5\n\t"                                                  \
			"ldr r2, [r11, #24]\n\t"                                                   \
			"vstrb.32 q0, [r0], #4\n\t"                                                \
			"mov r12, r0\n\t"                                                          \
			"cmp r0, r2\n\t"                                                           \
			"bne 1b\n\t"                                                               \
			: "+r"(at)                                                                 \
			:                                                                          \
			: "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r10", "r11", "r12", "lr",     \
			  "q0", "q1", "q2", "q3", "q4", "q5", "q6", "cc", "memory");               \
	} while (false)

/* clang-format on */

struct tinyml_dense_mve {
	void (*apply)(const struct fours *fours);
};

/* One function each, so that only what a model uses is linked. */
#define LOOP(name, multiply, round, products, rest, part)                                          \
	__attribute__((noinline)) static void dense_mve_apply_##name(const struct fours *fours)    \
	{                                                                                          \
		APPLY(fours, multiply, round, products, rest, part);                               \
	}                                                                                          \
	const struct tinyml_dense_mve tinyml_dense_mve_##name = {dense_mve_apply_##name};
LOOP(once, "vqdmulh.s32", HALVES_UP, MULTIPLY, MULTIPLY_REST, APART)
LOOP(twice, "vqrdmulh.s32", HALVES_AWAY, MULTIPLY, MULTIPLY_REST, APART)
/* Nothing below the zero point is kept: how negative halves are rounded changes no output. */
LOOP(relu, "vqrdmulh.s32", HALVES_UP, MULTIPLY, MULTIPLY_REST, APART)
#define REST MULTIPLY_REST_NIBBLES
LOOP(nibbles_once, "vqdmulh.s32", HALVES_UP, MULTIPLY_NIBBLES, REST, APART_NIBBLES)
LOOP(nibbles_twice, "vqrdmulh.s32", HALVES_AWAY, MULTIPLY_NIBBLES, REST, APART_NIBBLES)
LOOP(nibbles_relu, "vqrdmulh.s32", HALVES_UP, MULTIPLY_NIBBLES, REST, APART_NIBBLES)
#define LARGE_LOOP(name, left, multiply, round)                                                    \
	LOOP(nibbles_large_##name, left multiply, round, MULTIPLY_NIBBLES, REST, APART_NIBBLES)
LARGE_LOOP(once, ABOVE_LESS1, "vqdmulh.s32", HALVES_UP)
LARGE_LOOP(twice, ABOVE_0, "vqrdmulh.s32", HALVES_AWAY)
LARGE_LOOP(relu, ABOVE_0, "vqrdmulh.s32", HALVES_UP)
#undef LARGE_LOOP
#undef REST
#undef LOOP

/* A single filter: one of the last, if their number is not a multiple of four. */
static int32_t dense_mve_dot_1x1(const int8_t *w, const int8_t *x, int32_t count)
{
	int32_t sum = 0;

	for (; count > 0; count -= TINYML_LANES, w += TINYML_LANES, x += TINYML_LANES) {
		const mve_pred16_t some = vctp8q((uint32_t)count);

		sum = vmladavaq_s8(sum, vldrbq_z_s8(w, some), vldrbq_z_s8(x, some));
	}
	return sum;
}

/* The last filters, fewer than four. */
static void dense_mve_apply_last(const struct tinyml_dense_mve_s8 *p, const int8_t *x, int8_t *y,
				 int32_t first)
{
	const struct tinyml_limits to = {p->out_zero, p->out_min, p->out_max};
	const int32_t count = p->outputs - first;
	const mve_pred16_t some = vctp32q((uint32_t)count);
	const int8_t *w = &p->weights[first * p->inputs];
	int32_t sums[4] = {0};
	int32x4_t acc;

	for (int32_t i = 0; i < count; i++, w += p->inputs) {
		sums[i] = dense_mve_dot_1x1(w, x, p->inputs);
	}
	acc = vaddq_s32(vldrwq_s32(sums), vldrwq_z_s32(&p->bias[first], some));
	acc = tinyml_rescale_4(acc, vldrwq_z_s32(&p->multiplier[first], some),
			       vldrbq_z_s32(&p->shift[first], some), p->round_once);
	vstrbq_p_s32(y, tinyml_limit_4(acc, &to), some);
}

void tinyml_dense_mve_s8(const struct tinyml_dense_mve_s8 *p, const int8_t *x, int8_t *y)
{
	const int32_t whole = p->outputs / 4 * 4;
	struct fours fours = {
		.vectors = p->inputs / TINYML_LANES,
		.rest = p->inputs % TINYML_LANES,
		.zero = p->out_zero,
		.low = p->out_min,
		.high = p->out_max,
		.weights = p->weights,
		.bias = p->bias,
		.multiplier = p->multiplier,
		.shift = p->shift,
	};

	TINYML_ASSERT(p->out_min <= p->out_max);
	TINYML_ASSERT(p->round_once == (p->loop == &tinyml_dense_mve_once));
	for (int32_t row = 0; row < p->rows; row++, x += p->inputs, y += p->outputs) {
		if (whole > 0) {
			fours.x = x;
			fours.y = y;
			fours.end = &y[whole];
			p->loop->apply(&fours);
		}
		if (whole < p->outputs) {
			dense_mve_apply_last(p, x, &y[whole], whole);
		}
	}
}

/* The tables have whole fours of filters; outputs of those that are missing are not kept. */
void tinyml_dense_nibbles_mve_s8(const struct tinyml_dense_mve_s8 *p, const int8_t *x, int8_t *y)
{
	const int32_t whole = p->outputs / 4 * 4, last = p->outputs - whole;
	struct fours fours = {
		.vectors = p->inputs / TINYML_LANES,
		.rest = p->inputs % TINYML_LANES,
		.zero = p->out_zero,
		.low = p->out_min,
		.high = p->out_max,
	};

	TINYML_ASSERT(p->out_min <= p->out_max);
	TINYML_ASSERT(p->round_once == (p->loop == &tinyml_dense_mve_nibbles_once ||
					p->loop == &tinyml_dense_mve_nibbles_large_once));
	for (int32_t row = 0; row < p->rows; row++, x += p->inputs, y += p->outputs) {
		int8_t four[4];

		fours.x = x;
		fours.weights = p->weights;
		fours.bias = p->bias;
		fours.multiplier = p->multiplier;
		fours.shift = p->shift;
		fours.y = y;
		fours.end = &y[whole];
		if (whole > 0) {
			p->loop->apply(&fours);
		}
		if (last > 0) {
			fours.weights += whole / 2 * p->inputs;
			fours.bias += whole;
			fours.multiplier += whole;
			fours.shift += whole;
			fours.y = four;
			fours.end = &four[4];
			p->loop->apply(&fours);
			vstrbq_p_s32(&y[whole], vldrbq_s32(four), vctp32q((uint32_t)last));
		}
	}
}

#endif /* TINYML_CORE_MVE */
