/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Power fails at every single write and erase of an update, on Zephyr's flash simulator. */

#include <string.h>

#include <zephyr/stats/stats.h>
#include <zephyr/ztest.h>

#include "device.h"

enum tear { NOTHING_DONE, HALF_DONE, ALL_DONE, TEARS };

static struct tinyml_slots *const slots = &tinyml_device_slots;
static const struct tinyml_flash *real[2];
static struct tinyml_flash failing[2];

static int operation, cut_at;
static bool power_is_off;
static enum tear tear;

static int find_number(struct stats_hdr *group, void *found, const char *name, uint16_t offset)
{
	struct {
		const char *name;
		uint32_t *number;
	} *wanted = found;

	if (strcmp(name, wanted->name) == 0) {
		wanted->number = (uint32_t *)((uint8_t *)group + offset);
	}
	return 0;
}

/* A number of the simulator's, by its name. */
static uint32_t *simulator(const char *group, const char *name)
{
	struct {
		const char *name;
		uint32_t *number;
	} wanted = {name, NULL};

	stats_walk(stats_group_find(group), find_number, &wanted);
	zassert_not_null(wanted.number);
	return wanted.number;
}

static bool fails_now(void)
{
	power_is_off = ++operation == cut_at;
	return power_is_off;
}

static int failing_erase(void *context, uint32_t offset, uint32_t bytes)
{
	const struct tinyml_flash *flash = context;

	if (power_is_off || (fails_now() && tear != ALL_DONE)) {
		return -EIO;
	}
	return flash->erase(flash->context, offset, bytes) != 0 || power_is_off ? -EIO : 0;
}

static int failing_write(void *context, uint32_t offset, const void *data, uint32_t bytes)
{
	const struct tinyml_flash *flash = context;
	int error;

	if (power_is_off || (fails_now() && tear == NOTHING_DONE)) {
		return -EIO;
	}
	if (power_is_off && tear == HALF_DONE) {
		*simulator("flash_sim_thresholds", "max_len") = bytes / 2u;
		*simulator("flash_sim_thresholds", "max_write_calls") =
			*simulator("flash_sim_stats", "flash_write_calls") + 1u;
	}
	error = flash->write(flash->context, offset, data, bytes);
	*simulator("flash_sim_thresholds", "max_write_calls") = 0;
	return error != 0 || power_is_off ? -EIO : 0;
}

/* The flash as it was before the update. */
static uint8_t kept[2][4096];

static void keep(void)
{
	for (int i = 0; i < 2; i++) {
		zassert_equal(slots->region[i].bytes, sizeof(kept[i]));
		memcpy(kept[i], slots->region[i].memory, sizeof(kept[i]));
	}
}

static void restore(void)
{
	for (int i = 0; i < 2; i++) { /* the simulator's memory, which is RAM */
		memcpy((void *)slots->region[i].memory, kept[i], sizeof(kept[i]));
	}
	power_is_off = false;
	operation = 0;
}

static int restart(void)
{
	power_is_off = false;
	cut_at = 0;
	return start();
}

/* A device with version `from` gets `to`, with `arriving` before if that fails its test. */
static void fail_everywhere(unsigned int from, enum pack arriving, enum pack to)
{
	int failures = 0;

	keep();
	for (tear = 0; tear < TEARS; tear++) {
		bool finished = false;

		for (int at = 1; !finished; at++) {
			restore();
			zassert_ok(start());
			operation = 0;
			cut_at = at;
			(void)bring(arriving);
			finished = !power_is_off;
			failures += finished ? 0 : 1;

			zassert_ok(restart(), "no model after operation %d", at);
			zassert_true(version() == from || version() == to + 1u,
				     "version %u after operation %d", version(), at);
			zassert_true(computes());
			zassert_ok(tinyml_slots_confirm(slots));
			zassert_true(version() == to + 1u || bring(to) == 0,
				     "no update after operation %d", at);
			zassert_ok(restart());
			zassert_equal(version(), to + 1u);
			zassert_false(slots->on_trial);
		}
	}
	zassert_true(failures > TEARS * image_of(arriving, 0).bytes / real[0]->write_bytes);
	TC_PRINT("power failures: %d\n", failures);
}

static void *setup(void)
{
	for (int i = 0; i < 2; i++) {
		real[i] = slots->region[i].flash;
		failing[i] = *real[i];
		failing[i].erase = failing_erase;
		failing[i].write = failing_write;
		failing[i].context = (void *)real[i];
	}
	return NULL;
}

static void before(void *unused)
{
	ARG_UNUSED(unused);
	fresh_device();
	zassert_ok(bring(V1));
	for (int i = 0; i < 2; i++) {
		slots->region[i].flash = &failing[i];
	}
}

static void after(void *unused)
{
	ARG_UNUSED(unused);
	for (int i = 0; i < 2; i++) {
		slots->region[i].flash = real[i];
	}
}

ZTEST(tinyml_slots_cuts, test_next_to_an_empty_slot)
{
	fail_everywhere(1, V2, V2);
}

ZTEST(tinyml_slots_cuts, test_over_an_older_model)
{
	cut_at = 0;
	zassert_ok(bring(V2));
	fail_everywhere(2, V3, V3);
}

ZTEST(tinyml_slots_cuts, test_a_model_that_fails_its_test)
{
	if (IS_ENABLED(CONFIG_ARCH_POSIX)) {
		ztest_test_skip(); /* nothing in a slot can run here */
	}
	fail_everywhere(1, BAD, V2);
}

ZTEST_SUITE(tinyml_slots_cuts, NULL, setup, before, after, NULL);
