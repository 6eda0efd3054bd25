/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The loops of depthwise convolutions with Helium over a row of outputs. */

#ifndef TINYML_CONV_DEPTHWISE_MVE_S8_H
#define TINYML_CONV_DEPTHWISE_MVE_S8_H

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/depthwise_conv.h>

struct row; /* what all positions of a row share */

/* Which blocks of a row: from which channel on, with which entries of the tables, how many. */
struct run {
	int32_t channel;
	int32_t entry;
	int32_t count;
};

struct tinyml_depthwise_mve {
	void (*convolve_row)(const struct tinyml_depthwise_conv_mve_s8 *p, struct row *row,
			     int8_t *y, struct run run);
	bool square; /* for 3x3 kernels */
};

#endif /* TINYML_CONV_DEPTHWISE_MVE_S8_H */
