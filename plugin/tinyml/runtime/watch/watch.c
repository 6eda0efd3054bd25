/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Counts inputs and outputs of a run. It is part of every run of a watched model: both code and
 * instructions are kept few. watch/counting.py does the same. */

#include <string.h>

#include <tinyml/watch.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("Os")
#endif
#define WATCH_CALLED __attribute__((noinline))

WATCH_CALLED int32_t tinyml_watch_key(const void *data, uint32_t index, uint8_t type)
{
	int32_t bits;

	switch (type) {
	case TINYML_INT8:
		return ((const int8_t *)data)[index];
	case TINYML_INT16:
		return ((const int16_t *)data)[index];
	case TINYML_UINT16:
		return ((const uint16_t *)data)[index];
	case TINYML_INT32:
		return ((const int32_t *)data)[index];
	case TINYML_FLOAT32:
		memcpy(&bits, (const uint8_t *)data + 4u * index, sizeof(bits));
		return bits < 0 ? (int32_t)((uint32_t)bits ^ 0x7fffffffu) : bits;
	default: /* TINYML_UINT8, TINYML_BOOL */
		return ((const uint8_t *)data)[index];
	}
}

WATCH_CALLED void tinyml_watch_count(const struct tinyml_watch_values *values, const void *data,
				     uint32_t run)
{
	const int32_t *const edges = values->edges;

	if (values->stride == 0u) {
		return;
	}
	for (uint32_t i = run % values->stride; i < values->elements; i += values->stride) {
		const int32_t key = tinyml_watch_key(data, i, values->type);
		uint32_t bin = key >= edges[3] ? 4u : 0u;

		bin += key >= edges[bin + 1u] ? 2u : 0u;
		bin += key >= edges[bin] ? 1u : 0u;
		values->bins[bin]++;
	}
}

uint32_t tinyml_watch_log2(uint32_t x)
{
	/* log2(1 + i / 16) in 1/65536; between them a straight line */
	static const uint16_t table[] = {
		0,     5732,  11136, 16248, 21098, 25711, 30109, 34312,
		38336, 42196, 45904, 49472, 52911, 56229, 59434, 62534,
	};
	uint32_t whole = 0;
	uint32_t fraction, index, low, high;

	while ((x >> whole) > 1u) {
		whole++;
	}
	fraction = ((x << 16) >> whole) & 0xffffu; /* 65536 has no fraction */
	index = fraction >> 12;
	low = table[index];
	high = index < 15u ? table[index + 1u] : 65536u;
	return (whole << 16) + low + (((high - low) * (fraction & 0xfffu)) >> 12);
}

/* A positive float in 1/256, of which 1 << 23 is the most. */
static uint32_t watch_fixed(int32_t key)
{
	const uint32_t exponent = (uint32_t)key >> 23;
	const uint32_t shift = exponent < 119u ? 31u : 142u - exponent; /* 119: 1/256 */

	return exponent > 141u ? 1u << 23 : (((uint32_t)key & 0x7fffffu) | 0x800000u) >> shift;
}

/* exp(-x) in 1/256, for x in 1/256 */
static uint32_t watch_exponential(uint32_t x)
{
	/* 2^(-i / 16) in 1/256 */
	static const uint16_t table[] = {256, 245, 235, 225, 215, 206, 197, 189,
					 181, 173, 166, 159, 152, 146, 140, 134};
	const uint32_t sixteenths = (x * 369u) >> 12; /* log2(e) */

	return x < 4096u ? (uint32_t)table[sixteenths & 15u] >> (sixteenths >> 4) : 0u;
}

uint32_t tinyml_watch_score(const struct tinyml_watch_classes *classes, int32_t key, int32_t best)
{
	(void)best;
	return key <= classes->zero_point
		       ? 0u
		       : ((uint32_t)(key - classes->zero_point) * classes->multiplier) >> 16;
}

uint32_t tinyml_watch_score_f32(const struct tinyml_watch_classes *classes, int32_t key,
				int32_t best)
{
	(void)classes;
	(void)best;
	return key <= 0 ? 0u : key < 0x3f800000 ? watch_fixed(key) : 256u;
}

