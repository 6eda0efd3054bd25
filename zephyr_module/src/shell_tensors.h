/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TINYML_SHELL_TENSORS_H_
#define TINYML_SHELL_TENSORS_H_

#include <tinyml/tinyml.h>
#include <zephyr/shell/shell.h>

/** A line with name, shape and type; @a kind is what it begins with. */
void tinyml_print_tensor(const struct shell *sh, const char *kind,
			 const struct tinyml_tensor *tensor);

/** An element, after a blank. */
void tinyml_print_element(const struct shell *sh, const struct tinyml_tensor *tensor, size_t index);

#endif /* TINYML_SHELL_TENSORS_H_ */
