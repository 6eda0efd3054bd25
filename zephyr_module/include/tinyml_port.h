/* SPDX-License-Identifier: Apache-2.0 */

/* How Zephyr wants what <tinyml/tinyml.h> leaves to the platform. Included from there. */

#ifndef TINYML_PORT_H_
#define TINYML_PORT_H_

#include <zephyr/devicetree.h>
#include <zephyr/linker/devicetree_regions.h>
#include <zephyr/toolchain.h>

/*
 * Where arenas go: the region that the model's arena_region names, or the one that the devicetree
 * has chosen, or else .noinit. They are never zeroed at boot: a model writes before it reads.
 */
#if defined(TINYML_ARENA_REGION)
#define TINYML_ARENA_NODE DT_NODELABEL(TINYML_ARENA_REGION)
#elif DT_HAS_CHOSEN(tinyml_arena)
#define TINYML_ARENA_NODE DT_CHOSEN(tinyml_arena)
#endif

#ifdef TINYML_ARENA_NODE
#if !DT_NODE_HAS_STATUS(TINYML_ARENA_NODE, okay) ||                                                \
	!DT_NODE_HAS_PROP(TINYML_ARENA_NODE, zephyr_memory_region)
#error "The node for TinyML arenas (chosen tinyml,arena, or arena_region) must be an enabled zephyr,memory-region"
#endif
/* Zephyr's linker script gathers sections that are called like a region, or begin with its name. */
#define TINYML_ARENA_SECTION(model)                                                                \
	__attribute__((                                                                            \
		section(LINKER_DT_NODE_REGION_NAME(TINYML_ARENA_NODE) ".tinyml_arena." #model)))
#else
/* Gathered by linker/tinyml_arena.ld. */
#define TINYML_ARENA_SECTION(model) __attribute__((section(".tinyml_arena." #model)))
#endif

#ifdef CONFIG_TINYML_PROFILING
#include <tinyml/profile.h>
#include <zephyr/kernel.h>

#define TINYML_LAYER(index, call)                                                                  \
	do {                                                                                       \
		uint32_t tinyml_started = k_cycle_get_32();                                        \
                                                                                                   \
		call;                                                                              \
		tinyml_profile_record(index, k_cycle_get_32() - tinyml_started);                   \
	} while (0)
#endif

#endif /* TINYML_PORT_H_ */
