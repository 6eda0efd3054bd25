/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** A box by its corners. */

#ifndef TINYML_BOX_H_
#define TINYML_BOX_H_

#include "real.h"

struct overlap_box {
	float y0;
	float x0;
	float y1;
	float x1;
	float area; /* of the other members */
};

static inline struct overlap_box box_corners(float y0, float x0, float y1, float x1)
{
	return (struct overlap_box){y0, x0, y1, x1,
				    real_product(real_difference(x1, x0), real_difference(y1, y0))};
}

#endif /* TINYML_BOX_H_ */
