/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Instructions that only compute: registers and flags from registers and flags. */

#include "arithmetic.h"

#include "values.h"

static void two_operands(const struct op *op)
{
	const bool sets = (op->flags & F_SETS) != 0;
	struct value carry = flag(FLAG_C);
	struct value a = {0, false}, b = known((uint32_t)op->imm), result;

	if (op->kind != K_MOV && op->kind != K_MVN) {
		a = reg(op->rn);
	}
	if (op->flags & F_REGISTER) {
		b = shift(reg(op->rm), op->shift, known(op->amount), &carry);
	}
	switch (op->kind) {
	case K_ADD:
	case K_CMN:
		result = add(a, b, known(0), sets);
		break;
	case K_ADC:
		result = add(a, b, flag(FLAG_C), sets);
		break;
	case K_SUB:
	case K_CMP:
		result = add(a, not(b), known(1), sets);
		break;
	case K_SBC:
		result = add(a, not(b), flag(FLAG_C), sets);
		break;
	case K_RSB:
		result = add(not(a), b, known(1), sets);
		break;
	default:
		result =
			a.unknown || b.unknown ? NOT_KNOWN : known(logic(op->kind, a.bits, b.bits));
		if (sets) {
			set_sign(result);
			if (op->flags & F_REGISTER) {
				set_flag(FLAG_C, carry);
			} else if (op->extra != 0u) { /* a rotated constant may change the carry */
				set_flag(FLAG_C, NOT_KNOWN);
			}
		}
		break;
	}
	if (op->kind != K_CMP && op->kind != K_CMN && op->kind != K_TST && op->kind != K_TEQ) {
		set_reg(op->rd, result);
	}
}

static struct value extended(const struct op *op)
{
	struct value value = reg(op->rm);
	uint32_t carry = 0, bits;

	if (value.unknown) {
		return value;
	}
	bits = shifted(value.bits, ROR, op->amount, &carry);
	if (op->width == 8) {
		return known(op->flags & F_SIGNED ? (uint32_t)(int32_t)(int8_t)bits
						  : (uint8_t)bits);
	}
	return known(op->flags & F_SIGNED ? (uint32_t)(int32_t)(int16_t)bits : (uint16_t)bits);
}

enum { FIELD_UNSIGNED, FIELD_SIGNED, FIELD_INSERT, FIELD_CLEAR };

static struct value field(const struct op *op)
{
	const uint32_t mask = op->width > 31 ? ~0u : (1u << op->width) - 1u;
	struct value old = reg(op->rd), from = reg(op->rn);

	if (op->extra == FIELD_CLEAR) {
		return old.unknown ? old : known(old.bits & ~(mask << op->amount));
	}
	if (from.unknown || (op->extra == FIELD_INSERT && old.unknown)) {
		return NOT_KNOWN;
	}
	if (op->extra == FIELD_INSERT) {
		return known((old.bits & ~(mask << op->amount)) | (from.bits & mask) << op->amount);
	}
	from.bits = from.bits >> op->amount & mask;
	if (op->extra == FIELD_SIGNED && (from.bits >> (op->width - 1)) & 1u) {
		from.bits |= ~mask;
	}
	return from;
}

enum { BITS_CLZ, BITS_RBIT, BITS_REV, BITS_REV16, BITS_REVSH };

static struct value bits_of(const struct op *op)
{
	struct value value = reg(op->rm);
	uint32_t out = 0;

	if (value.unknown) {
		return value;
	}
	switch (op->extra) {
	case BITS_CLZ:
		return known(value.bits == 0u ? 32u : (uint32_t)__builtin_clz(value.bits));
	case BITS_RBIT:
		for (unsigned i = 0; i < 32; i++) {
			out |= (value.bits >> i & 1u) << (31u - i);
		}
		return known(out);
	case BITS_REV:
		return known(__builtin_bswap32(value.bits));
	case BITS_REV16:
		out = __builtin_bswap32(value.bits);
		return known(out >> 16 | out << 16);
	default:
		return known((uint32_t)(int32_t)(int16_t)__builtin_bswap16((uint16_t)value.bits));
	}
}

static void multiply_long(const struct op *op)
{
	const struct value a = reg(op->rn), b = reg(op->rm), low = reg(op->rd), high = reg(op->ra);
	uint64_t product;

	if (a.unknown || b.unknown || ((op->flags & F_ADDS) && (low.unknown || high.unknown))) {
		set_reg(op->rd, NOT_KNOWN);
		set_reg(op->ra, NOT_KNOWN);
		return;
	}
	product = op->flags & F_SIGNED ? (uint64_t)((int64_t)(int32_t)a.bits * (int32_t)b.bits)
				       : (uint64_t)a.bits * b.bits;
	if (op->flags & F_ADDS) {
		product += (uint64_t)high.bits << 32 | low.bits;
	}
	set_reg(op->rd, known((uint32_t)product));
	set_reg(op->ra, known((uint32_t)(product >> 32)));
}

static struct value quotient(const struct op *op)
{
	const struct value a = reg(op->rn), b = reg(op->rm);

	if (a.unknown || b.unknown) {
		return NOT_KNOWN;
	}
	if (b.bits == 0u) {
		return known(0);
	}
	if (op->flags & F_SIGNED) {
		return known((uint32_t)((int64_t)(int32_t)a.bits / (int32_t)b.bits));
	}
	return known(a.bits / b.bits);
}

