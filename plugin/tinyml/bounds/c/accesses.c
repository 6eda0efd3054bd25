/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "accesses.h"

#include <stdio.h>

#define MAX_DEPTH 256u
#define RETURN    0xfffffffeu

uint32_t lowest;
static uint32_t returns[MAX_DEPTH];

uint32_t known_reg(unsigned number, const char *why)
{
	const struct value value = reg(number);

	if (value.unknown) {
		fail(why);
	}
	return value.bits;
}

void move_stack(void)
{
	const uint32_t sp = known_reg(SP, "the stack pointer depends on data");

	lowest = sp < lowest ? sp : lowest;
}

void start_at(uint32_t entry, uint32_t stack_top)
{
	now.unknown = 0xffff & ~(1u << SP | 1u << LR);
	now.s_unknown = 0xffffffffu;
	now.flags_unknown = FLAGS;
	now.r[SP] = lowest = stack_top;
	now.r[LR] = RETURN | 1u;
	returns[0] = RETURN;
	now.pc = entry & ~1u;
}

void call(uint32_t target, uint32_t from)
{
	if (now.depth + 1u >= MAX_DEPTH) {
		fail("calls nest too deeply");
	}
	returns[++now.depth] = from;
	set_reg(LR, (struct value){from | 1u, false});
	now.pc = target & ~1u;
}

void jump(struct value to)
{
	if (to.unknown) {
		fail("a jump whose target depends on data");
	}
	to.bits &= ~1u;
	if (to.bits == returns[now.depth]) {
		now.depth--; /* below zero at the end of the walk */
	}
	now.pc = to.bits;
}

static uint32_t base_of(const struct op *op)
{
	return op->rn == PC ? 0u : now.r[op->rn];
}

/* The address of an access, and the base afterwards. Returns false if it is not known. */
static bool addressed(const struct op *op, uint32_t *address)
{
	struct value offset = {(uint32_t)op->imm, false};
	uint32_t moved;
	bool unknown = op->rn != PC && reg(op->rn).unknown;

	if (op->flags & F_REGISTER) {
		offset = reg(op->rm);
		offset.bits <<= op->amount;
		unknown |= offset.unknown;
	}
	moved = base_of(op) + offset.bits;
	*address = (op->flags & F_BEFORE) || !(op->flags & F_BACK) ? moved : base_of(op);
	if (op->flags & F_BACK) {
		set_reg(op->rn, (struct value){moved, unknown});
		if (op->rn == SP) {
			move_stack();
		}
	}
	return !unknown;
}

static void load_one(const struct op *op, unsigned to, uint32_t address, bool known)
{
	struct value value = {0, true};

	if (known) {
		value = load(address, op->width);
		if (op->flags & F_SIGNED && op->width == 1) {
			value.bits = (uint32_t)(int32_t)(int8_t)value.bits;
		} else if (op->flags & F_SIGNED && op->width == 2) {
			value.bits = (uint32_t)(int32_t)(int16_t)value.bits;
		}
	}
	if (to == PC) {
		jump(value);
	} else {
		set_reg(to, value);
	}
}

static void stored_anywhere(const struct op *op)
{
	static uint32_t last;

	if (last != op->address) {
		printf("anywhere %u\n", op->address);
		last = op->address;
	}
	store_anywhere();
}

static void access_list(const struct op *op)
{
	const bool loads = op->kind == K_LOAD_LIST;
	const uint32_t count = (uint32_t)__builtin_popcount((uint32_t)op->imm);
	const struct value base = reg(op->rn);
	uint32_t at = base.bits;
	struct value target = {0, false};

	if (base.unknown) {
		if (!loads) {
			stored_anywhere(op);
		}
		for (unsigned i = 0; i < 16; i++) {
			if (loads && (uint32_t)op->imm >> i & 1u) {
				set_reg(i, base);
			}
		}
		return;
	}
	at -= op->flags & F_BEFORE ? 4u * count : 0u; /* db */
	if (op->flags & F_BACK) {
		set_reg(op->rn, (struct value){op->flags & F_BEFORE ? at : at + 4u * count, false});
		if (op->rn == SP) {
			move_stack();
		}
	}
	for (unsigned i = 0; i < 16; i++) {
		if (!((uint32_t)op->imm >> i & 1u)) {
			continue;
		}
		if (!loads) {
			store(at, 4, i == op->rn ? base : reg(i));
		} else if (i == PC) {
			target = load(at, 4);
		} else {
			set_reg(i, load(at, 4));
		}
		at += 4;
	}
	if (loads && op->imm >> PC & 1) {
		jump(target);
	}
}

static void access_float(const struct op *op)
{
	const bool loads = op->kind == K_FLOAT_LOAD;
	uint32_t at;
	const bool known = addressed(op, &at);

	if (!known && !loads) {
		stored_anywhere(op);
	}
	for (unsigned i = op->rd; i < (unsigned)op->rd + op->width; i++, at += 4) {
		if (loads) {
			const struct value value = known ? load(at, 4) : (struct value){0, true};

			now.s[i] = value.unknown ? 0 : value.bits;
			now.s_unknown = (now.s_unknown & ~(1u << i)) | (uint32_t)value.unknown << i;
		} else if (known) {
			store(at, 4, (struct value){now.s[i], (now.s_unknown >> i & 1u) != 0u});
		}
	}
}

