/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DIGITS_H_
#define DIGITS_H_

#include <tinyml/tinyml.h>

/** Handwritten digits that no model was trained with. */
#define DIGITS 40u

/** Make an image the input of a model. */
void digits_show(const struct tinyml_model *model, unsigned int image);

/** How many of the forty handwritten digits a model recognises, or what a run returned if it
 * failed. */
int digits_right(const struct tinyml_model *model);

#endif /* DIGITS_H_ */
