/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A watched model and one that is not: counters, shell, periods, and counters that survive a reset.
 * The image may have other models that are watched (../together). */

#include <errno.h>
#include <string.h>

#include <digits.h>
#include <tinyml/claim.h>
#include <tinyml/device_watch.h>
#include <zephyr/settings/settings.h>
#include <zephyr/shell/shell.h>
#include <zephyr/shell/shell_dummy.h>
#include <zephyr/ztest.h>

#define RUNS 3

static struct {
	uint32_t runs;
	size_t bytes;
	uint32_t calls;
	struct tinyml_watch_message message;
	uint32_t messages;
} called;

static uint8_t report[1024];

static void on_period(const struct tinyml_watch *watch)
{
	if (watch != &digits_watcher) {
		return;
	}
	called.runs = watch->totals->runs;
	called.bytes = tinyml_watch_encode(watch, 0, report, sizeof(report));
	called.calls++;
}
TINYML_WATCH_CALLBACK(on_period);

static void on_message(const struct zbus_channel *channel)
{
	const struct tinyml_watch_message *message = zbus_chan_const_msg(channel);

	if (message->watch == &digits_watcher) {
		called.message = *message;
		called.messages++;
	}
}
ZBUS_LISTENER_DEFINE(listener, on_message);
ZBUS_CHAN_ADD_OBS(tinyml_watch_channel, listener, 0);

static void expect(const char *command, int wanted, const char *text)
{
	const struct shell *sh = shell_backend_dummy_get_ptr();
	const char *output;
	size_t length;

	shell_backend_dummy_clear_output(sh);
	zassert_equal(shell_execute_cmd(sh, command), wanted, "%s", command);
	output = shell_backend_dummy_get_output(sh, &length);
	zassert_not_null(strstr(output, text), "%s: expected \"%s\" in:\n%s", command, text,
			 output);
}

static void *setup(void)
{
	WAIT_FOR(shell_ready(shell_backend_dummy_get_ptr()), 1000000, k_msleep(1));
	return NULL;
}

static void before(void *unused)
{
	ARG_UNUSED(unused);
	zassert_ok(tinyml_claim(&digits_model, K_FOREVER)); /* periods may end by themselves */
	digits_watch_reset();
	memset(&called, 0, sizeof(called));
	for (int i = 0; i < RUNS; i++) {
		memset(digits_input(), 0, DIGITS_INPUT_BYTES);
		zassert_ok(digits_run());
	}
	tinyml_release(&digits_model);
}

ZTEST(tinyml_watch, test_counters)
{
	const struct digits_watch *seen = digits_watch();
	uint32_t elements = 0, decisions = 0;

	for (size_t i = 0; i < TINYML_WATCH_BINS; i++) {
		elements += seen->input.bins[i];
	}
	for (size_t i = 0; i < ARRAY_SIZE(seen->output.decisions); i++) {
		decisions += seen->output.decisions[i];
	}
	zassert_equal(seen->totals.runs, RUNS);
	zassert_equal(decisions, RUNS);
	zassert_true(elements >= RUNS * 16 && elements <= RUNS * DIGITS_INPUT_ELEMENTS);
	zassert_equal(seen->output.scores.switches, 0);
	zassert_true(seen->totals.cycles_min <= seen->totals.cycles_max);
	zassert_true(IS_ENABLED(CONFIG_ARCH_POSIX) || seen->totals.cycles_min > 0);
	zassert_true(tinyml_watch_largest_drift(&digits_watcher) > 1000, "blank images");
	zassert_equal_ptr(tinyml_watch_of(&digits_model), &digits_watcher);
}

ZTEST(tinyml_watch, test_shell)
{
	expect("tinyml watch digits", 0, "digits: 3 runs, 0 errors, ");
	expect("tinyml watch digits", 0, "input image: drift 0.");
	expect("tinyml watch digits", 0, "decisions ");
	expect("tinyml watch digits reset", 0, "digits: 3 runs");
	expect("tinyml watch digits", 0, "digits: 0 runs");
	expect("tinyml watch second", -ENOTSUP, "second counts nothing");
	expect("tinyml watch third", -ENOENT, "there is no model called third");
	expect("tinyml watch digits now", -EINVAL, "now is not known");
}

ZTEST(tinyml_watch, test_period)
{
	zassert_ok(tinyml_watch_end_period());
	zassert_equal(called.calls, 1);
	zassert_equal(called.runs, RUNS);
	zassert_true(called.bytes > 100 && called.bytes <= sizeof(report));
	zassert_equal(report[0], 0xa9, "a map");
	zassert_equal(called.messages, 1);
	zassert_equal(called.message.runs, RUNS);
	zassert_true(called.message.drift > 1000);
	zassert_equal(digits_watch()->totals.runs,
		      IS_ENABLED(CONFIG_TINYML_WATCH_RESET) ? 0 : RUNS);
}

static void hold(void *a, void *b, void *c)
{
	struct k_sem *held = a, *done = b;

	ARG_UNUSED(c);
	(void)tinyml_claim(&digits_model, K_FOREVER);
	k_sem_give(held);
	k_sem_take(done, K_FOREVER);
	tinyml_release(&digits_model);
}

static K_THREAD_STACK_DEFINE(stack, 1024);

ZTEST(tinyml_watch, test_a_model_in_use)
{
	static struct k_thread thread;
	static struct k_sem held, done;

	k_sem_init(&held, 0, 1);
	k_sem_init(&done, 0, 1);
	k_thread_create(&thread, stack, K_THREAD_STACK_SIZEOF(stack), hold, &held, &done, NULL,
			K_PRIO_PREEMPT(1), 0, K_NO_WAIT);
	k_sem_take(&held, K_FOREVER);
	zassert_equal(tinyml_watch_end_period(), -EBUSY);
	zassert_equal(called.calls, 0);
	zassert_equal(digits_watch()->totals.runs, RUNS);
	k_sem_give(&done);
	k_thread_join(&thread, K_FOREVER);
	zassert_ok(tinyml_watch_end_period());
	zassert_equal(called.calls, 1);
}

#ifdef CONFIG_TINYML_WATCH_SETTINGS
ZTEST(tinyml_watch, test_saved)
{
	uint8_t other[12] = {0};

	zassert_ok(settings_subsys_init());
	zassert_ok(tinyml_watch_end_period());
	digits_watch_reset(); /* as after a reset of the board */
	zassert_ok(settings_load());
	zassert_equal(digits_watch()->totals.runs, RUNS);
	zassert_ok(settings_save_one("tinyml/watch/digits", other, sizeof(other)));
	digits_watch_reset();
	zassert_ok(settings_load());
	zassert_equal(digits_watch()->totals.runs, 0, "those of another model");
}
#endif

ZTEST_SUITE(tinyml_watch, NULL, setup, before, NULL, NULL);