/* Bytes of a vector that take part: those that the loop's tail and the VPT block let pass. */
static uint32_t lanes_of(const struct op *op)
{
	uint32_t lanes = 0xffffu;

	if (now.tail != 0u && !reg(LR).unknown && now.r[LR] < now.tail) {
		lanes = (1u << (now.r[LR] * (16u / now.tail))) - 1u;
	}
	if ((op->flags & F_MASKED) && now.lanes_known) {
		lanes &= op->flags & F_OTHERWISE ? (uint16_t)~now.lanes : now.lanes;
	}
	return lanes;
}

/* Elements go to where the words of a vector say, from s register ``ra`` on. */
static void scatter(const struct op *op, uint32_t lanes)
{
	const struct value base = reg(op->rn);

	for (uint32_t i = 0; i < 4u; i++) {
		const uint32_t at = base.bits + now.s[op->ra + i];

		if ((lanes >> (4u * i) & 1u) == 0u) {
			continue;
		}
		if (base.unknown || (now.s_unknown >> (op->ra + i) & 1u) != 0u) {
			stored_anywhere(op);
			return;
		}
		for (uint32_t j = 0; j < op->width; j++) {
			store(at + j, 1, (struct value){0, true});
		}
	}
}

/* ``width``: bytes of an element in memory, ``amount``: in the register; ``extra``: vectors that
 * are interleaved, or 0 if elements are not side by side. */
static void store_vector(const struct op *op)
{
	uint32_t at, lanes = lanes_of(op);

	if (op->extra == 0u) {
		scatter(op, lanes);
		return;
	}
	if (!addressed(op, &at)) {
		stored_anywhere(op);
		return;
	}
	if (op->extra == 1u && op->width == op->amount && lanes == 0xffffu) {
		for (unsigned i = 0; i < 4u; i++) {
			const unsigned word = 4u * op->rd + i;

			store(at + 4u * i, 4,
			      (struct value){now.s[word], now.s_unknown >> word & 1u});
		}
		return;
	}
	if (op->extra > 1u) {
		for (uint32_t i = 0; i < 16u * op->extra; i++) {
			store(at + i, 1, (struct value){0, true});
		}
		return;
	}
	for (uint32_t i = 0; i < 16u / op->amount; i++, at += op->width) {
		for (uint32_t j = 0; j < op->width && (lanes >> (i * op->amount) & 1u); j++) {
			store(at + j, 1, (struct value){0, true});
		}
	}
}

static void load_vector(const struct op *op)
{
	uint32_t at;
	const bool known = addressed(op, &at);
	const bool whole = op->extra == 1u && op->width == op->amount && lanes_of(op) == 0xffffu;

	for (unsigned i = 0; i < 32; i++) {
		if (op->target >> i & 1u) {
			/* Compilers copy structs with vectors: words that are loaded as they are
			 * keep their values. */
			const struct value value = known && whole ? load(at + 4u * (i & 3u), 4)
								  : (struct value){0, true};

			now.s[i] = value.unknown ? 0 : value.bits;
			now.s_unknown = (now.s_unknown & ~(1u << i)) | (uint32_t)value.unknown << i;
		}
	}
}

static void move_floats(const struct op *op)
{
	for (unsigned i = 0; i < op->width; i++) {
		const unsigned core = i == 0 ? op->rn : op->rm;
		struct value value;

		if (op->kind == K_TO_FLOAT) {
			value = core == PC ? (struct value){(uint32_t)op->imm, false} : reg(core);
		} else {
			const unsigned from = op->kind == K_FROM_FLOAT ? op->rd + i : op->ra + i;

			value = (struct value){now.s[from], (now.s_unknown >> from & 1u) != 0u};
		}
		if (op->kind == K_FROM_FLOAT) {
			set_reg(core, value);
		} else {
			const unsigned to = op->kind == K_TO_FLOAT && i > 0 ? op->ra : op->rd + i;

			now.s[to] = value.unknown ? 0 : value.bits;
			now.s_unknown = (now.s_unknown & ~(1u << to)) | (uint32_t)value.unknown
										<< to;
		}
	}
}

void access_memory(const struct op *op)
{
	uint32_t at;
	bool known;

	switch (op->kind) {
	case K_LOAD:
		known = addressed(op, &at);
		load_one(op, op->rd, at, known);
		break;
	case K_STORE:
		at = op->rd;
		{
			const struct value value = reg(op->rd);

			if (addressed(op, &at)) {
				store(at, op->width, value);
			} else {
				stored_anywhere(op);
			}
		}
		break;
	case K_LOAD_TWO:
		known = addressed(op, &at);
		{
			const struct value first = known ? load(at, 4) : (struct value){0, true};
			const struct value second =
				known ? load(at + 4u, 4) : (struct value){0, true};

			set_reg(op->rd, first);
			set_reg(op->ra, second);
		}
		break;
	case K_STORE_TWO: {
		const struct value first = reg(op->rd), second = reg(op->ra);

		if (addressed(op, &at)) {
			store(at, 4, first);
			store(at + 4u, 4, second);
		} else {
			stored_anywhere(op);
		}
		break;
	}
	case K_LOAD_LIST:
	case K_STORE_LIST:
		access_list(op);
		break;
	case K_FLOAT_LOAD:
	case K_FLOAT_STORE:
		access_float(op);
		break;
	case K_FLOAT_MOVE:
	case K_TO_FLOAT:
	case K_FROM_FLOAT:
		move_floats(op);
		break;
	case K_VECTOR_LOAD:
		load_vector(op);
		break;
	case K_VECTOR_STORE:
		store_vector(op);
		break;
	default:
		fail("an operation that the walk does not know");
	}
}
