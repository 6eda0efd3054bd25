/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Pairs of half-precision numbers in floating-point registers, as floats: those of s18 and s19 in
 * s16 to s19, or those of s20 to s23 in s16 to s23.
 */

#ifndef TINYML_WIDEN_VFP_F32_H_
#define TINYML_WIDEN_VFP_F32_H_

/* clang-format off */
#define TINYML_WIDEN_4                                                                             \
	"vcvtb.f32.f16 s16, s18\n\t"                                                               \
	"vcvtt.f32.f16 s17, s18\n\t"                                                               \
	"vcvtb.f32.f16 s18, s19\n\t"                                                               \
	"vcvtt.f32.f16 s19, s19\n\t"

#define TINYML_WIDEN_8                                                                             \
	"vcvtb.f32.f16 s16, s20\n\t"                                                               \
	"vcvtt.f32.f16 s17, s20\n\t"                                                               \
	"vcvtb.f32.f16 s18, s21\n\t"                                                               \
	"vcvtt.f32.f16 s19, s21\n\t"                                                               \
	"vcvtb.f32.f16 s20, s22\n\t"                                                               \
	"vcvtt.f32.f16 s21, s22\n\t"                                                               \
	"vcvtb.f32.f16 s22, s23\n\t"                                                               \
	"vcvtt.f32.f16 s23, s23\n\t"
/* clang-format on */

#endif /* TINYML_WIDEN_VFP_F32_H_ */
