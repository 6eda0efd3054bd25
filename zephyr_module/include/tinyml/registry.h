/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** All models of an image, for code that handles any of them. Requires CONFIG_TINYML_REGISTRY. */

#ifndef TINYML_REGISTRY_H_
#define TINYML_REGISTRY_H_

#include <tinyml/tinyml.h>
#include <zephyr/sys/iterable_sections.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One model. The build adds an entry for each; iterate over them with TINYML_FOREACH_MODEL(). */
struct tinyml_entry {
	const struct tinyml_model *model;
};

/** Run a block for each model, in the order of their names: TINYML_FOREACH_MODEL(entry) { ... } */
#define TINYML_FOREACH_MODEL(entry) STRUCT_SECTION_FOREACH(tinyml_entry, entry)

/** The model called @a name, or NULL. */
const struct tinyml_model *tinyml_find(const char *name);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_REGISTRY_H_ */
