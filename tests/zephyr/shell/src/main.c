/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Two models that nothing calls: the registry brings them into the image, the shell runs them. */

#include <stdio.h>
#include <string.h>

#include <digits.h>
#include <second.h>
#include <tinyml/claim.h>
#include <tinyml/registry.h>
#include <zephyr/shell/shell.h>
#include <zephyr/shell/shell_dummy.h>
#include <zephyr/ztest.h>

static const char *output_of(const char *command, int wanted)
{
	const struct shell *sh = shell_backend_dummy_get_ptr();
	size_t length;

	shell_backend_dummy_clear_output(sh);
	zassert_equal(shell_execute_cmd(sh, command), wanted, "%s", command);
	return shell_backend_dummy_get_output(sh, &length);
}

static void expect(const char *command, int wanted, const char *text)
{
	const char *output = output_of(command, wanted);

	zassert_not_null(strstr(output, text), "%s: expected \"%s\" in:\n%s", command, text,
			 output);
}

static void *setup(void)
{
	WAIT_FOR(shell_ready(shell_backend_dummy_get_ptr()), 1000000, k_msleep(1));
	return NULL;
}

ZTEST(tinyml_shell, test_registry)
{
	size_t count = 0;

	TINYML_FOREACH_MODEL(entry)
	{
		count++;
	}
	zassert_equal(count, 2);
	zassert_equal_ptr(tinyml_find("digits"), &digits_model);
	zassert_equal_ptr(tinyml_find("second"), &second_model);
	zassert_is_null(tinyml_find("digit"));
}

ZTEST(tinyml_shell, test_list)
{
	char line[80];

	snprintf(line, sizeof(line), "digits: arena %u bytes, 1 inputs, 1 outputs",
		 DIGITS_ARENA_BYTES);
	expect("tinyml list", 0, line);
	expect("tinyml list", 0, "second: arena ");
}

ZTEST(tinyml_shell, test_info)
{
	expect("tinyml info digits", 0, "input image: 1x1x8x8 float32, 256 bytes");
	expect("tinyml info digits", 0, "output logits: 1x10 float32, 40 bytes");
	expect("tinyml info digits", 0, "SHA-256 ");
}

ZTEST(tinyml_shell, test_run)
{
	char values[160] = "logits:";
	const float *logits;

	memset(digits_input(), 0, DIGITS_INPUT_BYTES);
	digits_run();
	logits = digits_output();
	for (size_t i = 0; i < 8; i++) {
		int32_t millionths = (int32_t)(logits[i] * 1e6f + (logits[i] < 0 ? -0.5f : 0.5f));
		int32_t size = millionths < 0 ? -millionths : millionths;
		size_t at = strlen(values);

		/* Float arithmetic here and double there may differ in the last digit: leave it
		 * out. */
		snprintf(&values[at], sizeof(values) - at, " %s%d.%03d", millionths < 0 ? "-" : "",
			 (int)(size / 1000000), (int)(size % 1000000 / 1000));
		memset(digits_input(), 0, DIGITS_INPUT_BYTES);
		const char *output = output_of("tinyml run digits", 0);

		zassert_not_null(strstr(output, &values[at]), "no%s in:\n%s", &values[at], output);
	}
	expect("tinyml run digits", 0, "digits: ");
	expect("tinyml run digits", 0, " ...");
}

ZTEST(tinyml_shell, test_profile)
{
	expect("tinyml profile digits", 0, "layer 0 quantize1: ");
	expect("tinyml profile digits", 0, " cycles, ");
	expect("tinyml profile digits", 0, "digits: ");
	expect("tinyml profile digits", 0, "an emulated clock"); /* of every board here */
	expect("tinyml run digits", 0, "an emulated clock");
}

static K_SEM_DEFINE(done, 0, 1);

static void hold_digits(void *unused, void *unused2, void *unused3)
{
	ARG_UNUSED(unused);
	ARG_UNUSED(unused2);
	ARG_UNUSED(unused3);
	tinyml_claim(&digits_model, K_FOREVER);
	k_sem_take(&done, K_FOREVER);
	tinyml_release(&digits_model);
}

static K_THREAD_STACK_DEFINE(holder_stack, 1024);

ZTEST(tinyml_shell, test_model_in_use)
{
	static struct k_thread holder;

	k_thread_create(&holder, holder_stack, K_THREAD_STACK_SIZEOF(holder_stack), hold_digits,
			NULL, NULL, NULL, K_HIGHEST_THREAD_PRIO, 0, K_NO_WAIT);
	k_msleep(1); /* tests are not preempted */
	expect("tinyml run digits", -EBUSY, "digits is in use by another thread");
	expect("tinyml run second", 0, "second: ");
	k_sem_give(&done);
	k_thread_join(&holder, K_FOREVER);
	expect("tinyml run digits", 0, "digits: ");
}

ZTEST(tinyml_shell, test_unknown_model)
{
	expect("tinyml run nothing", -ENOENT, "there is no model called nothing");
	expect("tinyml info nothing", -ENOENT, "there is no model called nothing");
	expect("tinyml profile nothing", -ENOENT, "there is no model called nothing");
}

ZTEST_SUITE(tinyml_shell, NULL, setup, NULL, NULL, NULL);
