/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ACCURACY_H_
#define ACCURACY_H_

#include <tinyml/tinyml.h>

/* How many of 40 images a model takes for what they are; or the error of the first run that fails.
 */
int images_right(const struct tinyml_model *model);

#endif /* ACCURACY_H_ */
