/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* For the source that CMake generates: it defines the arenas of all models and their locks. */

#ifndef TINYML_ARENAS_H_
#define TINYML_ARENAS_H_

#include <tinyml/claim.h>
#include <tinyml/tinyml.h>
#include <zephyr/app_memory/app_memdomain.h>
#include <zephyr/devicetree.h>
#include <zephyr/linker/devicetree_regions.h>
#include <zephyr/toolchain.h>

/*
 * Where an arena goes: into a region of the devicetree, or with all others into .noinit, through
 * linker/tinyml_arena.ld. Neither is zeroed at boot: a model writes before it reads. Zephyr's
 * linker script collects the sections whose names begin with the name of a region.
 */
#define TINYML_IN_REGION(arena, node)                                                              \
	__attribute__((section(LINKER_DT_NODE_REGION_NAME(node) ".tinyml_arena." #arena)))
#ifdef CONFIG_USERSPACE
/* Accessible to threads in user mode; Zephyr zeroes this memory at boot. */
#define TINYML_IN_NOINIT(arena) K_APP_BMEM(tinyml_partition)
#else
#define TINYML_IN_NOINIT(arena) __attribute__((section(".tinyml_arena." #arena)))
#endif

/* With an NPU, no cache line of an arena may hold anything else: what the CPU writes there while
 * the NPU works would be lost when the lines are invalidated. An aligned member also pads the end.
 */
#if defined(CONFIG_TINYML_ETHOS_U) && defined(CONFIG_DCACHE)
#define TINYML_PART_ALIGNMENT 32 /* the line of the cores that have an Ethos-U beside them */
#else
#define TINYML_PART_ALIGNMENT 1
#endif

/* The part of one model. Even an empty part has an address. */
#define TINYML_PART(model, arena_bytes)                                                            \
	uint8_t model[(arena_bytes) > 0 ? (arena_bytes) : 1]                                       \
		__attribute__((aligned(TINYML_PART_ALIGNMENT)))

#if defined(CONFIG_USERSPACE)
/* System calls accept only mutexes in Zephyr's own section, which is always linked. */
#define TINYML_DEFINE_LOCK(lock) K_MUTEX_DEFINE(lock)
#elif defined(CONFIG_MULTITHREADING)
/* In other sections, so that the linker drops an unused lock. */
#define TINYML_DEFINE_LOCK(lock)                                                                   \
	static struct tinyml_lock lock = {.mutex = Z_MUTEX_INITIALIZER(lock.mutex)}
#else
#define TINYML_DEFINE_LOCK(lock) static struct tinyml_lock lock
#endif

/* An arena as large as the largest of its parts, and its lock. */
#define TINYML_DEFINE_ARENA(arena, placed)                                                         \
	static union tinyml_arena_##arena tinyml_arena_##arena placed                              \
		__attribute__((aligned(TINYML_ARENA_ALIGNMENT)));                                  \
	TINYML_DEFINE_LOCK(tinyml_lock_##arena)

/* The names that a model uses for them. */
#define TINYML_GIVE_ARENA(model, arena)                                                            \
	extern uint8_t model##_arena[sizeof(tinyml_arena_##arena.model)] ALIAS_OF(                 \
		tinyml_arena_##arena);                                                             \
	extern struct tinyml_lock model##_lock ALIAS_OF(tinyml_lock_##arena)

#endif /* TINYML_ARENAS_H_ */
