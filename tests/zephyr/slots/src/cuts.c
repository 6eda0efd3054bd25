/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Power fails at every single write and erase of an update, on Zephyr's flash simulator: from a
 * certain call on, writes and erases have no effect. So it does not matter who makes them, the
 * flash map or stream flash. */

#include <string.h>

#include <zephyr/stats/stats.h>
#include <zephyr/ztest.h>

#include "device.h"

#define EVERY_BYTE  UINT32_MAX
#define MOST_WRITES 1024

static struct tinyml_slots *const slots = &tinyml_device_slots;

/* Numbers of the simulator. */
static uint32_t *write_calls, *erase_calls, *last_write, *last_erase, *last_bytes;

/* The operations of an update, in order: how many erases come before each write. */
static uint32_t erases_before[MOST_WRITES], writes, erases;
static uint32_t first_write, first_erase;

struct wanted {
	const char *name;
	uint32_t *number;
};

static int find_number(struct stats_hdr *group, void *found, const char *name, uint16_t offset)
{
	struct wanted *wanted = found;

	if (strcmp(name, wanted->name) == 0) {
		wanted->number = (uint32_t *)((uint8_t *)group + offset);
	}
	return 0;
}

static uint32_t *simulator(const char *group, const char *name)
{
	struct wanted wanted = {name, NULL};

	stats_walk(stats_group_find(group), find_number, &wanted);
	zassert_not_null(wanted.number);
	return wanted.number;
}

static void start_counting(void)
{
	first_write = *write_calls;
	first_erase = *erase_calls;
}

static void note_write(void)
{
	zassert_true(reports <= MOST_WRITES);
	erases_before[reports - 1u] = *erase_calls - first_erase;
}

/* Make an update without failure, to know its operations. */
static void rehearse(enum pack pack)
{
	start_counting();
	watch = note_write;
	(void)bring(pack);
	watch = NULL;
	writes = *write_calls - first_write;
	erases = *erase_calls - first_erase;
	zassert_true(writes > reports && writes <= MOST_WRITES, "marks are written, too");
	for (uint32_t i = reports; i < writes; i++) {
		erases_before[i] = erases; /* marks come last */
	}
}

/* The last erase that has an effect, then the last write and how much of it. */
static void fail_after(uint32_t erased, uint32_t written, uint32_t bytes)
{
	start_counting();
	*last_erase = first_erase + erased + 1u;
	*last_write = first_write + written + 1u;
	*last_bytes = bytes;
}

static void fail_at_write(uint32_t number, uint32_t bytes)
{
	fail_after(erases_before[number], number, bytes);
}

static void fail_at_erase(uint32_t number, bool done)
{
	uint32_t written = 0;

	while (written < writes && erases_before[written] <= number) {
		written++;
	}
	fail_after(number + (done ? 1u : 0u), written, 0);
}

static void power_on(void)
{
	*last_erase = 0;
	*last_write = 0;
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
	zassert_ok(start());
}

/* After a power failure there is a model, and the update can be made. */
static void demand_a_model(unsigned int from, enum pack to)
{
	power_on();
	zassert_ok(start(), "no model");
	zassert_true(version() == from || version() == to + 1u, "version %u", version());
	zassert_true(computes());
	zassert_ok(tinyml_slots_confirm(slots));
	zassert_true(version() == to + 1u || bring(to) == 0, "no update");
	zassert_ok(start());
	zassert_equal(version(), to + 1u);
	zassert_false(slots->on_trial);
}

/* A device with version `from` gets `to`, with `arriving` before if that fails its test. */
static void fail_everywhere(unsigned int from, enum pack arriving, enum pack to)
{
	const struct tinyml_flash *flash = slots->region[0].flash;
	uint32_t unit = flash->write_bytes;
	uint32_t most = flash->stream != NULL ? flash->stream->bytes : MAX(unit, 16u);
	const uint32_t tears[] = {
		0, unit / 2u, unit, unit + unit / 2u, most / 2u + unit / 2u, EVERY_BYTE};
	int failures = 0, resumed = 0;

	keep();
	rehearse(arriving);
	for (uint32_t number = 0; number < 2u * erases; number++) {
		restore();
		fail_at_erase(number / 2u, number % 2u != 0u);
		(void)bring(arriving);
		demand_a_model(from, to);
		failures++;
	}
	for (int i = 0; i < ARRAY_SIZE(tears); i++) {
		if ((tears[i] >= most && tears[i] != EVERY_BYTE) ||
		    (i > 0 && tears[i] <= tears[i - 1])) {
			continue; /* the same as another */
		}
		for (uint32_t number = 0; number < writes; number++) {
			restore();
			fail_at_write(number, tears[i]);
			(void)bring(arriving);
			resumed_at = 0;
			demand_a_model(from, to);
			resumed += resumed_at > 0u ? 1 : 0;
			failures++;
		}
	}
	zassert_true(resumed > 0 || arriving != to, "no update was resumed");
	TC_PRINT("power failures: %d (%u erases, %u writes), updates resumed: %d\n", failures,
		 erases, writes, resumed);
}

static void *setup(void)
{
	write_calls = simulator("flash_sim_stats", "flash_write_calls");
	erase_calls = simulator("flash_sim_stats", "flash_erase_calls");
	last_write = simulator("flash_sim_thresholds", "max_write_calls");
	last_erase = simulator("flash_sim_thresholds", "max_erase_calls");
	last_bytes = simulator("flash_sim_thresholds", "max_len");
	return NULL;
}

static void before(void *unused)
{
	ARG_UNUSED(unused);
	power_on();
	fresh_device();
	zassert_ok(bring(V1));
}

static void after(void *unused)
{
	ARG_UNUSED(unused);
	power_on();
}

ZTEST(tinyml_slots_cuts, test_next_to_an_empty_slot)
{
	fail_everywhere(1, V2, V2);
}

ZTEST(tinyml_slots_cuts, test_over_an_older_model)
{
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
