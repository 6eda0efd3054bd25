/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* `tinyml slot info | open | confirm | reject` on Zephyr's shell. */

#include <errno.h>
#include <string.h>

#include <tinyml/claim.h>
#include <tinyml/device_slots.h>
#include <zephyr/shell/shell.h>

int tinyml_slot_command(const struct shell *sh, size_t argc, char **argv);

static void describe(const struct shell *sh)
{
	const struct tinyml_slots *slots = &tinyml_device_slots;
	int index = tinyml_slots_free(slots);

	if (slots->active < 0) {
		shell_print(sh, "no model");
	} else {
		uint32_t version = tinyml_slot_model.version[0];

		shell_print(sh, "%s %u.%u.%u%s", tinyml_slot_model.model.name,
			    (unsigned int)(version & 0xff), (unsigned int)(version >> 8 & 0xff),
			    (unsigned int)(version >> 16), slots->on_trial ? ", on trial" : "");
	}
	if (index >= 0) {
		shell_print(sh, "free: %u bytes at 0x%x", (unsigned int)slots->region[index].bytes,
			    (unsigned int)slots->region[index].address);
	}
}

static int execute(const char *word)
{
	if (strcmp(word, "open") == 0) {
		return tinyml_slots_open(&tinyml_device_slots, &tinyml_slot_model);
	}
	if (strcmp(word, "confirm") == 0) {
		return tinyml_slots_confirm(&tinyml_device_slots);
	}
	if (strcmp(word, "reject") == 0) {
		return tinyml_slots_reject(&tinyml_device_slots);
	}
	return strcmp(word, "info") == 0 ? 0 : TINYML_SLOT_ORDER;
}

int tinyml_slot_command(const struct shell *sh, size_t argc, char **argv)
{
	int error;

	ARG_UNUSED(argc);
	if (tinyml_claim(&tinyml_slot_model.model, K_SECONDS(5)) != 0) {
		shell_error(sh, "the model is in use by another thread");
		return -EBUSY;
	}
	error = execute(argv[1]);
	if (error == 0) {
		describe(sh);
	}
	tinyml_release(&tinyml_slot_model.model);
	if (error != 0) {
		shell_error(sh, "%s", tinyml_slot_error_text(error));
		return -EINVAL;
	}
	return 0;
}
