/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Functions of float, element by element. */

#include <math.h>
#include <tinyml/maths.h>
#include <tinyml/play_records.h>
#include <tinyml/tinyml.h> /* INFINITY, which <math.h> of Zephyr's minimal libc lacks */

/* One function each, so that firmware links what its models use. */
#define UNARY(name, value)                                                                         \
	void tinyml_play_##name##_f32(const struct tinyml_play *play)                              \
	{                                                                                          \
		const struct tinyml_play_unary_f32 *r = play->record;                              \
		const float *from = play->operand[0];                                              \
		float *to = play->operand[1];                                                      \
                                                                                                   \
		for (uint32_t left = r->count; left > 0u; left--) {                                \
			const float x = *from++;                                                   \
                                                                                                   \
			*to++ = value;                                                             \
		}                                                                                  \
	}

UNARY(sigmoid, (1.0f / (1.0f + tinyml_expf(-x))))
UNARY(tanh, (tinyml_tanhf(x)))
UNARY(exp, (tinyml_expf(x)))
UNARY(log, (tinyml_logf(x)))
UNARY(sqrt, (tinyml_sqrtf(x)))
UNARY(rsqrt, (1.0f / tinyml_sqrtf(x)))
UNARY(abs, (tinyml_fabsf(x)))
UNARY(neg, (-x))
UNARY(square, (x * x))
UNARY(reciprocal, (1.0f / x))
UNARY(floor, (tinyml_floorf(x)))
UNARY(clamp, (x > r->high ? r->high : x < r->low ? r->low : x))

uint32_t tinyml_check_unary_f32(struct tinyml_check *check)
{
	const struct tinyml_play_unary_f32 *r = check->record;
	const uint32_t bytes = tinyml_check_times(r->count, 4);

	tinyml_check_reads(check, 0, bytes, 4);
	tinyml_check_writes(check, 1, bytes, 4);
	return tinyml_check_times(r->count, 16);
}

/* A row of elements that are `step` apart. */
static void play_unary_softmax(const struct tinyml_play_softmax_f32 *r, const float *from,
			       float *to)
{
	float largest = from[0], sum = 0.0f;

	for (uint32_t i = 0; i < r->depth; i++) {
		largest = from[i * r->step] > largest ? from[i * r->step] : largest;
	}
	for (uint32_t i = 0; i < r->depth; i++) {
		to[i * r->step] = tinyml_expf((from[i * r->step] - largest) * r->beta);
		sum += to[i * r->step];
	}
	for (uint32_t i = 0; i < r->depth; i++) {
		to[i * r->step] /= sum;
	}
}

void tinyml_play_softmax_f32(const struct tinyml_play *play)
{
	const struct tinyml_play_softmax_f32 *r = play->record;
	const float *x = play->operand[0];
	float *y = play->operand[1];

	for (uint32_t i = 0; i < r->rows; i++) {
		for (uint32_t j = 0; j < r->columns; j++) {
			play_unary_softmax(r, x + j, y + j);
		}
		x += r->row_step;
		y += r->row_step;
	}
}

/* The same for the logarithm of softmax. */
static void play_unary_log_softmax(const struct tinyml_play_softmax_f32 *r, const float *from,
				   float *to)
{
	float top = -INFINITY, sum = 0.0f, norm;

	for (uint32_t i = 0; i < r->depth; i++) {
		const float v = from[i * r->step];

		top = v > top || v != v ? v : top;
	}
	for (uint32_t i = 0; i < r->depth; i++) {
		sum += tinyml_expf(from[i * r->step] - top);
	}
	norm = tinyml_logf(sum);
	for (uint32_t i = 0; i < r->depth; i++) {
		to[i * r->step] = from[i * r->step] - top - norm;
	}
}

void tinyml_play_log_softmax_f32(const struct tinyml_play *play)
{
	const struct tinyml_play_softmax_f32 *r = play->record;
	const float *x = play->operand[0];
	float *y = play->operand[1];

	for (uint32_t i = 0; i < r->rows; i++) {
		for (uint32_t j = 0; j < r->columns; j++) {
			play_unary_log_softmax(r, x + j, y + j);
		}
		x += r->row_step;
		y += r->row_step;
	}
}

uint32_t tinyml_check_softmax_f32(struct tinyml_check *check)
{
	const struct tinyml_play_softmax_f32 *r = check->record;
	uint32_t last, count;

	tinyml_check_that(check, r->rows > 0u && r->columns > 0u && r->depth > 0u);
	if (check->wrong) {
		return 0;
	}
	last = tinyml_check_plus(tinyml_check_times(r->rows - 1u, r->row_step), r->columns);
	count = tinyml_check_plus(tinyml_check_times(r->depth - 1u, r->step), last);
	tinyml_check_reads(check, 0, tinyml_check_times(count, 4), 4);
	tinyml_check_writes(check, 1, tinyml_check_times(count, 4), 4);
	return tinyml_check_times(tinyml_check_times(r->rows, r->columns),
				  tinyml_check_plus(tinyml_check_times(r->depth, 16), 1));
}
