/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** What the player checks of kernels for weights of four bits, whose records are those of kernels
 * for bytes. */

#ifndef TINYML_PLAY_NIBBLES_H_
#define TINYML_PLAY_NIBBLES_H_

#include <tinyml/play.h>

#ifdef __cplusplus
extern "C" {
#endif

uint32_t tinyml_check_conv_nibbles_s8(struct tinyml_check *check);
uint32_t tinyml_check_conv_nibbles_halves_s8(struct tinyml_check *check);
uint32_t tinyml_check_conv_mve_nibbles_once_s8(struct tinyml_check *check);
uint32_t tinyml_check_conv_mve_nibbles_twice_s8(struct tinyml_check *check);
uint32_t tinyml_check_conv_mve_nibbles_relu_s8(struct tinyml_check *check);
uint32_t tinyml_check_conv_nibbles_rvv_s8(struct tinyml_check *check);
uint32_t tinyml_check_nibbles_any_s8(struct tinyml_check *check);
uint32_t tinyml_check_nibbles_3x3_s8(struct tinyml_check *check);
uint32_t tinyml_check_nibbles_halves_s8(struct tinyml_check *check);
uint32_t tinyml_check_nibbles_halves_3x3_s8(struct tinyml_check *check);
uint32_t tinyml_check_nibbles_dsp_any_s8(struct tinyml_check *check);
uint32_t tinyml_check_nibbles_dsp_two_words_s8(struct tinyml_check *check);
uint32_t tinyml_check_nibbles_dsp_3x3_s8(struct tinyml_check *check);
uint32_t tinyml_check_nibbles_dsp_3x3_by_1_s8(struct tinyml_check *check);
uint32_t tinyml_check_nibbles_dsp_3x3_by_2_s8(struct tinyml_check *check);
uint32_t tinyml_check_dense_nibbles_s8(struct tinyml_check *check);
uint32_t tinyml_check_dense_nibbles_dsp_s8(struct tinyml_check *check);
uint32_t tinyml_check_dense_mve_nibbles_once_s8(struct tinyml_check *check);
uint32_t tinyml_check_dense_mve_nibbles_twice_s8(struct tinyml_check *check);
uint32_t tinyml_check_dense_nibbles_rvv_s8(struct tinyml_check *check);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_NIBBLES_H_ */
