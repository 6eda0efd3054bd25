/* SPDX-License-Identifier: Apache-2.0 */

/* How Zephyr wants what <tinyml/tinyml.h> leaves to the platform. Included from there. */

#ifndef TINYML_PORT_H_
#define TINYML_PORT_H_

#include <zephyr/toolchain.h>

/* Gathered by linker/tinyml_arena.ld. Never zeroed at boot: a model writes before it reads. */
#define TINYML_ARENA_SECTION(model) Z_GENERIC_SECTION(.tinyml_arena.model)

#endif /* TINYML_PORT_H_ */
