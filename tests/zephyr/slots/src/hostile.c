/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What does not belong in a slot: refused for a reason of its own, with the model in use untouched.
 */

#include <string.h>

#include <zephyr/ztest.h>

#include "device.h"

static uint8_t copy[4096];
static uint32_t bytes;

/* Where things are in an image: <runtime/slot/format.h>. */
enum {
	PAYLOAD_BYTES = 12,
	INTERFACE = 32 + 6,
	RUN = 32 + 12,
	ARENA_BYTES = 32 + 24,
};

static void poke(uint32_t position, uint32_t value, size_t size)
{
	memcpy(copy + position, &value, size);
}

/* The checksum of whoever changed the image: behind header and payload, and two words. */
static void reseal(void)
{
	uint32_t payload, crc;

	memcpy(&payload, copy + PAYLOAD_BYTES, sizeof(payload));
	crc = tinyml_slot_crc32(0, copy, 32u + payload);
	memcpy(copy + 32u + payload + 8u, &crc, sizeof(crc));
}

static void take(enum pack pack, int slot)
{
	struct arriving image = image_of(pack, slot);

	bytes = image.bytes;
	memcpy(copy, image.content, bytes);
}

/* What the device says to the image in `copy`, cut after so many bytes. */
static int verdict(uint32_t length)
{
	struct tinyml_update update = {0};
	int error = tinyml_update_begin(&update, &tinyml_device_slots, length, false);

	error = error != 0 ? error : tinyml_update_write(&update, copy, length);
	return error != 0 ? error : tinyml_update_finish(&update);
}

static void *confirmed_model(void)
{
	fresh_device();
	zassert_ok(bring(V1));
	return NULL;
}

static void still_there(void *unused)
{
	ARG_UNUSED(unused);
	zassert_ok(start());
	zassert_equal(version(), 1);
	zassert_true(computes());
}

ZTEST(tinyml_slots_hostile, test_another_slots_address)
{
	take(V2, 0); /* slot 0 is in use: slot 1 is free */
	zassert_equal(verdict(bytes), TINYML_SLOT_ADDRESS);
}

ZTEST(tinyml_slots_hostile, test_another_core)
{
	take(OTHER_CORE, 1);
	/* native_sim accepts all, because it runs none */
	zassert_equal(verdict(bytes),
		      IS_ENABLED(CONFIG_ARCH_POSIX) ? 0 : TINYML_SLOT_CORE_TOO_SMALL);
	fresh_device();
	zassert_ok(bring(V1));
}

ZTEST(tinyml_slots_hostile, test_truncated)
{
	uint32_t payload;

	take(V2, 1);
	memcpy(&payload, copy + PAYLOAD_BYTES, sizeof(payload));
	for (uint32_t length = 256; length < 32u + payload; length += 97) {
		zassert_equal(verdict(length), TINYML_SLOT_BOUNDS, "%u bytes", length);
	}
}

ZTEST(tinyml_slots_hostile, test_damaged)
{
	take(V2, 1);
	copy[700] ^= 1;
	zassert_equal(verdict(bytes), TINYML_SLOT_DAMAGED);
}

ZTEST(tinyml_slots_hostile, test_another_interface)
{
	take(V2, 1);
	poke(INTERFACE, TINYML_SLOT_INTERFACE + 1, 2);
	reseal();
	zassert_equal(verdict(bytes), TINYML_SLOT_ABI);
}

ZTEST(tinyml_slots_hostile, test_too_large_an_arena)
{
	take(V2, 1);
	poke(ARENA_BYTES, CONFIG_TINYML_SLOTS_ARENA_BYTES + 1, 4);
	reseal();
	zassert_equal(verdict(bytes), TINYML_SLOT_ARENA);
}

ZTEST(tinyml_slots_hostile, test_pointer_outside)
{
	take(V2, 1);
	poke(RUN, 0x10001, 4);
	reseal();
	zassert_equal(verdict(bytes), TINYML_SLOT_POINTER);
}

ZTEST_SUITE(tinyml_slots_hostile, NULL, confirmed_model, NULL, still_there, NULL);