uint32_t tinyml_watch_logit(const struct tinyml_watch_classes *classes, int32_t key, int32_t best)
{
	const uint64_t apart = (uint64_t)((uint32_t)best - (uint32_t)key) * classes->multiplier;

	return apart < (4096ULL << 16) ? watch_exponential((uint32_t)(apart >> 16)) : 0u;
}

uint32_t tinyml_watch_logit_f32(const struct tinyml_watch_classes *classes, int32_t key,
				int32_t best)
{
	const int32_t high = best < 0 ? -(int32_t)watch_fixed(~best) : (int32_t)watch_fixed(best);
	const int32_t low = key < 0 ? -(int32_t)watch_fixed(~key) : (int32_t)watch_fixed(key);

	(void)classes;
	return watch_exponential((uint32_t)(high - low));
}

/* One more switch from a class to another. When a counter is full, all are halved. */
static void watch_transition(const struct tinyml_watch_classes *classes, uint32_t from, uint32_t to)
{
	const uint32_t others = classes->classes - 1u;
	uint8_t *const counter = &classes->transitions[from * others + to - (to > from ? 1u : 0u)];

	if (*counter == UINT8_MAX) {
		for (uint32_t i = classes->classes * others; i-- > 0u;) {
			classes->transitions[i] >>= 1;
		}
	}
	(*counter)++;
}

static WATCH_CALLED void watch_classes(const struct tinyml_watch_classes *classes, const void *data)
{
	struct tinyml_watch_scores *const scores = classes->scores;
	const uint32_t last = scores->last;
	int32_t best = INT32_MIN, second = INT32_MIN;
	uint32_t decision = 0, sum = 0, products = 0;

	for (uint32_t i = 0; i < classes->classes; i++) {
		const int32_t key = tinyml_watch_key(data, i, classes->type);

		if (key > best) {
			second = best;
			best = key;
			decision = i;
		} else if (key > second) {
			second = key;
		}
	}
	for (uint32_t i = 0; i < classes->classes; i++) {
		const uint32_t score =
			classes->score(classes, tinyml_watch_key(data, i, classes->type), best);

		if (score > 0u) {
			sum += score;
			products += score * (tinyml_watch_log2(score) >> 8);
		}
	}
	if (sum > 0u) {
		const uint32_t top = classes->score(classes, best, best);

		scores->top += (top << 8) / sum;
		scores->margin += ((top - classes->score(classes, second, best)) << 8) / sum;
		/* log2(sum) - (sum of score * log2(score)) / sum; never less than 0 */
		scores->entropy += ((tinyml_watch_log2(sum) >> 8) - products / sum + 4u) >> 3;
	}
	if (classes->decisions != NULL) {
		classes->decisions[decision]++;
	}
	scores->last = ++decision;
	if (last != 0u && last != decision) {
		scores->switches++;
		if (classes->transitions != NULL) {
			watch_transition(classes, last - 1u, decision - 1u);
		}
	}
}

void tinyml_watch_before(const struct tinyml_watch *watch, const void *const *inputs)
{
	const struct tinyml_watch_totals *const totals = watch->totals;

	if (totals->runs + totals->errors < watch->most_runs) {
		for (uint32_t i = 0; i < watch->input_count; i++) {
			tinyml_watch_count(&watch->inputs[i], inputs[i], totals->runs);
		}
	}
}

void tinyml_watch_after(const struct tinyml_watch *watch, const void *const *outputs, int status,
			uint32_t cycles)
{
	struct tinyml_watch_totals *const totals = watch->totals;

	if (totals->runs + totals->errors >= watch->most_runs) {
		return;
	}
	if (status != 0) {
		totals->errors++;
		return;
	}
	for (uint32_t i = 0; i < watch->output_count; i++) {
		if (watch->outputs[i].classes != NULL) {
			watch_classes(watch->outputs[i].classes, outputs[i]);
		} else {
			tinyml_watch_count(watch->outputs[i].values, outputs[i], totals->runs);
		}
	}
	if (totals->runs == 0u || cycles < totals->cycles_min) {
		totals->cycles_min = cycles;
	}
	if (cycles > totals->cycles_max) {
		totals->cycles_max = cycles;
	}
	totals->cycles += cycles;
	totals->runs++;
}

void tinyml_watch_reset(const struct tinyml_watch *watch)
{
	memset(watch->totals, 0, watch->bytes);
}
