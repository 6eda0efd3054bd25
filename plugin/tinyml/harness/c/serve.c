/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A device without an operating system: a model behind <tinyml/host.h>, for `tinyml.connect()`. */

#include <tinyml/host.h>

#include "line.h"
#include "port.h"

extern const struct tinyml_model TINYML_HARNESS_MODEL;

static const struct tinyml_model *model_at(size_t index)
{
	return index == 0u ? &TINYML_HARNESS_MODEL : NULL;
}

#ifdef TINYML_HARNESS_WATCH
#include <tinyml/watch.h>

extern const struct tinyml_watch TINYML_HARNESS_WATCH;

static size_t watch_model(const struct tinyml_model *model, size_t offset, uint8_t *answer,
			  size_t room)
{
	(void)model;
	if (answer == NULL) {
		tinyml_watch_reset(&TINYML_HARNESS_WATCH);
	}
	return tinyml_watch_encode(&TINYML_HARNESS_WATCH, offset, answer, room);
}
#else
#define watch_model NULL
#endif

#ifdef TINYML_HARNESS_ADAPT
#include <tinyml/adapt.h>

extern const struct TINYML_HARNESS_ADAPT_KIND TINYML_HARNESS_ADAPT;

static size_t adapt_model(const struct tinyml_model *model, const uint8_t *request, size_t bytes,
			  uint8_t *answer, size_t room)
{
	(void)model;
	return answer == NULL ? 1u
			      : tinyml_adapt_request(&TINYML_HARNESS_ADAPT.adapt, request, bytes,
						     answer, room);
}
#else
#define adapt_model NULL
#endif

int main(void)
{
	const struct tinyml_host_port port = {
		.model = model_at,
		.send = line_send,
		.cycles = line_cycles,
		.describe_clock = line_describe_clock,
		.watch = watch_model,
		.adapt = adapt_model,
	};
	static struct tinyml_host host;
	uint8_t byte;

	host.port = &port;
	line_open();
	while (line_receive(&byte)) {
		tinyml_host_receive(&host, &byte, 1);
	}
	port_exit(0);
}
