/* SPDX-License-Identifier: Apache-2.0 */

/** Cycles of every layer of the last run. Needs CONFIG_TINYML_PROFILING. */

#ifndef TINYML_PROFILE_H_
#define TINYML_PROFILE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Forget the last run. */
void tinyml_profile_reset(void);

/** How many layers have run since then; those beyond CONFIG_TINYML_PROFILING_LAYERS are not
 * counted. */
size_t tinyml_profile_layers(void);

/** Cycles of the layer with this index, the one in the comment of the generated C. */
uint32_t tinyml_profile_cycles(size_t layer);

/** Called by a model after each layer. */
void tinyml_profile_record(size_t layer, uint32_t cycles);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PROFILE_H_ */
