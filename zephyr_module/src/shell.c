/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* `tinyml list | info | run | profile | watch` on Zephyr's shell. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tinyml/claim.h>
#include <tinyml/profile.h>
#include <tinyml/registry.h>
#include <tinyml/values.h>
#include <zephyr/kernel.h>
#include <zephyr/shell/shell.h>
#ifdef CONFIG_TINYML_SLOTS
#include <tinyml/device_slots.h>
#endif

#include "shell_tensors.h"

#define SHOWN_ELEMENTS 8
#define CLAIM_TIMEOUT  K_SECONDS(5)

static const struct tinyml_model *find(const struct shell *sh, const char *name)
{
	const struct tinyml_model *model = tinyml_find(name);

	if (model == NULL) {
		shell_error(sh, "there is no model called %s; see: tinyml list", name);
	}
	return model;
}

/* Only a model in a slot can be replaced while it is described. */
static bool is_replaced(const struct tinyml_model *model)
{
#ifdef CONFIG_TINYML_SLOTS
	return model == &tinyml_slot_model.model;
#else
	ARG_UNUSED(model);
	return false;
#endif
}

static int cmd_list(const struct shell *sh, size_t argc, char **argv)
{
	ARG_UNUSED(argc);
	ARG_UNUSED(argv);
	TINYML_FOREACH_MODEL(entry)
	{
		const struct tinyml_model *model = entry->model;

		if (is_replaced(model) && tinyml_claim(model, CLAIM_TIMEOUT) != 0) {
			shell_error(sh, "the model in the slot is in use by another thread");
			continue;
		}
		shell_print(sh, "%s: arena %u bytes, %u inputs, %u outputs", model->name,
			    (unsigned int)model->arena_bytes, model->input_count,
			    model->output_count);
		if (is_replaced(model)) {
			tinyml_release(model);
		}
	}
	return 0;
}

static int show(const struct shell *sh, const struct tinyml_model *model)
{
	shell_fprintf(sh, SHELL_NORMAL, "%s: arena %u bytes, model file SHA-256 ", model->name,
		      (unsigned int)model->arena_bytes);
	for (size_t i = 0; i < sizeof(model->sha256); i++) {
		shell_fprintf(sh, SHELL_NORMAL, "%02x", model->sha256[i]);
	}
	shell_fprintf(sh, SHELL_NORMAL, "...\n");
	for (size_t i = 0; i < model->input_count; i++) {
		tinyml_print_tensor(sh, "input", &model->inputs[i]);
	}
	for (size_t i = 0; i < model->output_count; i++) {
		tinyml_print_tensor(sh, "output", &model->outputs[i]);
	}
	return 0;
}

/* Run a model on the current inputs; returns the cycles, or a negative error. */
static int64_t timed_run(const struct shell *sh, const struct tinyml_model *model)
{
	uint32_t start, cycles;
	int status;

	if (model->run == NULL) {
		shell_error(sh,
			    model->feed != NULL
				    ? "%s takes its input in rows from the application (io: rows)"
				    : "%s is compiled for buffers of the application (io: caller)",
			    model->name);
		return -ENOTSUP;
	}
	start = tinyml_profile_clock();
	status = model->run();
	cycles = tinyml_profile_clock() - start;
	if (status != 0) {
		shell_error(sh, "%s failed to run: %d", model->name, status);
		return -EIO;
	}
	return cycles;
}

/* Figures that look like measurements, and are none. */
static void explain_clock(const struct shell *sh)
{
	if (IS_ENABLED(CONFIG_QEMU_TARGET) || IS_ENABLED(CONFIG_ARCH_POSIX)) {
		shell_print(sh, "(an emulated clock, not a core's; on a computer, `tinyml profile` "
				"counts instructions)");
	}
}

static int run_and_show(const struct shell *sh, const struct tinyml_model *model)
{
	int64_t cycles = timed_run(sh, model);

	if (cycles < 0) {
		return (int)cycles;
	}
	shell_print(sh, "%s: %u cycles, %u us", model->name, (unsigned int)cycles,
		    (unsigned int)(1000000ULL * (uint64_t)cycles / tinyml_profile_clock_hz()));
	explain_clock(sh);
	for (size_t i = 0; i < model->output_count; i++) {
		const struct tinyml_tensor *output = &model->outputs[i];
		size_t count = tinyml_elements(output);

		shell_fprintf(sh, SHELL_NORMAL, "%s:", output->name);
		for (size_t j = 0; j < MIN(count, SHOWN_ELEMENTS); j++) {
			tinyml_print_element(sh, output, j);
		}
		shell_fprintf(sh, SHELL_NORMAL, "%s\n", count > SHOWN_ELEMENTS ? " ..." : "");
	}
	return 0;
}

