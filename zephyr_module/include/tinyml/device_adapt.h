/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * All models of an image that learn (CONFIG_TINYML_ADAPT): models with `adapt:` in tinyml.yaml.
 * <tinyml/adapt.h> describes what they learn.
 *
 * With CONFIG_TINYML_ADAPT_SETTINGS, what they learn is saved in Zephyr's settings (NVS, ZMS, a
 * file) and taken back when the device starts. The application calls nothing for it:
 *
 *	gesture_run();
 *	gesture_learn(label);    saved when it returns, or CONFIG_TINYML_ADAPT_SAVE_MS later
 */

#ifndef TINYML_DEVICE_ADAPT_H_
#define TINYML_DEVICE_ADAPT_H_

#include <tinyml/adapt.h>
#include <zephyr/sys/iterable_sections.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What is saved of a model. */
struct tinyml_adapt_saved {
	uint32_t crc; /* of the learnt bytes that are saved; 0: none */
};

/** One model that learns. The build adds an entry for each. */
struct tinyml_adapt_entry {
	const struct tinyml_adapt *adapt;
	struct tinyml_adapt_saved *saved;
};

/** Run a block for each model that learns: TINYML_FOREACH_ADAPT(entry) { ... } */
#define TINYML_FOREACH_ADAPT(entry) STRUCT_SECTION_FOREACH(tinyml_adapt_entry, entry)

/** What a model learns; NULL if it does not. */
const struct tinyml_adapt *tinyml_adapt_of(const struct tinyml_model *model);

/**
 * Save what all models have learnt since the last save, now; a model that has forgotten everything
 * is saved as such. Nothing is written if nothing has changed, or if it fails the self-test.
 *
 * @return 0; -EBUSY if another thread uses a model, which is then saved later; or the error of
 * settings_save_one().
 */
int tinyml_adapt_save_all(void);

/** A model may have learnt something: it is saved as CONFIG_TINYML_ADAPT_SAVE_MS says. The
 * functions of models call it. Returns the status that it is given; nothing happens after an error.
 */
int tinyml_adapt_noted(const struct tinyml_adapt *adapt, int status);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_DEVICE_ADAPT_H_ */
