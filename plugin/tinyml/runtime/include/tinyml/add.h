/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Sums of two int8 tensors of the same shape, for cores with Helium. */

#ifndef TINYML_ADD_H_
#define TINYML_ADD_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** y = (a * a_factor + b * b_factor + offset) >> shift, limited to out_min and out_max. */
struct tinyml_add_s8 {
	int32_t count; /* elements */
	int32_t a_factor;
	int32_t b_factor;
	int32_t offset;
	int16_t shift;
	int16_t out_min;
	int16_t out_max;
};

/** y may be a or b. */
void tinyml_add_mve_s8(const struct tinyml_add_s8 *p, const int8_t *a, const int8_t *b, int8_t *y);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_ADD_H_ */
