/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * deep: yes
 * proves: host/commands.c
 * shapes: any request of up to 24 bytes in any state of the conversation, for a model with two
 *   inputs and an output
 * variants: TINYML_HOST_PAYLOAD=16 COMMAND=0;
 *   TINYML_HOST_PAYLOAD=16 COMMAND=1;
 *   TINYML_HOST_PAYLOAD=16 COMMAND=2;
 *   TINYML_HOST_PAYLOAD=16 COMMAND=3;
 *   TINYML_HOST_PAYLOAD=16 COMMAND=4;
 *   TINYML_HOST_PAYLOAD=16 COMMAND=5;
 *   TINYML_HOST_PAYLOAD=16 COMMAND=6;
 *   TINYML_HOST_PAYLOAD=16 COMMAND=7;
 *   TINYML_HOST_PAYLOAD=16 COMMAND=8;
 *   TINYML_HOST_PAYLOAD=16 COMMAND=9;
 *   TINYML_HOST_PAYLOAD=16 COMMAND=10;
 *   TINYML_HOST_PAYLOAD=16 COMMAND=11;
 *   TINYML_HOST_PAYLOAD=16 COMMAND=12
 * unwind: 20
 */

#include <string.h>

#include <tinyml/host.h>

#include "proof.h"

static const int32_t shape[] = {1, 4};
static uint8_t first[4], second[4], result[4];
static int run(void)
{
	return nondet_int();
}

static const struct tinyml_tensor inputs[] = {
	{.name = "a", .data = first, .shape = shape, .bytes = 4, .rank = 2},
	{.name = "b", .data = second, .shape = shape, .bytes = 4, .rank = 2},
};
static const struct tinyml_tensor outputs[] = {
	{.name = "y", .data = result, .shape = shape, .bytes = 4, .rank = 2},
};
static struct tinyml_model one = {
	.name = "one",
	.inputs = inputs,
	.outputs = outputs,
	.input_count = 2,
	.output_count = 1,
	.run = run,
};

static const struct tinyml_model *model(size_t index)
{
	return index == 0u ? &one : NULL;
}

/* What a port may answer. */
static size_t slot(const uint8_t *request, size_t bytes, uint8_t *answer, size_t room)
{
	const size_t used = nondet_unsigned();

	__CPROVER_assert(__CPROVER_r_ok(request, bytes), "a request that is there");
	__CPROVER_assert(__CPROVER_w_ok(answer, room), "room for the answer");
	__CPROVER_assume(used <= room);
	return used;
}

static size_t watch(const struct tinyml_model *of, size_t offset, uint8_t *answer, size_t room)
{
	(void)of;
	(void)offset;
	__CPROVER_assert(answer == NULL || __CPROVER_w_ok(answer, room), "room for the answer");
	return 100;
}

static size_t adapt(const struct tinyml_model *of, const uint8_t *request, size_t bytes,
		    uint8_t *answer, size_t room)
{
	(void)of;
	if (answer == NULL) {
		return 1;
	}
	return slot(request, bytes, answer, room);
}

static size_t layers(void)
{
	return 5;
}

static uint32_t layer_cycles(size_t layer)
{
	__CPROVER_assert(layer < 5u, "a layer that is there");
	return nondet_unsigned();
}

static int claim(const struct tinyml_model *of)
{
	(void)of;
	return nondet_int();
}

static void release(const struct tinyml_model *of)
{
	(void)of;
}

int main(void)
{
	const struct tinyml_host_port port = {
		.model = model,
		.claim = claim,
		.release = release,
		.layers = layers,
		.layer_cycles = layer_cycles,
		.slot = slot,
		.watch = watch,
		.adapt = adapt,
	};
	static struct tinyml_host host; /* anything, within what the functions keep */
	const size_t bytes = (size_t)between(2, (int)sizeof(host.request) - 4);

	__CPROVER_havoc_object(&host);
	host.port = &port;
	host.held = nondet_bool() ? &one : NULL;
	host.held_last = nondet_bool() ? &one : NULL;
#if COMMAND == 0 /* one that there is not */
	__CPROVER_assume(host.request[1] == 0u || host.request[1] > TINYML_HOST_ADAPT);
#else
	__CPROVER_assume(host.request[1] == COMMAND);
#endif
	tinyml_host_execute(&host, bytes);
	__CPROVER_assert(host.answer_bytes >= 2u && host.answer_bytes <= sizeof(host.answer) - 4u,
			 "answers leave room for their checksum");
	return 0;
}
