/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Cycles of every layer since the last reset (CONFIG_TINYML_PROFILING), and the clock that counts
 * them. The layers are those that ran in the thread that called tinyml_profile_reset() last, so
 * that models in other threads do not mix with them. */

#ifndef TINYML_PROFILE_H_
#define TINYML_PROFILE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zephyr/kernel.h>
#ifdef CONFIG_TINYML_PROFILING_COUNTER
#include <zephyr/timing/timing.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The time in cycles of the core's own counter, or of Zephyr's clock if the core has none. */
static inline uint32_t tinyml_profile_clock(void)
{
#ifdef CONFIG_TINYML_PROFILING_COUNTER
	return (uint32_t)timing_counter_get();
#else
	return k_cycle_get_32();
#endif
}

/** Frequency of that clock. */
static inline uint32_t tinyml_profile_clock_hz(void)
{
#ifdef CONFIG_TINYML_PROFILING_COUNTER
	return (uint32_t)timing_freq_get();
#else
	return (uint32_t)sys_clock_hw_cycles_per_sec();
#endif
}

/** Discard all readings, and count those of the calling thread; call it before a run. */
void tinyml_profile_reset(void);

/** Whether no other thread has called tinyml_profile_reset() since the calling one did. */
bool tinyml_profile_is_mine(void);

/** The number of layers that have run since then; layers past CONFIG_TINYML_PROFILING_LAYERS are
 * not counted. */
size_t tinyml_profile_layers(void);

/** Cycles of the layer with this index, the one in the comment of the generated C, in all calls. */
uint32_t tinyml_profile_cycles(size_t layer);

/** The call of the layer in the generated C, which begins with the name of its function; NULL
 * without CONFIG_TINYML_SHELL. */
const char *tinyml_profile_call(size_t layer);

/** Called by a model after each layer. */
void tinyml_profile_record(size_t layer, uint32_t cycles, const char *call);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PROFILE_H_ */
