/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The harness with a model in a slot instead of one that is linked in. */

#include <tinyml/slot.h>

#include "port.h"

#ifdef SLOT_PUBLIC_KEY
#include <tinyml/slot_trust.h>

static const uint8_t key[32] = {SLOT_PUBLIC_KEY};
static const struct tinyml_slot_trust signature = {tinyml_slot_verify_monocypher, key};
static const struct tinyml_slot_trust *const trust = &signature;
#else
static const struct tinyml_slot_trust *const trust;
#endif

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

static int open_trial(void)
{
	return tinyml_slot_open(&trial, &region, trust);
}

const struct tinyml_model *open_slot(void)
{
	int error = open_trial();

	if (error != 0) {
		return refuse("", error);
	}
	error = tinyml_slot_self_test(&trial);
	if (error != 0) {
		return refuse("self-test: ", error);
	}
#ifdef SLOT_MEASURE_OPEN /* what the harness runs and measures is opening the slot again */
	static struct tinyml_model opening;

	opening = trial.model;
	opening.run = open_trial;
	return &opening;
#else
	return &trial.model;
#endif
}
