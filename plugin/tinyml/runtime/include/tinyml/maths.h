/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The functions of <math.h> that kernels and generated code call: models link without libm. */

#ifndef TINYML_MATHS_H_
#define TINYML_MATHS_H_

#include <tinyml/maths_bits.h>
#include <tinyml/maths_exp.h>
#include <tinyml/maths_hyperbolic.h>
#include <tinyml/maths_trig.h>

#endif /* TINYML_MATHS_H_ */
