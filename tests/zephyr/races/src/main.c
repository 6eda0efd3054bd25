/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Threads of several priorities that run all models, beside the shell and the host protocol, and
 * print on the line of the latter. Each compares its results with those of a quiet start. */

#include <string.h>

#include <tinyml/claim.h>
#include <tinyml/device_slots.h>
#include <tinyml/registry.h>
#include <zephyr/kernel.h>
#include <zephyr/shell/shell.h>

#define STACK_BYTES 2048
#define STEPS       3 /* of a run: a model with state gives another output each time */
#define SEEN_BYTES  64

struct worker {
	const char *model;
	int priority;
	uint32_t rest_us;
	uint32_t work_us; /* while it has the model */
	uint8_t seed;
	unsigned int runs, wrong, refused;
	uint8_t seen[STEPS][SEEN_BYTES];
};

static struct worker workers[] = {
	{.model = "second", .priority = 1, .rest_us = 13100, .work_us = 100, .seed = 3},
	{.model = "digits", .priority = 4, .rest_us = 17300, .work_us = 300, .seed = 5},
	{.model = "stream", .priority = 7, .rest_us = 29900, .work_us = 500, .seed = 7},
	{.model = "stream", .priority = 2, .rest_us = 40700, .work_us = 100, .seed = 9},
};

K_THREAD_STACK_ARRAY_DEFINE(stacks, ARRAY_SIZE(workers) + 2, STACK_BYTES);
static struct k_thread threads[ARRAY_SIZE(workers) + 2];
static unsigned int slot_runs, slot_wrong;
static bool chatty = true;

static void fill(const struct tinyml_model *model, uint8_t seed)
{
	for (size_t i = 0; i < model->input_count; i++) {
		const struct tinyml_tensor *input = &model->inputs[i];

		if (input->type == TINYML_FLOAT32) {
			for (size_t j = 0; j < input->bytes / sizeof(float); j++) {
				((float *)input->data)[j] = (float)((seed * (j + 1u)) % 16u) / 16;
			}
		} else {
			for (size_t j = 0; j < input->bytes; j++) {
				((uint8_t *)input->data)[j] = (uint8_t)(seed * (j + 1u));
			}
		}
	}
}

/* Some runs in a row with the same input; the outputs of each. */
static bool run(const struct tinyml_model *model, const struct worker *worker,
		uint8_t outputs[STEPS][SEEN_BYTES])
{
	memset(outputs, 0, sizeof(worker->seen));
	if (model->reset != NULL) {
		model->reset();
	}
	for (size_t i = 0; i < STEPS; i++) {
		fill(model, worker->seed);
		k_busy_wait(worker->work_us);
		if (model->run() != 0) {
			return false;
		}
		k_busy_wait(worker->work_us / 2u);
		memcpy(outputs[i], model->outputs[0].data,
		       MIN(model->outputs[0].bytes, SEEN_BYTES));
	}
	return true;
}

static void work(void *of, void *b, void *c)
{
	struct worker *worker = of;
	const struct tinyml_model *model = tinyml_find(worker->model);
	uint8_t found[STEPS][SEEN_BYTES];

	ARG_UNUSED(b);
	ARG_UNUSED(c);
	for (;;) {
		if (tinyml_claim(model, K_MSEC(300)) == 0) {
			bool same = run(model, worker, found) &&
				    memcmp(found, worker->seen, sizeof(found)) == 0;

			worker->runs++;
			worker->wrong += same ? 0u : 1u;
			tinyml_release(model);
		} else {
			worker->refused++;
		}
		k_usleep((int32_t)worker->rest_us);
	}
}

/* The model in a slot: the same output for the same version. */
static void work_in_slot(void *a, void *b, void *c)
{
	static struct worker worker = {.seed = 11};
	static uint32_t version;
	uint8_t found[STEPS][SEEN_BYTES];

	ARG_UNUSED(a);
	ARG_UNUSED(b);
	ARG_UNUSED(c);
	for (;;) {
		if (tinyml_claim(&tinyml_slot_model.model, K_MSEC(300)) == 0) {
			if (tinyml_device_slots.active >= 0) {
				bool ran = run(&tinyml_slot_model.model, &worker, found);

				if (version != tinyml_slot_model.version[0]) {
					version = tinyml_slot_model.version[0];
					memcpy(worker.seen, found, sizeof(found));
				}
				slot_runs++;
				slot_wrong +=
					!ran || memcmp(found, worker.seen, sizeof(found)) != 0;
			}
			tinyml_release(&tinyml_slot_model.model);
		}
		k_usleep(9100);
	}
}

static void chat(void *a, void *b, void *c)
{
	ARG_UNUSED(a);
	ARG_UNUSED(b);
	ARG_UNUSED(c);
	for (unsigned int i = 0;; i++) {
		if (chatty) {
			printk("all is well, %u\n", i);
		}
		k_msleep(11);
	}
}

static int cmd_races(const struct shell *sh, size_t argc, char **argv)
{
	unsigned int runs = slot_runs, wrong = slot_wrong;

	chatty = argc < 2 || strcmp(argv[1], "quiet") != 0;
	for (size_t i = 0; i < ARRAY_SIZE(workers); i++) {
		runs += workers[i].runs;
		wrong += workers[i].wrong;
	}
	shell_print(sh, "%u runs, %u in a slot, %u wrong", runs, slot_runs, wrong);
	return 0;
}

SHELL_CMD_ARG_REGISTER(races, NULL, "What the threads have found; quiet: no chat", cmd_races, 1, 1);

int main(void)
{
	size_t i;

	(void)tinyml_slots_open(&tinyml_device_slots, &tinyml_slot_model);
	for (i = 0; i < ARRAY_SIZE(workers); i++) {
		const struct tinyml_model *model = tinyml_find(workers[i].model);

		(void)tinyml_claim(model, K_FOREVER);
		(void)run(model, &workers[i], workers[i].seen);
		tinyml_release(model);
	}
	for (i = 0; i < ARRAY_SIZE(workers); i++) {
		k_thread_create(&threads[i], stacks[i], STACK_BYTES, work, &workers[i], NULL, NULL,
				workers[i].priority, 0, K_NO_WAIT);
	}
	k_thread_create(&threads[i], stacks[i], STACK_BYTES, work_in_slot, NULL, NULL, NULL, 5, 0,
			K_NO_WAIT);
	i++;
	k_thread_create(&threads[i], stacks[i], STACK_BYTES, chat, NULL, NULL, NULL, 3, 0,
			K_NO_WAIT);
	return 0;
}
