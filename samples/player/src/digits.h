/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DIGITS_H_
#define DIGITS_H_

#include <tinyml/tinyml.h>

/** How many of forty handwritten digits a model recognises, or what a run returned if it failed. */
int digits_right(const struct tinyml_model *model);

#endif /* DIGITS_H_ */
