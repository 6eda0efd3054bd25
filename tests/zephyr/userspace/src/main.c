/* SPDX-License-Identifier: Apache-2.0 */

/* A thread in user mode runs models: it needs their memory, and the lock of their arena. */

#include <string.h>

#include <digits.h>
#include <second.h>
#include <tinyml/claim.h>
#include <zephyr/app_memory/app_memdomain.h>
#include <zephyr/ztest.h>

#include "inputs.h"

#define STACK 2048

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

/* Run a model in a thread without privileges. */
static void run_as_user(const struct tinyml_model *model)
{
	right = 0;
	was_user = false;
	k_thread_create(&thread, stack, STACK, classify, (void *)model, NULL, NULL,
			K_PRIO_PREEMPT(1), K_USER, K_FOREVER);
	k_mem_domain_add_thread(&domain, &thread);
	tinyml_grant(model, &thread);
	k_thread_start(&thread);
	k_thread_join(&thread, K_FOREVER);
	zassert_true(was_user);
	zassert_equal(right, ARRAY_SIZE(held_back), "%u outputs are right", right);
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
	run_as_user(&digits_model);
}

ZTEST(tinyml_userspace, test_model_that_shares_its_arena)
{
	run_as_user(&second_model);
}

ZTEST_SUITE(tinyml_userspace, NULL, setup, NULL, NULL, NULL);