/* smulxy, smlaxy: ``amount`` has a bit for each operand whose upper half counts. */
static struct value halves(const struct op *op)
{
	const struct value a = reg(op->rn), b = reg(op->rm);
	const struct value c = op->flags & F_ADDS ? reg(op->ra) : known(0);
	int32_t left, right;

	if (a.unknown || b.unknown || c.unknown) {
		return NOT_KNOWN;
	}
	left = (int16_t)(op->amount & 1 ? a.bits >> 16 : a.bits);
	right = (int16_t)(op->amount & 2 ? b.bits >> 16 : b.bits);
	return known((uint32_t)(left * right) + c.bits);
}

static struct value saturated(const struct op *op)
{
	const bool is_signed = (op->flags & F_SIGNED) != 0;
	const int64_t most =
		is_signed ? ((int64_t)1 << (op->width - 1)) - 1 : ((int64_t)1 << op->width) - 1;
	const int64_t least = is_signed ? -most - 1 : 0;
	struct value carry = known(0),
		     value = shift(reg(op->rm), op->shift, known(op->amount), &carry);
	int64_t bits;

	if (value.unknown) {
		return value;
	}
	bits = (int32_t)value.bits;
	bits = bits > most ? most : bits < least ? least : bits;
	return known((uint32_t)bits);
}

enum { SELECT, SELECT_INCREMENT, SELECT_INVERT, SELECT_NEGATE };

static struct value selected(const struct op *op)
{
	const int holds = condition(op->amount);
	struct value other = op->flags & F_REGISTER ? reg(op->rm) : known((uint32_t)op->imm);
	struct value first = op->rn == PC ? known(0) : reg(op->rn);

	if (op->flags & F_REGISTER && op->rm == PC) { /* the zero register */
		other = known(0);
	}
	if (holds < 0) {
		return NOT_KNOWN;
	}
	if (holds == 1 || other.unknown) {
		return holds == 1 ? first : other;
	}
	switch (op->extra) {
	case SELECT_INCREMENT:
		return known(other.bits + 1u);
	case SELECT_INVERT:
		return known(~other.bits);
	case SELECT_NEGATE:
		return known(0u - other.bits);
	default:
		return other;
	}
}

bool only_computes(const struct op *op)
{
	return op->kind >= K_MOV && op->kind <= K_OPAQUE;
}

void compute(const struct op *op)
{
	const bool sets = (op->flags & F_SETS) != 0;
	struct value result, other;

	switch (op->kind) {
	case K_SHIFT: {
		struct value carry = flag(FLAG_C);

		other = op->flags & F_REGISTER ? reg(op->rm) : known(op->amount);
		result = shift(reg(op->rn), op->shift, other, &carry);
		if (sets) {
			set_sign(result);
			set_flag(FLAG_C, carry);
		}
		set_reg(op->rd, result);
		return;
	}
	case K_MUL:
	case K_MLA:
	case K_MLS: {
		const struct value a = reg(op->rn), b = reg(op->rm);
		const struct value c = op->kind == K_MUL ? known(0) : reg(op->ra);
		const uint32_t product = a.bits * b.bits;

		result = a.unknown || b.unknown || c.unknown ? NOT_KNOWN
			 : op->kind == K_MLS                 ? known(c.bits - product)
							     : known(c.bits + product);
		if (sets) {
			set_sign(result);
		}
		break;
	}
	case K_LONG:
		multiply_long(op);
		return;
	case K_DIV:
		result = quotient(op);
		break;
	case K_EXTEND:
		result = extended(op);
		if (op->flags & F_ADDS) {
			result = add(result, reg(op->rn), known(0), false);
		}
		break;
	case K_FIELD:
		result = field(op);
		break;
	case K_BITS:
		result = bits_of(op);
		break;
	case K_MOVT:
		result = reg(op->rd);
		result.bits = (result.bits & 0xffffu) | (uint32_t)op->imm << 16;
		break;
	case K_HALVES:
		result = halves(op);
		break;
	case K_SATURATE:
		result = saturated(op);
		break;
	case K_SELECT:
		result = selected(op);
		break;
	case K_OPAQUE:
		for (unsigned i = 0; i < 16; i++) {
			if ((uint32_t)op->imm >> i & 1u) {
				set_reg(i, NOT_KNOWN);
			}
		}
		for (unsigned i = 0; i < 32; i++) {
			if (op->target >> i & 1u) {
				now.s[i] = 0;
			}
		}
		now.s_unknown |= op->target;
		return;
	default:
		two_operands(op);
		return;
	}
	set_reg(op->rd, result);
}

bool tells_flags(const struct op *op)
{
	const struct state before = now;
	bool known;

	compute(op);
	known = !(now.flags_unknown & (FLAG_N | FLAG_Z));
	now = before;
	return known;
}

void compute_perhaps(const struct op *op)
{
	struct state before = now;

	compute(op);
	for (unsigned i = 0; i < 16; i++) {
		if (now.r[i] != before.r[i] || ((now.unknown ^ before.unknown) >> i & 1u)) {
			set_reg(i, NOT_KNOWN);
		}
	}
	for (unsigned i = 0; i < 32; i++) {
		if (now.s[i] != before.s[i]) {
			now.s[i] = 0;
			now.s_unknown |= 1u << i;
		}
	}
	now.s_unknown |= before.s_unknown;
	now.flags_unknown =
		(uint8_t)(now.flags_unknown | before.flags_unknown | (now.flags ^ before.flags));
	now.flags = (uint8_t)(now.flags & ~now.flags_unknown);
}
