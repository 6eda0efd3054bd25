/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Numbers in the byte streams of decision trees: little-endian, at any address. */

#ifndef TINYML_TREES_H_
#define TINYML_TREES_H_

#include <stdint.h>
#include <string.h>

static inline uint16_t tinyml_trees_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] | (uint32_t)p[1] << 8);
}

static inline uint32_t tinyml_trees_u32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline int16_t tinyml_trees_s16(const uint8_t *p)
{
	return (int16_t)tinyml_trees_u16(p);
}

static inline int32_t tinyml_trees_s32(const uint8_t *p)
{
	return (int32_t)tinyml_trees_u32(p);
}

static inline float tinyml_trees_f32(const uint8_t *p)
{
	const uint32_t bits = tinyml_trees_u32(p);
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/** A float as an integer with the same order, to be compared as such; NaN is the largest. */
static inline int32_t tinyml_trees_key(float value)
{
	int32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	if ((bits & INT32_MAX) > 0x7f800000) {
		return INT32_MAX;
	}
	return bits < 0 ? -(bits & INT32_MAX) : bits; /* both zeros are 0 */
}

#endif /* TINYML_TREES_H_ */
