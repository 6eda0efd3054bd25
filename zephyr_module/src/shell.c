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

#define SHOWN_ELEMENTS 8
#define CLAIM_TIMEOUT  K_SECONDS(5)

static const char *const type_names[] = {
	[TINYML_FLOAT32] = "float32", [TINYML_FLOAT64] = "float64", [TINYML_INT8] = "int8",
	[TINYML_UINT8] = "uint8",     [TINYML_INT16] = "int16",     [TINYML_UINT16] = "uint16",
	[TINYML_INT32] = "int32",     [TINYML_UINT32] = "uint32",   [TINYML_INT64] = "int64",
	[TINYML_UINT64] = "uint64",   [TINYML_BOOL] = "bool",
};

static const struct tinyml_model *find(const struct shell *sh, const char *name)
{
	const struct tinyml_model *model = tinyml_find(name);

	if (model == NULL) {
		shell_error(sh, "there is no model called %s; see: tinyml list", name);
	}
	return model;
}

/* Printed in millionths, because printf may lack floating-point support. */
static void print_real(const struct shell *sh, double value)
{
	int64_t millionths = (int64_t)(value * 1e6 + (value < 0 ? -0.5 : 0.5));
	uint64_t size = (uint64_t)(millionths < 0 ? -millionths : millionths);

	shell_fprintf(sh, SHELL_NORMAL, "%s%u.%06u", millionths < 0 ? "-" : "",
		      (unsigned int)(size / 1000000), (unsigned int)(size % 1000000));
}

static void print_tensor(const struct shell *sh, const char *kind,
			 const struct tinyml_tensor *tensor)
{
	shell_fprintf(sh, SHELL_NORMAL, "%s %s: ", kind, tensor->name);
	for (size_t i = 0; i < tensor->rank; i++) {
		shell_fprintf(sh, SHELL_NORMAL, "%s%d", i == 0 ? "" : "x", (int)tensor->shape[i]);
	}
	shell_fprintf(sh, SHELL_NORMAL, " %s, %u bytes", type_names[tensor->type],
		      (unsigned int)tensor->bytes);
	if (tensor->scale != 0.0f) {
		shell_fprintf(sh, SHELL_NORMAL, ", scale ");
		print_real(sh, (double)tensor->scale);
		shell_fprintf(sh, SHELL_NORMAL, ", zero point %d", (int)tensor->zero_point);
	}
	shell_fprintf(sh, SHELL_NORMAL, "\n");
}

static void print_element(const struct shell *sh, const struct tinyml_tensor *tensor, size_t index)
{
	const uint8_t *at = (const uint8_t *)tensor->data + index * tinyml_type_bytes(tensor->type);

	shell_fprintf(sh, SHELL_NORMAL, " ");
	switch (tensor->type) {
	case TINYML_FLOAT32:
		print_real(sh, (double)*(const float *)(const void *)at);
		break;
	case TINYML_FLOAT64:
		print_real(sh, *(const double *)(const void *)at);
		break;
	case TINYML_INT8:
		shell_fprintf(sh, SHELL_NORMAL, "%d", *(const int8_t *)at);
		break;
	case TINYML_INT16:
		shell_fprintf(sh, SHELL_NORMAL, "%d", *(const int16_t *)(const void *)at);
		break;
	case TINYML_UINT16:
		shell_fprintf(sh, SHELL_NORMAL, "%u", *(const uint16_t *)(const void *)at);
		break;
	case TINYML_INT32:
	case TINYML_INT64: /* the low word, which is enough for class indices */
		shell_fprintf(sh, SHELL_NORMAL, "%d", (int)*(const int32_t *)(const void *)at);
		break;
	case TINYML_UINT32:
	case TINYML_UINT64:
		shell_fprintf(sh, SHELL_NORMAL, "%u",
			      (unsigned int)*(const uint32_t *)(const void *)at);
		break;
	default:
		shell_fprintf(sh, SHELL_NORMAL, "%u", *at);
		break;
	}
}

static int cmd_list(const struct shell *sh, size_t argc, char **argv)
{
	ARG_UNUSED(argc);
	ARG_UNUSED(argv);
	TINYML_FOREACH_MODEL(entry)
	{
		shell_print(sh, "%s: arena %u bytes, %u inputs, %u outputs", entry->model->name,
			    (unsigned int)entry->model->arena_bytes, entry->model->input_count,
			    entry->model->output_count);
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
		print_tensor(sh, "input", &model->inputs[i]);
	}
	for (size_t i = 0; i < model->output_count; i++) {
		print_tensor(sh, "output", &model->outputs[i]);
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

static int run_and_show(const struct shell *sh, const struct tinyml_model *model)
{
	int64_t cycles = timed_run(sh, model);

	if (cycles < 0) {
		return (int)cycles;
	}
	shell_print(sh, "%s: %u cycles, %u us", model->name, (unsigned int)cycles,
		    (unsigned int)(1000000ULL * (uint64_t)cycles / tinyml_profile_clock_hz()));
	for (size_t i = 0; i < model->output_count; i++) {
		const struct tinyml_tensor *output = &model->outputs[i];
		size_t count = tinyml_elements(output);

		shell_fprintf(sh, SHELL_NORMAL, "%s:", output->name);
		for (size_t j = 0; j < MIN(count, SHOWN_ELEMENTS); j++) {
			print_element(sh, output, j);
		}
		shell_fprintf(sh, SHELL_NORMAL, "%s\n", count > SHOWN_ELEMENTS ? " ..." : "");
	}
	return 0;
}

/* Call a function while this thread holds the claim on a model. */
static int with_claim(const struct shell *sh, const char *name,
		      int (*action)(const struct shell *, const struct tinyml_model *))
{
	const struct tinyml_model *model = find(sh, name);

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

/* Only a model in a slot can be replaced while it is described. */
static int cmd_info(const struct shell *sh, size_t argc, char **argv)
{
	const struct tinyml_model *model = find(sh, argv[1]);

	ARG_UNUSED(argc);
#ifdef CONFIG_TINYML_SLOTS
	if (model == &tinyml_slot_model.model) {
		return with_claim(sh, argv[1], show);
	}
#endif
	return model == NULL ? -ENOENT : show(sh, model);
}

static int cmd_run(const struct shell *sh, size_t argc, char **argv)
{
	ARG_UNUSED(argc);
	return with_claim(sh, argv[1], run_and_show);
}

#ifdef CONFIG_TINYML_PROFILING
#define LAYER_NAME_BYTES 32

/* The name of a layer's function without the model's prefix: conv1 of kws_conv1(...). */
static const char *layer_name(const struct tinyml_model *model, size_t layer, char *name)
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
	return name;
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

		if (tinyml_profile_call(i) == NULL) {
			continue; /* it shares memory and computes nothing */
		}
		shell_print(sh, "layer %u %s: %u cycles, %u %%", (unsigned int)i,
			    layer_name(model, i, name), (unsigned int)layer,
			    cycles == 0 ? 0 : (unsigned int)(100ULL * layer / (uint64_t)cycles));
	}
	shell_print(sh, "%s: %u cycles", model->name, (unsigned int)cycles);
	return 0;
}

static int cmd_profile(const struct shell *sh, size_t argc, char **argv)
{
	ARG_UNUSED(argc);
	return with_claim(sh, argv[1], profile_and_show);
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
