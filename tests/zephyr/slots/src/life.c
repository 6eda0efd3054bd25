/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What becomes of models: received, tried, kept, replaced, given up. */

#include <zephyr/ztest.h>

#include "device.h"

static void before(void *unused)
{
	ARG_UNUSED(unused);
	fresh_device();
}

ZTEST(tinyml_slots, test_two_versions)
{
	const struct tinyml_flash *flash = tinyml_device_slots.region[0].flash;
	uint32_t unit = flash->stream != NULL ? flash->stream->bytes : flash->write_bytes;

	zassert_equal(flash->stream != NULL, IS_ENABLED(CONFIG_TINYML_SLOTS_STREAM_FLASH));
	zassert_equal(version(), 0);
	zassert_equal(tinyml_slot_model.model.run(), TINYML_SLOT_NONE);
	zassert_ok(send(V1, EVERYTHING));
	zassert_equal(reports, DIV_ROUND_UP(image_of(V1, 0).bytes, unit), "one for each write");
	zassert_equal(version(), 0, "not before it is opened");
	zassert_ok(start());
	zassert_equal(version(), 1);
	zassert_true(tinyml_device_slots.on_trial);
	zassert_ok(tinyml_slots_confirm(&tinyml_device_slots));
	zassert_true(computes());
	zassert_ok(bring(V2));
	zassert_ok(start());
	zassert_equal(version(), 2);
	zassert_true(computes());
}

ZTEST(tinyml_slots, test_no_way_back_to_old_versions)
{
	zassert_ok(bring(V2));
	zassert_equal(send(V1, EVERYTHING), TINYML_SLOT_VERSION);
	zassert_equal(send(V2, EVERYTHING), TINYML_SLOT_VERSION);
	zassert_ok(start());
	zassert_equal(version(), 2);
}

ZTEST(tinyml_slots, test_an_update_is_resumed)
{
	uint32_t sector = tinyml_device_slots.region[0].flash->erase_bytes;

	zassert_ok(bring(V1));
	zassert_ok(send(V2, sector + 200u));
	zassert_ok(start());
	zassert_equal(version(), 1);
	zassert_ok(send(V2, EVERYTHING));
	zassert_equal(resumed_at, sector, "the sector that was not finished comes again");
	zassert_ok(start());
	zassert_equal(version(), 2);
	/* What is there of another image is of no use. */
	zassert_ok(tinyml_slots_confirm(&tinyml_device_slots));
	zassert_ok(send(BAD, sector + 200u));
	zassert_ok(send(V3, EVERYTHING));
	zassert_equal(resumed_at, 0);
}

ZTEST(tinyml_slots, test_a_failed_self_test_goes_back)
{
	if (IS_ENABLED(CONFIG_ARCH_POSIX)) {
		ztest_test_skip(); /* nothing in a slot can run here */
	}
	zassert_ok(bring(V1));
	zassert_ok(send(BAD, EVERYTHING), "nothing is wrong with it but its results");
	zassert_ok(start());
	zassert_equal(version(), 1);
	zassert_false(tinyml_device_slots.on_trial);
	zassert_true(computes());
}

ZTEST(tinyml_slots, test_what_nobody_confirms_goes_back)
{
	zassert_ok(bring(V1));
	zassert_ok(send(V2, EVERYTHING));
	for (int i = 0; i < TINYML_SLOT_TRIALS; i++) {
		zassert_ok(start());
		zassert_equal(version(), 2);
		zassert_equal(send(V3, EVERYTHING), TINYML_SLOT_BUSY);
	}
	zassert_ok(start());
	zassert_equal(version(), 1);
}

ZTEST(tinyml_slots, test_what_the_application_rejects_goes_back)
{
	zassert_ok(bring(V1));
	zassert_ok(send(V2, EVERYTHING));
	zassert_ok(start());
	zassert_ok(tinyml_slots_reject(&tinyml_device_slots));
	zassert_ok(start());
	zassert_equal(version(), 1);
}

ZTEST_SUITE(tinyml_slots, NULL, NULL, before, NULL, NULL);
