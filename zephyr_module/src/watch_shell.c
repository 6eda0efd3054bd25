/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* `tinyml watch NAME [reset]` on Zephyr's shell. */

#include <errno.h>
#include <string.h>

#include <tinyml/claim.h>
#include <tinyml/device_watch.h>
#include <tinyml/registry.h>
#include <zephyr/kernel.h>
#include <zephyr/shell/shell.h>

#define CLAIM_TIMEOUT K_SECONDS(5)

/* The mean of a sum that counts in 1/unit, in thousandths. */
static unsigned int thousandths(uint32_t sum, uint32_t unit, uint32_t runs)
{
	return runs == 0 ? 0 : (unsigned int)((1000ULL * sum) / ((uint64_t)unit * runs));
}

static void print_values(const struct shell *sh, const char *kind, const char *name,
			 const struct tinyml_watch_values *values)
{
	const int32_t drift = tinyml_watch_drift(values);

	if (values->stride == 0u) {
		shell_print(sh, "%s %s: not counted", kind, name);
		return;
	}
	shell_fprintf(sh, SHELL_NORMAL, "%s %s:", kind, name);
	if (drift >= 0) {
		shell_fprintf(sh, SHELL_NORMAL, " drift 0.%04u,", (unsigned int)MIN(drift, 9999));
	}
	shell_fprintf(sh, SHELL_NORMAL, " bins");
	for (size_t i = 0; i < TINYML_WATCH_BINS; i++) {
		shell_fprintf(sh, SHELL_NORMAL, " %u", (unsigned int)values->bins[i]);
	}
	shell_fprintf(sh, SHELL_NORMAL, "\n");
}

static void print_classes(const struct shell *sh, const char *name, uint32_t runs,
			  const struct tinyml_watch_classes *classes)
{
	const struct tinyml_watch_scores *scores = classes->scores;
	const unsigned int top = thousandths(scores->top, TINYML_WATCH_SCORE, runs);
	const unsigned int margin = thousandths(scores->margin, TINYML_WATCH_SCORE, runs);
	const unsigned int entropy = thousandths(scores->entropy, TINYML_WATCH_ENTROPY, runs);

	shell_print(sh,
		    "output %s: score %u.%03u, margin %u.%03u, entropy %u.%03u bits, %u switches",
		    name, top / 1000, top % 1000, margin / 1000, margin % 1000, entropy / 1000,
		    entropy % 1000, (unsigned int)scores->switches);
	if (classes->decisions != NULL) {
		shell_fprintf(sh, SHELL_NORMAL, "decisions");
		for (size_t i = 0; i < classes->classes; i++) {
			shell_fprintf(sh, SHELL_NORMAL, " %u", (unsigned int)classes->decisions[i]);
		}
		shell_fprintf(sh, SHELL_NORMAL, "\n");
	}
}

static void print_watch(const struct shell *sh, const struct tinyml_watch *watch)
{
	const struct tinyml_model *model = watch->model;
	const struct tinyml_watch_totals *totals = watch->totals;
	const uint32_t runs = totals->runs;

	shell_print(sh, "%s: %u runs, %u errors, %u cycles (%u to %u)", model->name,
		    (unsigned int)runs, (unsigned int)totals->errors,
		    runs == 0 ? 0U : (unsigned int)(totals->cycles / runs),
		    (unsigned int)totals->cycles_min, (unsigned int)totals->cycles_max);
	for (size_t i = 0; i < watch->input_count; i++) {
		print_values(sh, "input", model->inputs[i].name, &watch->inputs[i]);
	}
	for (size_t i = 0; i < watch->channel_count; i++) {
		print_values(sh, "channel of", model->inputs[0].name,
			     &watch->inputs[watch->input_count + i]);
	}
	for (size_t i = 0; i < watch->output_count; i++) {
		if (watch->outputs[i].classes != NULL) {
			print_classes(sh, model->outputs[i].name, runs, watch->outputs[i].classes);
		} else {
			print_values(sh, "output", model->outputs[i].name,
				     watch->outputs[i].values);
		}
	}
}

int tinyml_watch_command(const struct shell *sh, size_t argc, char **argv)
{
	const struct tinyml_model *model = tinyml_find(argv[1]);
	const struct tinyml_watch *watch = model == NULL ? NULL : tinyml_watch_of(model);

	if (model == NULL) {
		shell_error(sh, "there is no model called %s; see: tinyml list", argv[1]);
		return -ENOENT;
	}
	if (watch == NULL) {
		shell_error(sh, "%s counts nothing: watch: true in tinyml.yaml", argv[1]);
		return -ENOTSUP;
	}
	if (argc > 2 && strcmp(argv[2], "reset") != 0) {
		shell_error(sh, "%s is not known: tinyml watch NAME [reset]", argv[2]);
		return -EINVAL;
	}
	if (tinyml_claim(model, CLAIM_TIMEOUT) != 0) {
		shell_error(sh, "%s is in use by another thread", model->name);
		return -EBUSY;
	}
	print_watch(sh, watch);
	if (argc > 2) {
		tinyml_watch_reset(watch);
	}
	tinyml_release(model);
	return 0;
}
