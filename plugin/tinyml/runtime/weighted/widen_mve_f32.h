/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The lower halves of the words in a vector register, as floats. These are numbers because GNU
 * assemblers (2.40) write another register than the one that they are given, unless it is q0.
 */

#ifndef TINYML_WIDEN_MVE_F32_H_
#define TINYML_WIDEN_MVE_F32_H_

/* clang-format off */
#define TINYML_WIDEN_q4 ".inst.w 0xfe3f8e09\n\t" /* vcvtb.f32.f16 q4, q4 */
#define TINYML_WIDEN_q5 ".inst.w 0xfe3fae0b\n\t" /* vcvtb.f32.f16 q5, q5 */
/* clang-format on */

#endif /* TINYML_WIDEN_MVE_F32_H_ */
