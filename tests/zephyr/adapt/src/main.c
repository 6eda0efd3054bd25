/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Two models that learn and one that does not: what is learnt is saved, and taken back. */

#include <errno.h>
#include <string.h>

#include <gesture.h>
#include <plain.h>
#include <shapes.h>
#include <tinyml/claim.h>
#include <tinyml/device_adapt.h>
#include <zephyr/settings/settings.h>
#include <zephyr/ztest.h>

#define LATER K_MSEC(CONFIG_TINYML_ADAPT_SAVE_MS > 0 ? CONFIG_TINYML_ADAPT_SAVE_MS + 200 : 0)

static uint8_t kept[GESTURE_LEARNT_BYTES];

/* What a reset of the board leaves: the settings, and nothing else. */
static void restart(void)
{
	TINYML_FOREACH_ADAPT(entry)
	{
		tinyml_adapt_factory(entry->adapt);
		memset(entry->saved, 0, sizeof(*entry->saved));
	}
}

static void learn(int32_t label)
{
	zassert_ok(tinyml_claim(&gesture_model, K_FOREVER));
	for (size_t i = 0; i < GESTURE_INPUT_ELEMENTS; i++) {
		gesture_input()[i] = (float)(label * (int32_t)(i % 7)) - 5.0f;
	}
	zassert_ok(gesture_run());
	zassert_ok(gesture_learn(label));
	tinyml_release(&gesture_model);
}

static void see_shape(void)
{
	zassert_ok(tinyml_claim(&shapes_model, K_FOREVER));
	for (size_t i = 0; i < SHAPES_INPUT_ELEMENTS; i++) {
		shapes_input()[i] = (float)(i % 3) * 0.5f;
	}
	zassert_ok(shapes_run());
	tinyml_release(&shapes_model);
}

static void before(void *unused)
{
	ARG_UNUSED(unused);
	restart();
	(void)settings_delete("tinyml/learnt/gesture");
	(void)settings_delete("tinyml/learnt/shapes");
}

ZTEST(tinyml_adapt, test_entries)
{
	zassert_equal_ptr(tinyml_adapt_of(&gesture_model), &gesture_adapter.adapt);
	zassert_equal_ptr(tinyml_adapt_of(&shapes_model), &shapes_adapter.adapt);
	zassert_is_null(tinyml_adapt_of(&plain_model));
}

ZTEST(tinyml_adapt, test_what_was_learnt_comes_back)
{
	const void *learnt;
	size_t bytes;

	learn(3);
	learn(0);
	see_shape();
	zassert_ok(tinyml_claim(&shapes_model, K_FOREVER));
	zassert_equal(shapes_enroll(2), 2);
	tinyml_release(&shapes_model);
	zassert_ok(tinyml_claim(&gesture_model, K_FOREVER));
	learnt = gesture_learnt(&bytes);
	zassert_equal(bytes, sizeof(kept));
	memcpy(kept, learnt, sizeof(kept));
	tinyml_release(&gesture_model);
	k_sleep(LATER); /* the application calls nothing */
	restart();
	zassert_equal(gesture_adapter.adapt.learnt->count, 0);
	zassert_ok(settings_load_subtree("tinyml/learnt"));
	zassert_mem_equal(gesture_adapter.adapt.learnt, kept, sizeof(kept));
	zassert_equal(gesture_adapter.adapt.learnt->count, 2);
	see_shape();
	zassert_ok(tinyml_claim(&shapes_model, K_FOREVER));
	zassert_equal(shapes_nearest(NULL), 2);
	tinyml_release(&shapes_model);
}

ZTEST(tinyml_adapt, test_what_is_newer_stays)
{
	learn(1);
	zassert_ok(tinyml_adapt_save_all());
	learn(2);
	zassert_ok(settings_load_subtree("tinyml/learnt"));
	zassert_equal(gesture_adapter.adapt.learnt->count, 2);
}

ZTEST(tinyml_adapt, test_the_factory_is_saved_too)
{
	learn(1);
	zassert_ok(tinyml_adapt_save_all());
	zassert_ok(tinyml_claim(&gesture_model, K_FOREVER));
	gesture_factory();
	tinyml_release(&gesture_model);
	k_sleep(LATER);
	restart();
	zassert_ok(settings_load_subtree("tinyml/learnt"));
	zassert_equal(gesture_adapter.adapt.learnt->count, 0);
}

ZTEST(tinyml_adapt, test_values_of_another_model_are_refused)
{
	size_t bytes;

	learn(1);
	zassert_ok(tinyml_claim(&gesture_model, K_FOREVER));
	memcpy(kept, gesture_learnt(&bytes), sizeof(kept));
	tinyml_release(&gesture_model);
	kept[8] ^= 1; /* of the digest */
	restart();
	zassert_ok(settings_save_one("tinyml/learnt/gesture", kept, sizeof(kept)));
	zassert_ok(settings_load_subtree("tinyml/learnt"));
	zassert_equal(gesture_adapter.adapt.learnt->count, 0);
	zassert_ok(settings_save_one("tinyml/learnt/gesture", kept, 16));
	zassert_ok(settings_load_subtree("tinyml/learnt"));
	zassert_equal(gesture_adapter.adapt.learnt->count, 0);
}

static void hold(void *a, void *b, void *c)
{
	struct k_sem *held = a, *done = b;

	ARG_UNUSED(c);
	(void)tinyml_claim(&gesture_model, K_FOREVER);
	k_sem_give(held);
	k_sem_take(done, K_FOREVER);
	tinyml_release(&gesture_model);
}

static K_THREAD_STACK_DEFINE(stack, 1024);

ZTEST(tinyml_adapt, test_a_model_in_use_is_saved_later)
{
	static struct k_thread thread;
	static struct k_sem held, done;

	learn(2);
	k_sem_init(&held, 0, 1);
	k_sem_init(&done, 0, 1);
	k_thread_create(&thread, stack, K_THREAD_STACK_SIZEOF(stack), hold, &held, &done, NULL,
			K_PRIO_PREEMPT(1), 0, K_NO_WAIT);
	k_sem_take(&held, K_FOREVER);
	zassert_equal(tinyml_adapt_save_all(), -EBUSY);
	k_sleep(LATER); /* the work queue finds it in use */
	k_sem_give(&done);
	k_thread_join(&thread, K_FOREVER);
	k_sleep(K_MSEC(1500)); /* the work tries again */
	restart();
	zassert_ok(settings_load_subtree("tinyml/learnt"));
	zassert_equal(gesture_adapter.adapt.learnt->count, 1);
}

/* The option -test of an image that runs on this computer; ztest has no header for it. */
const char *ztest_get_test_args(void);

void test_main(void)
{
	(void)settings_load(); /* the counters; what was learnt is there already */
	if (ztest_get_test_args() != NULL) {
		k_sleep(K_FOREVER); /* no tests: a computer connects */
	}
	ztest_run_all(NULL, false, 1, 1);
	ztest_verify_all_test_suites_ran();
}

ZTEST_SUITE(tinyml_adapt, NULL, NULL, before, NULL, NULL);
