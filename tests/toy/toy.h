/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TOY_H_
#define TOY_H_

#include <tinyml/tinyml.h>

int toy_run(void);
void toy_reset(void);

extern const struct tinyml_model toy_model;

#endif /* TOY_H_ */
