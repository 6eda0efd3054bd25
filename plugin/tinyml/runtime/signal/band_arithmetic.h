/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** What the audio front end and the operators on bands share: one value of one band. */

#ifndef TINYML_SIGNAL_BAND_ARITHMETIC_H_
#define TINYML_SIGNAL_BAND_ARITHMETIC_H_

#include <stdint.h>

#include <tinyml/tinyml.h>
#include <tinyml/bands.h>

#define TINYML_PCAN_SIGNAL_BITS 12
#define TINYML_PCAN_OUTPUT_BITS 6
#define TINYML_LOG_BITS         16
#define TINYML_SEGMENT_BITS     9 /* of a fraction with TINYML_LOG_BITS */
#define TINYML_LN2              45426u

static inline int32_t tinyml_bits_of(uint32_t x)
{
	return x == 0 ? 0 : 32 - __builtin_clz(x);
}

/* floor(sqrt(x)), and what x has more. */
static inline uint32_t tinyml_root32(uint32_t x, uint32_t *rest)
{
	uint32_t root = 0;

	for (uint32_t bit = x == 0 ? 0 : UINT32_C(1) << ((tinyml_bits_of(x) - 1) & ~1); bit != 0;
	     bit >>= 2) {
		const uint32_t trial = root + bit;

		root >>= 1;
		if (x >= trial) {
			x -= trial;
			root += bit;
		}
	}
	*rest = x;
	return root;
}

/* sqrt(x), rounded. The upper half of the digits is a root of 32 bits, the lower half a quotient.
 */
static inline uint32_t tinyml_band_root(uint64_t x)
{
	uint32_t rest;

	if (x >> 32 == 0) {
		const uint32_t root = tinyml_root32((uint32_t)x, &rest);

		return rest > root && root != 0xFFFFu ? root + 1 : root;
	}
	const int32_t spare = __builtin_clz((uint32_t)(x >> 32)) & ~1;
	const uint64_t scaled = x << spare; /* its upper word has one of the two highest bits */
	const uint32_t upper = tinyml_root32((uint32_t)(scaled >> 32), &rest);
	const uint64_t dividend = (uint64_t)rest << 16 | ((uint32_t)scaled >> 16);
	/* The rest is at most twice the root, and that is at least 2^15: one bit more than a word
	 * holds. */
	uint32_t quotient;
	uint64_t root;

	TINYML_ASSERT(upper >= 0x8000u);
	quotient = (uint32_t)(dividend >> 1) / upper;
	quotient = quotient > 0xFFFFu ? 0xFFFFu : quotient;
	root = (((uint64_t)upper << 16) + quotient) >> (spare / 2);
	while (root * root > x) {
		root--;
	}
	return (uint32_t)(x - root * root > root && root != 0xFFFFFFFFu ? root + 1 : root);
}

/* Update the estimate of the noise, and take it away. */
static inline uint32_t tinyml_band_denoised(const struct tinyml_smoothing *p, uint32_t channel,
					    uint32_t signal, uint32_t *noise)
{
	const uint32_t large = signal << p->noise_bits;
	uint32_t estimate = (uint32_t)(((uint64_t)large * p->shares[channel & 1u] +
					(uint64_t)*noise * p->rests[channel & 1u]) >>
				       p->bits);
	const uint32_t least = (uint32_t)(((uint64_t)signal * p->least) >> p->bits);
	const uint32_t taken = estimate > large ? large : estimate;
	const uint32_t left = (large - taken) >> p->noise_bits;

	*noise = p->clamps ? taken : estimate;
	return left > least ? left : least;
}

/* Divide by a power of the noise, then bend the result so that small values become smaller. The
 * power is a parabola for each number of bits of the noise. */
static inline uint32_t tinyml_band_gain(const int16_t *gains, uint32_t shift, uint32_t signal,
					uint32_t noise)
{
	const int32_t bits = tinyml_bits_of(noise);
	const int16_t *parabola = &gains[3 * bits];
	const int32_t x =
		(int32_t)((bits < 11 ? noise << (11 - bits) : noise >> (bits - 11)) & 0x3FFu);
	const int32_t slope = ((parabola[2] * x) >> 5) + parabola[1] * 32;
	const int32_t gain = (int16_t)(((slope * x + (1 << 14)) >> 15) + parabola[0]);
	const uint32_t ratio = (uint32_t)(((uint64_t)signal * (uint32_t)gain) >> shift);

	if (ratio < 2u << TINYML_PCAN_SIGNAL_BITS) {
		return (ratio * ratio) >>
		       (2 + 2 * TINYML_PCAN_SIGNAL_BITS - TINYML_PCAN_OUTPUT_BITS);
	}
	return (ratio >> (TINYML_PCAN_SIGNAL_BITS - TINYML_PCAN_OUTPUT_BITS)) -
	       (1u << TINYML_PCAN_OUTPUT_BITS);
}

/* The natural logarithm: a table of log2 between powers of two, straight between its entries. */
static inline uint32_t tinyml_band_log(const uint16_t *table, uint32_t x, uint32_t scale)
{
	if (x <= 1) {
		return 0;
	}
	const uint32_t whole = (uint32_t)tinyml_bits_of(x) - 1u;
	const uint32_t above = x - (UINT32_C(1) << whole);
	const uint32_t part = whole < TINYML_LOG_BITS ? above << (TINYML_LOG_BITS - whole)
						      : above >> (whole - TINYML_LOG_BITS);
	const uint16_t *curve = &table[part >> TINYML_SEGMENT_BITS];
	const int32_t inside = (int32_t)(part & ((1u << TINYML_SEGMENT_BITS) - 1u));
	const int32_t bend = curve[0] + (((curve[1] - curve[0]) * inside) >> TINYML_LOG_BITS);
	const uint32_t binary = (whole << TINYML_LOG_BITS) + part + (uint32_t)bend;
	const uint32_t half = 1u << (TINYML_LOG_BITS - 1);
	const uint32_t natural =
		(uint32_t)(((uint64_t)TINYML_LN2 * binary + half) >> TINYML_LOG_BITS);

	return (natural * scale + half) >> TINYML_LOG_BITS;
}

#endif /* TINYML_SIGNAL_BAND_ARITHMETIC_H_ */
