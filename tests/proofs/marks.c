/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * deep: yes
 * proves: slot/marks.c, slot/flash.c
 * shapes: regions of 256 bytes of any content, written in 1 to 16 bytes, erased in 64, 128 or 256
 * unwind: 17
 */

#include <string.h>

#include "proof.h"
#include "slot/flash.h"
#include "slot/marks.h"

#define BYTES 256u

static uint8_t memory[BYTES];

/* Any write can fail, at any byte. */
static int write_flash(void *context, uint32_t offset, const void *data, uint32_t bytes)
{
	(void)context;
	__CPROVER_assert(offset <= BYTES && bytes <= BYTES - offset, "inside the region");
	__CPROVER_assert(__CPROVER_r_ok(data, bytes), "bytes that are there");
	__CPROVER_havoc_slice(&memory[offset], bytes);
	return nondet_int();
}

static int erase_flash(void *context, uint32_t offset, uint32_t bytes)
{
	(void)context;
	__CPROVER_assert(offset <= BYTES && bytes <= BYTES - offset, "inside the region");
	__CPROVER_havoc_slice(&memory[offset], bytes);
	return nondet_int();
}

int main(void)
{
	struct tinyml_flash flash = {
		.write = write_flash,
		.erase = erase_flash,
		.erase_bytes = 64u << (nondet_unsigned() % 3u),
		.write_bytes = 1u << (nondet_unsigned() % 5u),
	};
	const struct tinyml_slot_region region = {
		.memory = memory,
		.bytes = BYTES,
		.flash = &flash,
	};

	__CPROVER_havoc_object(memory);
	if (flash_is_sane(&region)) {
		__CPROVER_assert(marks_room(&region) < BYTES, "marks are not part of the image");
		if (set_mark(&region, MARK_TRIED, 1) == 0) {
			__CPROVER_assert(mark_is_set(&region, MARK_TRIED),
					 "set marks are read back");
		}
	}
	return 0;
}
