/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Decoded instructions, as operations.py writes them, and the kinds of them.
 * tests/host/test_bounds.py compares the order of the kinds with that of operations.py. */

#ifndef TINYML_BOUNDS_OPS_H_
#define TINYML_BOUNDS_OPS_H_

#include <stdint.h>

enum kind {
	K_NOP,
	K_MOV, /* arithmetic and logic: rd = rn op (rm shifted, or imm) */
	K_MVN,
	K_ADD,
	K_ADC,
	K_SUB,
	K_SBC,
	K_RSB,
	K_AND,
	K_ORR,
	K_EOR,
	K_BIC,
	K_ORN,
	K_CMP,
	K_CMN,
	K_TST,
	K_TEQ,
	K_SHIFT, /* rd = rn shifted by rm or imm */
	K_MUL,
	K_MLA,
	K_MLS,
	K_LONG,   /* rd, ra = rn * rm; flags: signed, accumulate */
	K_DIV,    /* flags: signed */
	K_EXTEND, /* rd = (rn +) 8 or 16 bits of rm, rotated */
	K_FIELD,  /* ubfx, sbfx, bfi, bfc */
	K_BITS,   /* clz, rbit, rev, rev16, revsh */
	K_MOVT,
	K_HALVES, /* smulxy, smlaxy */
	K_SATURATE,
	K_SELECT, /* csel and its relatives */
	K_OPAQUE, /* the registers of imm, and the words of target, become unknown */
	K_LOAD,
	K_STORE,
	K_LOAD_TWO,
	K_STORE_TWO,
	K_LOAD_LIST,
	K_STORE_LIST,
	K_BRANCH,
	K_BRANCH_ZERO,
	K_CALL,
	K_BRANCH_TO, /* bx, mov pc */
	K_CALL_TO,
	K_TABLE,
	K_LOOP_START, /* dls, wls and their forms for tails */
	K_LOOP_END,
	K_FLOAT_LOAD, /* words to s registers; flags: list */
	K_FLOAT_STORE,
	K_FLOAT_MOVE, /* between s registers */
	K_TO_FLOAT,   /* core to s registers */
	K_FROM_FLOAT,
	K_FLOAT_FLAGS, /* vmrs */
	K_VECTOR_LOAD,
	K_VECTOR_STORE,
	K_VECTOR_TAIL, /* vctp */
	K_PREDICATE,   /* vcmp, vpt: lanes by data */
};

enum {
	F_SETS = 1,     /* sets flags */
	F_REGISTER = 2, /* the operand is rm */
	F_SIGNED = 4,
	F_ADDS = 8,       /* accumulates, or an offset that is subtracted */
	F_BEFORE = 16,    /* the address moves before the access */
	F_BACK = 32,      /* the base is written back */
	F_OTHERWISE = 64, /* cbnz; lanes of an else; the second form of a kind */
	F_MASKED = 128,   /* in a VPT block */
};

enum {
	ROLE_CALL = 1,   /* a function that is a part begins */
	ROLE_TURN = 2,   /* a turn of a loop begins */
	ROLE_STATES = 3, /* the first operand of this function is the most runs of the part */
};

struct op {
	uint32_t address;
	uint8_t size, kind, cond, flags;
	uint8_t rd, rn, rm, ra;
	uint8_t shift, amount, width, extra;
	int32_t imm;
	uint32_t target;
	int32_t merge;  /* the operation at which both ways of a branch meet; -1: at the return */
	uint32_t again; /* the start of the loop around a branch, where its ways may meet earlier;
			   or 0 */
	uint16_t cycles, taken;
	uint16_t layer, limit;
	uint16_t part; /* of which the kernel says how often it runs; 0: of none */
	uint16_t role; /* ROLE_... */
};

#endif /* TINYML_BOUNDS_OPS_H_ */
