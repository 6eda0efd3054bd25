/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* `tinyml slot LINE` on Zephyr's shell: what `tinyml deploy` sends, and people can type. */

#include <string.h>

#include <tinyml/claim.h>
#include <tinyml/device_slots.h>
#include <tinyml/slot_receiver.h>
#include <zephyr/shell/shell.h>

static struct tinyml_receiver receiver = {
	.slots = &tinyml_device_slots,
	.slot = &tinyml_slot_model,
};

int tinyml_slot_command(const struct shell *sh, size_t argc, char **argv);

int tinyml_slot_command(const struct shell *sh, size_t argc, char **argv)
{
	char line[2 * TINYML_RECEIVER_DATA + 40];
	char answer[TINYML_RECEIVER_ANSWER];
	size_t used = 0;

	for (size_t i = 1; i < argc; i++) {
		size_t length = strlen(argv[i]);

		if (used + length + 2u > sizeof(line)) {
			shell_error(sh, "the line is too long");
			return -EINVAL;
		}
		memcpy(line + used, argv[i], length);
		used += length;
		line[used++] = ' ';
	}
	line[used > 0 ? used - 1 : 0] = '\0';
	if (tinyml_claim(&tinyml_slot_model.model, K_SECONDS(5)) != 0) {
		shell_error(sh, "the model is in use by another thread");
		return -EBUSY;
	}
	tinyml_receiver_line(&receiver, line, answer);
	tinyml_release(&tinyml_slot_model.model);
	shell_print(sh, "%s", answer);
	return 0;
}
