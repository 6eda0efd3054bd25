/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What a page calls: the model behind a few functions with fixed names. */

#include <tinyml/tinyml.h>

#ifdef TINYML_WEB_FEED
#include TINYML_WEB_HEADER
#endif

#define EXPORT(name) __attribute__((export_name(#name)))

extern const struct tinyml_model TINYML_WEB_MODEL;

EXPORT(input) void *web_input(uint32_t index)
{
	return TINYML_WEB_MODEL.inputs[index].data;
}

EXPORT(output) void *web_output(uint32_t index)
{
	return TINYML_WEB_MODEL.outputs[index].data;
}

EXPORT(run) int web_run(void)
{
	return TINYML_WEB_MODEL.run();
}

EXPORT(reset) void web_reset(void)
{
	if (TINYML_WEB_MODEL.reset != NULL) {
		TINYML_WEB_MODEL.reset();
	}
}

#ifdef TINYML_WEB_FEED
/* A recording arrives in portions of this many values. */
static TINYML_WEB_SAMPLE portion[TINYML_WEB_PORTION];

EXPORT(portion) void *web_portion(void)
{
	return portion;
}

/* Feed samples from `first` on, up to the next run. Returns how many were taken; ran() has what
 * NAME_feed() returned. */
static int last;

EXPORT(feed) uint32_t web_feed(uint32_t first, uint32_t count)
{
	size_t taken = 0;

	last = TINYML_WEB_FEED(&portion[first * TINYML_WEB_AXES], count, &taken);
	return (uint32_t)taken;
}

EXPORT(ran) int web_ran(void)
{
	return last;
}

EXPORT(feed_reset) void web_feed_reset(void)
{
	TINYML_WEB_FEED_RESET();
}
#endif
