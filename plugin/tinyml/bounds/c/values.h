/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Values that may be unknown, and what a processor computes with them: shifts, sums, logic, flags.
 */

#ifndef TINYML_BOUNDS_VALUES_H_
#define TINYML_BOUNDS_VALUES_H_

#include "machine.h"
#include "ops.h"

static const struct value NOT_KNOWN = {0, true};

static inline struct value known(uint32_t bits)
{
	return (struct value){bits, false};
}

enum { LSL, LSR, ASR, ROR, RRX };

/* A shift by 0..255 places; the carry is that of the instruction. */
static inline uint32_t shifted(uint32_t value, unsigned type, unsigned by, uint32_t *carry)
{
	if (by == 0u && type != RRX) {
		return value;
	}
	switch (type) {
	case LSL:
		*carry = by > 32u ? 0u : (value >> (32u - by)) & 1u;
		return by > 31u ? 0u : value << by;
	case LSR:
		*carry = by > 32u ? 0u : (value >> (by - 1u)) & 1u;
		return by > 31u ? 0u : value >> by;
	case ASR:
		by = by > 32u ? 32u : by;
		*carry = (uint32_t)((int64_t)(int32_t)value >> (by - 1u)) & 1u;
		return (uint32_t)((int64_t)(int32_t)value >> by);
	case ROR:
		by &= 31u;
		value = by == 0u ? value : value >> by | value << (32u - by);
		*carry = value >> 31;
		return value;
	default: {
		const uint32_t low = value & 1u;

		value = value >> 1 | *carry << 31;
		*carry = low;
		return value;
	}
	}
}

/* A value shifted by another; ``carry`` gets the carry. */
static inline struct value shift(struct value value, unsigned type, struct value by,
				 struct value *carry)
{
	uint32_t out = carry->bits;
	uint32_t bits;

	if (value.unknown || by.unknown || (type == RRX && carry->unknown)) {
		if (by.unknown || by.bits != 0u || type == RRX) {
			*carry = NOT_KNOWN;
		}
		return NOT_KNOWN;
	}
	bits = shifted(value.bits, type, by.bits & 255u, &out);
	if ((by.bits & 255u) != 0u || type == RRX) {
		*carry = known(out);
	}
	return known(bits);
}

static inline void set_sign(struct value result)
{
	set_flag(FLAG_N, result.unknown ? NOT_KNOWN : known(result.bits >> 31));
	set_flag(FLAG_Z, result.unknown ? NOT_KNOWN : known(result.bits == 0u));
}

/* a + b + carry, with flags if wanted. */
static inline struct value add(struct value a, struct value b, struct value carry, bool sets)
{
	uint64_t sum;
	uint32_t bits;

	if (a.unknown || b.unknown || carry.unknown) {
		if (sets) {
			now.flags = 0;
			now.flags_unknown = FLAGS;
		}
		return NOT_KNOWN;
	}
	sum = (uint64_t)a.bits + b.bits + carry.bits;
	bits = (uint32_t)sum;
	if (sets) {
		set_sign(known(bits));
		set_flag(FLAG_C, known(sum >> 32 != 0u));
		set_flag(FLAG_V, known(((a.bits ^ bits) & (b.bits ^ bits)) >> 31));
	}
	return known(bits);
}

static inline struct value not(struct value value)
{
	return value.unknown ? value : known(~value.bits);
}

static inline uint32_t logic(unsigned kind, uint32_t a, uint32_t b)
{
	switch (kind) {
	case K_AND:
	case K_TST:
		return a & b;
	case K_ORR:
		return a | b;
	case K_EOR:
	case K_TEQ:
		return a ^ b;
	case K_BIC:
		return a & ~b;
	case K_ORN:
		return a | ~b;
	case K_MVN:
		return ~b;
	default:
		return b;
	}
}

#endif /* TINYML_BOUNDS_VALUES_H_ */
