/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/tinyml.h>
#include <zephyr/kernel.h>
#include <zephyr/tracing/tracing.h>

void tinyml_trace_layer(uint32_t layer, uint32_t begins)
{
	sys_trace_named_event("tinyml layer", layer, begins);
	ARG_UNUSED(layer); /* not every backend has named events */
	ARG_UNUSED(begins);
}
