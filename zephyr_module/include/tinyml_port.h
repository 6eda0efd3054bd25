/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Zephyr's port header: defines what <tinyml/tinyml.h>, which includes it, leaves to the platform.
 */

#ifndef TINYML_PORT_H_
#define TINYML_PORT_H_

/* CMake generates the source that defines arenas and their locks, because models can share them. */
#define TINYML_ARENA(model, size_bytes)                                                            \
	extern uint8_t model##_arena[size_bytes] __attribute__((aligned(TINYML_ARENA_ALIGNMENT))); \
	extern struct tinyml_lock model##_lock
#define TINYML_LOCK(model) &model##_lock

/* Where constants go if the model's `weights:` is set: into RAM, copied at boot with all
 * initialised data, or into a memory of their own, through a linker script that CMake generates. */
#if defined(TINYML_WEIGHTS_IN_RAM)
#define TINYML_WEIGHTS_SECTION(model) __attribute__((section(".data.tinyml_weights." #model)))
#elif defined(TINYML_WEIGHTS_IN)
#define TINYML_WEIGHTS_SECTION(model)                                                              \
	__attribute__((section(".tinyml_weights." TINYML_WEIGHTS_IN "." #model)))
#endif

#ifdef CONFIG_TINYML_CLAIM_CHECK
/** Assert that the calling thread may use a model. */
void tinyml_check_claim(struct tinyml_lock *lock, const char *model);
#define TINYML_CHECK_CLAIM(model) tinyml_check_claim(&model##_lock, #model)
#endif

#ifdef CONFIG_MINIMAL_LIBC /* its <math.h> lacks these constants */
#define INFINITY __builtin_inff()
#define NAN      __builtin_nanf("")
#endif

#ifdef CONFIG_TINYML_CHECK_WEIGHTS
#define TINYML_CHECK_WEIGHTS 1
#endif

#ifdef CONFIG_TINYML_WATCH
#include <tinyml/profile.h>

#define TINYML_WATCH_CLOCK() tinyml_profile_clock()
#endif

#ifdef CONFIG_TINYML_ADAPT_SETTINGS
struct tinyml_adapt;
int tinyml_adapt_noted(const struct tinyml_adapt *adapt, int status);
#define TINYML_ADAPT_NOTED(adapt, status) tinyml_adapt_noted(adapt, status)
#endif

#ifdef CONFIG_TINYML_HOST
#define TINYML_HOST_PAYLOAD CONFIG_TINYML_HOST_PAYLOAD
#endif

#ifdef CONFIG_ASSERT
#include <zephyr/sys/__assert.h>

#define TINYML_ASSERT(condition) __ASSERT_NO_MSG(condition)
#endif

#ifdef CONFIG_TINYML_TRACING
/** Tell Zephyr's tracing that a layer begins (1) or ends (0). */
void tinyml_trace_layer(uint32_t layer, uint32_t begins);
#define TINYML_TRACE(index, begins) tinyml_trace_layer(index, begins)
#else
#define TINYML_TRACE(index, begins) ((void)0)
#endif

#ifdef CONFIG_TINYML_PROFILING
#include <tinyml/profile.h>

#ifdef CONFIG_TINYML_SHELL /* which shows the name of the layer's function */
#define TINYML_LAYER_TEXT(call) #call
#else
#define TINYML_LAYER_TEXT(call) NULL
#endif

#define TINYML_WRAP_LAYER(index, call)                                                             \
	do {                                                                                       \
		TINYML_TRACE(index, 1);                                                            \
		uint32_t tinyml_started = tinyml_profile_clock();                                  \
                                                                                                   \
		call;                                                                              \
		tinyml_profile_record(index, tinyml_profile_clock() - tinyml_started,              \
				      TINYML_LAYER_TEXT(call));                                    \
		TINYML_TRACE(index, 0);                                                            \
	} while (0)
#elif defined(CONFIG_TINYML_TRACING)
#define TINYML_WRAP_LAYER(index, call)                                                             \
	do {                                                                                       \
		TINYML_TRACE(index, 1);                                                            \
		call;                                                                              \
		TINYML_TRACE(index, 0);                                                            \
	} while (0)
#endif

#endif /* TINYML_PORT_H_ */
