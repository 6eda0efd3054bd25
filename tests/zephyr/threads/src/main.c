/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Two threads, two models: what one computes must not be what the other leaves behind. */

#include <string.h>

#include <digits.h>
#include <second.h>
#include <tinyml/claim.h>
#include <zephyr/ztest.h>
#include <zephyr/ztest_error_hook.h>

#include "inputs.h"

#define ROUNDS  200
#define STACK   2048
#define WAIT_US 300 /* some fraction of a tick: the other thread wakes in any phase of a round */

/* One thread's work: a model on one image after another. */
struct worker {
	const struct tinyml_model *model;
	k_timeout_t rest; /* between rounds */
	size_t first;     /* image: the threads are never at the same one */
	bool claims;
	unsigned int wrong;
	unsigned int waited;
};

static struct worker workers[] = {
	{.model = &digits_model, .rest = K_NO_WAIT, .first = 0},
	{.model = &second_model, .rest = K_TICKS(1), .first = ARRAY_SIZE(held_back) / 2},
};

static K_THREAD_STACK_ARRAY_DEFINE(stacks, ARRAY_SIZE(workers), STACK);
static struct k_thread threads[ARRAY_SIZE(workers)];

static void fill(const struct worker *worker, size_t image)
{
	float *input = worker->model->inputs[0].data;

	for (size_t i = 0; i < ARRAY_SIZE(held_back[image].pixels); i++) {
		input[i] = (float)held_back[image].pixels[i] / 16.0f;
	}
}

static void one_round(struct worker *worker, size_t image)
{
	if (worker->claims && tinyml_claim(worker->model, K_NO_WAIT) != 0) {
		worker->waited++;
		zassert_ok(tinyml_claim(worker->model, K_FOREVER));
	}
	fill(worker, image);
	k_busy_wait(WAIT_US);
	zassert_ok(worker->model->run());
	k_busy_wait(WAIT_US);
	worker->wrong += memcmp(worker->model->outputs[0].data, held_back[image].logits,
				sizeof(held_back[image].logits)) != 0;
	if (worker->claims) {
		tinyml_release(worker->model);
	}
}

static void work(void *argument, void *unused, void *unused2)
{
	struct worker *worker = argument;

	ARG_UNUSED(unused);
	ARG_UNUSED(unused2);
	for (size_t i = 0; i < ROUNDS; i++) {
		one_round(worker, (worker->first + i) % ARRAY_SIZE(held_back));
		k_sleep(worker->rest);
	}
}

/* Both at once; the one that rests preempts the one that does not. */
static void work_together(bool claims)
{
	for (size_t i = 0; i < ARRAY_SIZE(workers); i++) {
		workers[i].claims = claims;
		workers[i].wrong = 0;
		workers[i].waited = 0;
		k_thread_create(&threads[i], stacks[i], STACK, work, &workers[i], NULL, NULL,
				K_PRIO_PREEMPT((int)(ARRAY_SIZE(workers) - i)), 0, K_NO_WAIT);
	}
	for (size_t i = 0; i < ARRAY_SIZE(workers); i++) {
		k_thread_join(&threads[i], K_FOREVER);
	}
}

ZTEST(tinyml_threads, test_claimed)
{
	work_together(true);
	zassert_equal(workers[0].wrong, 0);
	zassert_equal(workers[1].wrong, 0);
	if (IS_ENABLED(CONFIG_TINYML_ARENA_SHARED)) {
		zassert_true(workers[1].waited > ROUNDS / 10, "the threads hardly met");
	} else {
		zassert_equal(workers[1].waited, 0);
	}
}

/* What claims are for: in a shared arena, threads without them get each other's values. */
ZTEST(tinyml_threads, test_not_claimed)
{
	if (IS_ENABLED(CONFIG_TINYML_CLAIM_CHECK)) {
		ztest_test_skip();
	}
	work_together(false);
	if (IS_ENABLED(CONFIG_TINYML_ARENA_SHARED)) {
		zassert_true(workers[0].wrong > 0);
	} else {
		zassert_equal(workers[0].wrong + workers[1].wrong, 0);
	}
}

ZTEST(tinyml_threads, test_claims_nest_and_time_out)
{
	struct worker *other = &workers[IS_ENABLED(CONFIG_TINYML_ARENA_SHARED) ? 1 : 0];

	zassert_ok(tinyml_claim(&digits_model, K_NO_WAIT));
	zassert_ok(tinyml_claim(other->model, K_NO_WAIT));
	tinyml_release(other->model);
	other->waited = 0;
	other->claims = true;
	k_thread_create(&threads[0], stacks[0], STACK, work, other, NULL, NULL, K_PRIO_PREEMPT(0),
			0, K_NO_WAIT);
	k_sleep(K_TICKS(5));
	zassert_equal(other->waited, 1, "still claimed, yet the other thread has it");
	k_thread_abort(&threads[0]);
	tinyml_release(&digits_model);
}

static void run_without_claim(void *unused, void *unused2, void *unused3)
{
	ARG_UNUSED(unused);
	ARG_UNUSED(unused2);
	ARG_UNUSED(unused3);
	ztest_set_assert_valid(true);
	digits_run();
	ztest_set_assert_valid(false);
	zassert_unreachable("a second thread ran a model without a claim");
}

ZTEST(tinyml_threads, test_a_missing_claim_is_found)
{
	if (!IS_ENABLED(CONFIG_TINYML_CLAIM_CHECK)) {
		ztest_test_skip();
	}
	zassert_ok(tinyml_claim(&second_model, K_NO_WAIT));
	zassert_ok(second_run());
	tinyml_release(&second_model);
	k_thread_create(&threads[0], stacks[0], STACK, run_without_claim, NULL, NULL, NULL,
			K_PRIO_PREEMPT(0), 0, K_NO_WAIT);
	k_thread_join(&threads[0], K_FOREVER);
}

ZTEST_SUITE(tinyml_threads, NULL, NULL, NULL, NULL, NULL);
