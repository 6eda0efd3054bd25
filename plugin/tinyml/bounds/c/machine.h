/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The state of a core of which some bits are known, and its memory. */

#ifndef TINYML_BOUNDS_MACHINE_H_
#define TINYML_BOUNDS_MACHINE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SP 13
#define LR 14
#define PC 15

enum { FLAG_V = 1, FLAG_C = 2, FLAG_Z = 4, FLAG_N = 8, FLAGS = 15 };
enum force { FREE, TAKE, PASS };

#define MAX_PARTS  16u
#define MAX_PASSES 6u

/* A part of a kernel that is running: see parts.h. */
struct pass {
	uint32_t part, depth;
	bool turn; /* of a loop, not a call of a function */
	uint64_t most, cycles;
};

/* Unknown registers and flags hold zeros, so that equal states are equal bytes. */
struct state {
	uint32_t r[16];
	uint32_t s[32];
	uint32_t s_unknown;
	uint16_t unknown;
	uint16_t lanes; /* bytes of a vector that VPR lets pass */
	uint8_t flags, flags_unknown;
	uint8_t lanes_known;
	uint8_t tail; /* lanes of one turn of a loop with a tail; 0: no such loop */
	uint32_t pc, depth;
	uint16_t way;  /* of a branch by a table */
	uint8_t force; /* enum force: which way a branch by data goes now */
	uint8_t passes;
	struct pass pass[MAX_PASSES];  /* the innermost is the last */
	uint32_t stated, stated_depth; /* parts with a total, and the depth of the kernel */
};

struct value {
	uint32_t bits;
	bool unknown;
};

struct segment {
	uint32_t base, bytes, writable, is_stack;
	uint8_t *content, *unknown, *written;
};

extern struct state now;

_Noreturn void fail(const char *why);

/* Memory. Addresses are known. */
void add_segment(uint32_t base, uint32_t bytes, uint32_t writable, uint32_t is_stack,
		 const uint8_t *content, const uint8_t *unknown);
struct value load(uint32_t address, unsigned bytes);
void store(uint32_t address, unsigned bytes, struct value value);
void store_anywhere(void); /* to an address that is not known */
uint32_t unaligned_accesses(void);
void print_written(void);

/* The log of what was overwritten while a branch by data is open. */
struct change {
	struct segment *segment;
	uint32_t at; /* offset of a word */
	uint32_t content, unknown;
};

void keep_log(bool keep);
size_t log_length(void);
/* Undo all changes from ``from`` on; ``*kept`` gets the values that they had led to. */
size_t undo(size_t from, struct change **kept);
/* Make changes again that were undone. */
void redo(const struct change *kept, size_t count);
/* Memory is the outcome of one way: join it with that of the other way, whose changes are given. */
void join_memory(size_t from, struct change *other, size_t count);

/* Registers. */
static inline struct value reg(unsigned number)
{
	return (struct value){now.r[number], (now.unknown >> number & 1u) != 0u};
}

static inline void set_reg(unsigned number, struct value value)
{
	now.r[number] = value.unknown ? 0 : value.bits;
	now.unknown =
		(uint16_t)((now.unknown & ~(1u << number)) | (unsigned)value.unknown << number);
}

static inline struct value flag(uint8_t which)
{
	return (struct value){(now.flags & which) != 0, (now.flags_unknown & which) != 0};
}

static inline void set_flag(uint8_t which, struct value value)
{
	now.flags = (uint8_t)(now.flags & ~which);
	now.flags_unknown = (uint8_t)(now.flags_unknown & ~which);
	if (value.unknown) {
		now.flags_unknown |= which;
	} else if (value.bits) {
		now.flags |= which;
	}
}

/* 1, 0, or -1 if it is not known. */
int condition(unsigned cond);
/* On this way, a condition by data holds or not: what it says about the flags is known. */
void assume(unsigned cond, bool holds);

#endif /* TINYML_BOUNDS_MACHINE_H_ */
