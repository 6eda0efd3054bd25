/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The loops of conv_pairs_s8.c over the filters of a stream, for other files that fill columns:
 * two windows, whose words take turns.
 */

#ifndef TINYML_CONV_PAIRS_DSP_S8_H_
#define TINYML_CONV_PAIRS_DSP_S8_H_

#include <stdint.h>

/* Where outputs go, and how they are made. Assembly knows the layout. */
struct tinyml_conv_pairs_outputs {
	int8_t *first;  /* of the first window */
	int8_t *second; /* of the second, or the same place */
	int32_t twice_zero;
	int32_t fours; /* filters still to come, in fours */
};

/** Outputs of both windows, four by four, limited to int8; returns what follows the filters. The
 * second window is written first.
 */
const uint32_t *tinyml_conv_pairs_fours_once(const uint32_t *filters, const uint32_t *columns,
					     const uint32_t *end,
					     struct tinyml_conv_pairs_outputs *to);
const uint32_t *tinyml_conv_pairs_fours_twice(const uint32_t *filters, const uint32_t *columns,
					      const uint32_t *end,
					      struct tinyml_conv_pairs_outputs *to);

/** The sums of a pair of filters at two windows, filter by filter; returns what follows the
 * weights.
 */
const uint32_t *tinyml_conv_pairs_dot_two(const uint32_t *filters, const uint32_t *columns,
					  const uint32_t *end, int32_t *sums);

#endif /* TINYML_CONV_PAIRS_DSP_S8_H_ */
