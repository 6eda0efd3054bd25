/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include <tinyml/profile.h>
#include <zephyr/sys/util.h>

static uint32_t layer_cycles[CONFIG_TINYML_PROFILING_LAYERS];
static size_t layer_count;

void tinyml_profile_reset(void)
{
	memset(layer_cycles, 0, sizeof(layer_cycles));
	layer_count = 0;
}

size_t tinyml_profile_layers(void)
{
	return layer_count;
}

uint32_t tinyml_profile_cycles(size_t layer)
{
	return layer < ARRAY_SIZE(layer_cycles) ? layer_cycles[layer] : 0;
}

void tinyml_profile_record(size_t layer, uint32_t cycles)
{
	if (layer < ARRAY_SIZE(layer_cycles)) {
		layer_cycles[layer] = cycles;
		layer_count = MAX(layer_count, layer + 1);
	}
}