/* Call a function while this thread holds the claim on a model. */
static int with_claim(const struct shell *sh, const struct tinyml_model *model,
		      int (*action)(const struct shell *, const struct tinyml_model *))
{
	if (model == NULL) {
		return -ENOENT;
	}
	if (tinyml_claim(model, CLAIM_TIMEOUT) != 0) {
		shell_error(sh, "%s is in use by another thread", model->name);
		return -EBUSY;
	}

	int status = action(sh, model);

	tinyml_release(model);
	return status;
}

static int cmd_info(const struct shell *sh, size_t argc, char **argv)
{
	const struct tinyml_model *model = find(sh, argv[1]);

	ARG_UNUSED(argc);
	if (model == NULL) {
		return -ENOENT;
	}
	return is_replaced(model) ? with_claim(sh, model, show) : show(sh, model);
}

static int cmd_run(const struct shell *sh, size_t argc, char **argv)
{
	ARG_UNUSED(argc);
	return with_claim(sh, find(sh, argv[1]), run_and_show);
}

#ifdef CONFIG_TINYML_PROFILING
#define LAYER_NAME_BYTES 32

/* The name of a layer's function without the model's prefix: conv1 of kws_conv1(...). */
static void layer_name(const struct tinyml_model *model, size_t layer, char *name)
{
	const char *call = tinyml_profile_call(layer);
	size_t prefix = strlen(model->name);
	size_t length = 0;

	if (call != NULL && strncmp(call, model->name, prefix) == 0 && call[prefix] == '_') {
		call += prefix + 1;
		while (length < LAYER_NAME_BYTES - 1 && call[length] != '\0' &&
		       call[length] != '(') {
			name[length] = call[length];
			length++;
		}
	}
	name[length] = '\0'; /* empty for layers that share memory and are not called */
}

static int profile_and_show(const struct shell *sh, const struct tinyml_model *model)
{
	char name[LAYER_NAME_BYTES];

	tinyml_profile_reset();

	int64_t cycles = timed_run(sh, model);

	if (cycles < 0) {
		return (int)cycles;
	}
	for (size_t i = 0; i < tinyml_profile_layers(); i++) {
		uint32_t layer = tinyml_profile_cycles(i);
		bool computes = tinyml_profile_call(i) != NULL; /* others share memory */

		layer_name(model, i, name);
		if (!tinyml_profile_is_mine()) { /* what was read may be another thread's */
			shell_error(sh, "another thread has profiled meanwhile: try again");
			return -EAGAIN;
		}
		if (computes) {
			shell_print(sh, "layer %u %s: %u cycles, %u %%", (unsigned int)i, name,
				    (unsigned int)layer,
				    cycles == 0
					    ? 0
					    : (unsigned int)(100ULL * layer / (uint64_t)cycles));
		}
	}
	shell_print(sh, "%s: %u cycles", model->name, (unsigned int)cycles);
	explain_clock(sh);
	return 0;
}

static int cmd_profile(const struct shell *sh, size_t argc, char **argv)
{
	ARG_UNUSED(argc);
	return with_claim(sh, find(sh, argv[1]), profile_and_show);
}
#else
#define cmd_profile NULL /* the table below names it either way */
#endif

#ifdef CONFIG_TINYML_SLOTS
int tinyml_slot_command(const struct shell *sh, size_t argc, char **argv);
#else
#define tinyml_slot_command NULL
#endif

#ifdef CONFIG_TINYML_WATCH
int tinyml_watch_command(const struct shell *sh, size_t argc, char **argv);
#else
#define tinyml_watch_command NULL
#endif

SHELL_STATIC_SUBCMD_SET_CREATE(
	tinyml_commands, SHELL_CMD_ARG(list, NULL, "Models in this image", cmd_list, 1, 0),
	SHELL_CMD_ARG(info, NULL, "Inputs and outputs of a model: info NAME", cmd_info, 2, 0),
	SHELL_CMD_ARG(run, NULL, "Run a model on its current inputs: run NAME", cmd_run, 2, 0),
	SHELL_COND_CMD_ARG(CONFIG_TINYML_PROFILING, profile, NULL,
			   "Cycles of each layer of a model: profile NAME", cmd_profile, 2, 0),
	SHELL_COND_CMD_ARG(CONFIG_TINYML_WATCH, watch, NULL,
			   "What a model has seen and decided: watch NAME [reset]",
			   tinyml_watch_command, 2, 1),
	SHELL_COND_CMD_ARG(
		CONFIG_TINYML_SLOTS, slot, NULL,
		"Replace a model: slot info | open | confirm | reject; see tinyml deploy",
		tinyml_slot_command, 2, 4),
	SHELL_SUBCMD_SET_END);

SHELL_CMD_REGISTER(tinyml, &tinyml_commands, "Neural networks in this image", NULL);
