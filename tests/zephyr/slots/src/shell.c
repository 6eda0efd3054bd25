/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* `tinyml slot …`: what there is, and what becomes of a model that has arrived. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <zephyr/shell/shell.h>
#include <zephyr/shell/shell_dummy.h>
#include <zephyr/ztest.h>

#include "device.h"

static void expect(const char *command, int wanted, const char *text, const char *absent)
{
	const struct shell *sh = shell_backend_dummy_get_ptr();
	const char *output;
	size_t length;

	shell_backend_dummy_clear_output(sh);
	zassert_equal(shell_execute_cmd(sh, command), wanted, "%s", command);
	output = shell_backend_dummy_get_output(sh, &length);
	zassert_not_null(strstr(output, text), "%s: expected \"%s\" in:\n%s", command, text,
			 output);
	zassert_true(absent == NULL || strstr(output, absent) == NULL,
		     "%s: unexpected \"%s\" in:\n%s", command, absent, output);
}

static void *setup(void)
{
	WAIT_FOR(shell_ready(shell_backend_dummy_get_ptr()), 1000000, k_msleep(1));
	return NULL;
}

static void before(void *unused)
{
	ARG_UNUSED(unused);
	fresh_device();
}

ZTEST(tinyml_slots_shell, test_from_nothing_to_a_confirmed_model)
{
	char room[48];

	snprintf(room, sizeof(room), "free: %u bytes at 0x%x",
		 (unsigned int)tinyml_device_slots.region[0].bytes,
		 (unsigned int)tinyml_device_slots.region[0].address);
	expect("tinyml slot info", 0, "no model", NULL);
	expect("tinyml slot info", 0, room, NULL);
	expect("tinyml slot open", -EINVAL, tinyml_slot_error_text(TINYML_SLOT_NONE), "free:");
	zassert_ok(send(V1, EVERYTHING));
	expect("tinyml slot open", 0, " 1.0.0, on trial", "no model");
	expect("tinyml slot confirm", 0, " 1.0.0", "on trial");
	expect("tinyml slot info", 0, " 1.0.0", room);
}

ZTEST(tinyml_slots_shell, test_a_rejected_model)
{
	zassert_ok(bring(V1));
	zassert_ok(send(V2, EVERYTHING));
	expect("tinyml slot open", 0, " 2.0.0, on trial", NULL);
	zassert_equal(shell_execute_cmd(shell_backend_dummy_get_ptr(), "tinyml slot reject"), 0);
	expect("tinyml slot open", 0, " 1.0.0", "on trial");
}

ZTEST(tinyml_slots_shell, test_an_unknown_command)
{
	expect("tinyml slot burn", -EINVAL, tinyml_slot_error_text(TINYML_SLOT_ORDER), NULL);
}

ZTEST_SUITE(tinyml_slots_shell, NULL, setup, before, NULL, NULL);
