/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The harness with a model in a slot instead of one that is linked in. */

#include <tinyml/slot.h>

#include "port.h"

TINYML_SLOT_DEFINE(trial, SLOT_ARENA_BYTES, SLOT_STATE_BYTES);

static const struct tinyml_slot_region region = {
	.memory = (const void *)SLOT_ADDRESS,
	.address = SLOT_ADDRESS,
	.bytes = SLOT_BYTES,
};

const struct tinyml_model *open_slot(void);

static const struct tinyml_model *refuse(const char *what, int error)
{
	char digits[] = "slot refused: -00\n";

	digits[15] = (char)('0' + -error / 10);
	digits[16] = (char)('0' + -error % 10);
	port_print(what);
	port_print(digits);
	return NULL;
}

const struct tinyml_model *open_slot(void)
{
	int error = tinyml_slot_open(&trial, &region, NULL);

	if (error != 0) {
		return refuse("", error);
	}
	error = tinyml_slot_self_test(&trial);
	if (error != 0) {
		return refuse("self-test: ", error);
	}
	return &trial.model;
}
