/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A thread in user mode runs the model in a slot. It can neither change the slot, nor what the
 * firmware knows about the model, nor run what it writes into the arena. */

#include <string.h>

#include <tinyml/claim.h>
#include <zephyr/app_memory/app_memdomain.h>
#include <zephyr/ztest.h>
#include <zephyr/ztest_error_hook.h>

#include "device.h"

#define STACK 2048

static K_APP_BMEM(tinyml_partition) bool was_user, was_right, went_on;

static K_THREAD_STACK_DEFINE(stack, STACK);
static struct k_thread thread;
static struct k_mem_domain domain;

static void run_model(void *unused, void *unused2, void *unused3)
{
	was_user = k_is_user_context();
	if (tinyml_claim(&tinyml_slot_model.model, K_FOREVER) == 0) {
		was_right = computes();
		tinyml_release(&tinyml_slot_model.model);
	}
	went_on = true;
}

static void write_to(void *place, void *unused, void *unused2)
{
	was_user = k_is_user_context();
	ztest_set_fault_valid(true);
	*(volatile uint8_t *)place = 0;
	went_on = true;
}

static void run_arena(void *unused, void *unused2, void *unused3)
{
	static const uint16_t thumb_return = 0x4770; /* bx lr */
	uint8_t *arena = tinyml_slot_model.arena;

	was_user = k_is_user_context();
	memcpy(arena, &thumb_return, sizeof(thumb_return));
	ztest_set_fault_valid(true);
	((void (*)(void))((uintptr_t)arena | 1u))();
	went_on = true;
}

static void in_a_thread(k_thread_entry_t entry, const void *argument, uint32_t options)
{
	was_user = false;
	was_right = false;
	went_on = false;
	k_thread_create(&thread, stack, STACK, entry, (void *)argument, NULL, NULL,
			K_PRIO_PREEMPT(1), options, K_FOREVER);
	k_mem_domain_add_thread(&domain, &thread);
	tinyml_grant(&tinyml_slot_model.model, &thread);
	k_thread_start(&thread);
	k_thread_join(&thread, K_FOREVER);
	zassert_equal(was_user, (options & K_USER) != 0);
}

static void *setup(void)
{
	struct k_mem_partition *parts[] = {&tinyml_partition, &tinyml_slot_partition};

	fresh_device();
	zassert_ok(bring(V1));
	zassert_ok(k_mem_domain_init(&domain, ARRAY_SIZE(parts), parts));
	return NULL;
}

ZTEST(tinyml_slots_user, test_runs)
{
	in_a_thread(run_model, NULL, K_USER);
	zassert_true(went_on && was_right);
}

ZTEST(tinyml_slots_user, test_cannot_write_the_slot)
{
	in_a_thread(write_to, tinyml_device_slots.region[0].memory, K_USER);
	zassert_false(went_on);
}

ZTEST(tinyml_slots_user, test_cannot_change_the_functions_that_are_called)
{
	in_a_thread(write_to, &tinyml_slot_model.run, K_USER);
	zassert_false(went_on);
}

ZTEST(tinyml_slots_user, test_cannot_run_the_arena)
{
	in_a_thread(run_arena, NULL, K_USER);
	zassert_false(went_on);
}

ZTEST(tinyml_slots_user, test_nobody_can_run_the_arena)
{
	in_a_thread(run_arena, NULL, 0);
	zassert_false(went_on);
}

ZTEST_SUITE(tinyml_slots_user, NULL, setup, NULL, NULL, NULL);
