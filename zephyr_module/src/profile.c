/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include <tinyml/profile.h>
#include <zephyr/sys/util.h>

static uint32_t layer_cycles[CONFIG_TINYML_PROFILING_LAYERS];
#ifdef CONFIG_TINYML_SHELL
static const char *layer_calls[CONFIG_TINYML_PROFILING_LAYERS];
#endif
static size_t layer_count;
static k_tid_t profiled; /* NULL before the first reset: all threads */

/* Interrupts wait, so that no thread gets between the owner and the readings. */
void tinyml_profile_reset(void)
{
	unsigned int key = irq_lock();

	profiled = k_current_get();
	memset(layer_cycles, 0, sizeof(layer_cycles));
#ifdef CONFIG_TINYML_SHELL
	memset(layer_calls, 0, sizeof(layer_calls));
#endif
	layer_count = 0;
	irq_unlock(key);
}

bool tinyml_profile_is_mine(void)
{
	return profiled == k_current_get();
}

size_t tinyml_profile_layers(void)
{
	return layer_count;
}

uint32_t tinyml_profile_cycles(size_t layer)
{
	return layer < ARRAY_SIZE(layer_cycles) ? layer_cycles[layer] : 0;
}

const char *tinyml_profile_call(size_t layer)
{
#ifdef CONFIG_TINYML_SHELL
	return layer < layer_count ? layer_calls[layer] : NULL;
#else
	ARG_UNUSED(layer);
	return NULL;
#endif
}

void tinyml_profile_record(size_t layer, uint32_t cycles, const char *call)
{
	unsigned int key = irq_lock();

	ARG_UNUSED(call);
	if (layer < ARRAY_SIZE(layer_cycles) && (profiled == NULL || profiled == k_current_get())) {
		layer_cycles[layer] += cycles; /* a layer that takes rows is called for each band */
#ifdef CONFIG_TINYML_SHELL
		layer_calls[layer] = call;
#endif
		layer_count = MAX(layer_count, layer + 1);
	}
	irq_unlock(key);
}
