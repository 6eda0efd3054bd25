/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FILES_H_
#define FILES_H_

#include "update.h"

/** Keep one model after the other as a file, and play it from RAM; returns what was wrong. */
int tell_files(struct pack first, struct pack second);

#endif /* FILES_H_ */
