/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A thread in user mode runs models: it needs their memory, and the lock of their arena. */

#include <string.h>

#include <digits.h>
#include <second.h>
#include <stream.h>
#include <tinyml/claim.h>
#include <zephyr/app_memory/app_memdomain.h>
#include <zephyr/ztest.h>

#include "inputs.h"

#define STACK 2048
#define STEPS 12

K_APPMEM_PARTITION_DEFINE(results);
static K_APP_BMEM(results) unsigned int right;
static K_APP_BMEM(results) bool was_user;

static K_THREAD_STACK_DEFINE(stack, STACK);
static struct k_thread thread;
static struct k_mem_domain domain;

static void classify(void *model_argument, void *unused, void *unused2)
{
	const struct tinyml_model *model = model_argument;

	ARG_UNUSED(unused);
	ARG_UNUSED(unused2);
	was_user = k_is_user_context();
	for (size_t image = 0; image < ARRAY_SIZE(held_back); image++) {
		float *input = model->inputs[0].data;

		if (tinyml_claim(model, K_FOREVER) != 0) {
			return;
		}
		for (size_t i = 0; i < ARRAY_SIZE(held_back[image].pixels); i++) {
			input[i] = (float)held_back[image].pixels[i] / 16.0f;
		}
		model->run();
		right += memcmp(model->outputs[0].data, held_back[image].logits,
				sizeof(held_back[image].logits)) == 0;
		tinyml_release(model);
	}
}

/* One step of the model with state, and the same by hand, as ../make_model.py describes it. */
static bool one_step(float *total, float *before, size_t step)
{
	float expected[STREAM_INPUT_ELEMENTS];

	for (size_t i = 0; i < STREAM_INPUT_ELEMENTS; i++) {
		float x = (float)(step * step) - 5.0f * (float)i;

		stream_input()[i] = x;
		total[i] += x;
		expected[i] = total[i] + before[i];
		before[i] = x;
	}
	stream_run();
	return memcmp(stream_output(), expected, sizeof(expected)) == 0;
}

/* Twice from the beginning: as the image starts, and after a reset. */
static void follow(void *model_argument, void *unused, void *unused2)
{
	const struct tinyml_model *model = model_argument;

	ARG_UNUSED(unused);
	ARG_UNUSED(unused2);
	was_user = k_is_user_context();
	for (size_t round = 0; round < 2; round++) {
		float total[STREAM_INPUT_ELEMENTS] = {1.0f, 2.0f, 3.0f, 4.0f};
		float before[STREAM_INPUT_ELEMENTS] = {0};

		if (tinyml_claim(model, K_FOREVER) != 0) {
			return;
		}
		for (size_t step = 0; step < STEPS; step++) {
			right += one_step(total, before, step);
		}
		model->reset();
		tinyml_release(model);
	}
}

/* Run a model in a thread without privileges; how often it was right. */
static unsigned int right_as_user(k_thread_entry_t entry, const struct tinyml_model *model)
{
	right = 0;
	was_user = false;
	k_thread_create(&thread, stack, STACK, entry, (void *)model, NULL, NULL, K_PRIO_PREEMPT(1),
			K_USER, K_FOREVER);
	k_mem_domain_add_thread(&domain, &thread);
	tinyml_grant(model, &thread);
	k_thread_start(&thread);
	k_thread_join(&thread, K_FOREVER);
	zassert_true(was_user);
	return right;
}

static void *setup(void)
{
	struct k_mem_partition *parts[] = {
		&tinyml_partition,
		&results,
#if Z_LIBC_PARTITION_EXISTS
		&z_libc_partition,
#endif
	};

	zassert_ok(k_mem_domain_init(&domain, ARRAY_SIZE(parts), parts));
	return NULL;
}

ZTEST(tinyml_userspace, test_first_model)
{
	zassert_equal(right_as_user(classify, &digits_model), ARRAY_SIZE(held_back));
}

ZTEST(tinyml_userspace, test_model_that_shares_its_arena)
{
	zassert_equal(right_as_user(classify, &second_model), ARRAY_SIZE(held_back));
}

ZTEST(tinyml_userspace, test_model_with_state)
{
	zassert_equal(right_as_user(follow, &stream_model), 2 * STEPS);
}

ZTEST_SUITE(tinyml_userspace, NULL, setup, NULL, NULL, NULL);
