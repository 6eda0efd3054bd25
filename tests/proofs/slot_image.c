/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * deep: yes
 * proves: slot/slot.c
 * shapes: slots of 176 bytes and less with any content, opened without signatures
 * variants: BYTES=176 --slice-formula
 * unwind: 30
 */

#include <tinyml/slot.h>

#include "proof.h"

static union {
	uint8_t bytes[BYTES];
	uint32_t words[BYTES / 4];
} memory;

/* The checks that follow do not rely on what these compute. */
uint32_t tinyml_slot_crc32(uint32_t crc, const void *data, uint32_t bytes)
{
	(void)crc;
	__CPROVER_assert(__CPROVER_r_ok(data, bytes), "bytes that are there");
	return nondet_unsigned();
}

void *memchr(const void *text, int byte, size_t bytes)
{
	const size_t at = nondet_unsigned();

	(void)byte;
	__CPROVER_assert(__CPROVER_r_ok(text, bytes), "text that is there");
	return at < bytes ? (char *)(uintptr_t)text + at : NULL;
}

void tinyml_slot_sync(const void *start, uint32_t bytes)
{
	__CPROVER_assert(__CPROVER_r_ok(start, bytes), "a slot that is there");
}

static int call(struct tinyml_slot *slot, tinyml_slot_entry entry)
{
	(void)slot;
	(void)entry;
	return nondet_int();
}

int main(void)
{
	static uint8_t arena[8], state[4];
	static struct tinyml_slot slot = {
		.arena = arena,
		.state = state,
		.arena_bytes = sizeof(arena),
		.state_bytes = sizeof(state),
		.call = call,
	};
	const struct tinyml_slot_region region = {
		.memory = &memory,
		.address = nondet_unsigned(),
		.bytes = (uint32_t)between(0, BYTES),
	};

	__CPROVER_havoc_object(&memory);
	if (tinyml_slot_open(&slot, &region, NULL) == 0) {
		for (int i = 0; i < slot.model.input_count + slot.model.output_count; i++) {
			const struct tinyml_tensor *tensor = &slot.tensors[i];

			__CPROVER_assert(__CPROVER_w_ok(tensor->data, tensor->bytes),
					 "tensors are in the arena or in the state");
			__CPROVER_assert(__CPROVER_r_ok(tensor->shape, 4u * tensor->rank),
					 "shapes are in the slot");
		}
		(void)tinyml_slot_run(&slot);
		(void)tinyml_slot_self_test(&slot);
	}
	return 0;
}
