/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * CMSIS-NN built to round once.
 *
 * The library rounds results twice, as TensorFlow Lite does, unless it is compiled with a macro
 * that holds for all of it. Models from ONNX require one rounding, and both kinds may
 * meet in one image. So the functions with a rounding in them exist a second time, under names of
 * their own: include this header instead of <arm_nnfunctions.h> to call those.
 */

#ifndef TINYML_CMSIS_NN_ONCE_H_
#define TINYML_CMSIS_NN_ONCE_H_

#define arm_convolve_s8                          tinyml_once_convolve_s8
#define arm_convolve_1x1_s8                      tinyml_once_convolve_1x1_s8
#define arm_convolve_1x1_s8_fast                 tinyml_once_convolve_1x1_s8_fast
#define arm_convolve_1_x_n_s8                    tinyml_once_convolve_1_x_n_s8
#define arm_depthwise_conv_s8                    tinyml_once_depthwise_conv_s8
#define arm_depthwise_conv_3x3_s8                tinyml_once_depthwise_conv_3x3_s8
#define arm_depthwise_conv_s8_opt                tinyml_once_depthwise_conv_s8_opt
#define arm_fully_connected_s8                   tinyml_once_fully_connected_s8
#define arm_fully_connected_per_channel_s8       tinyml_once_fully_connected_per_channel_s8
#define arm_nn_depthwise_conv_nt_t_s8            tinyml_once_depthwise_conv_nt_t_s8
#define arm_nn_mat_mult_kernel_s8_s16            tinyml_once_mat_mult_kernel_s8_s16
#define arm_nn_mat_mult_kernel_row_offset_s8_s16 tinyml_once_mat_mult_kernel_row_offset_s8_s16
#define arm_nn_mat_mult_nt_t_s8                  tinyml_once_mat_mult_nt_t_s8
#define arm_nn_vec_mat_mult_t_s8                 tinyml_once_vec_mat_mult_t_s8
#define arm_nn_vec_mat_mult_t_per_ch_s8          tinyml_once_vec_mat_mult_t_per_ch_s8
#define arm_convolve_s4                          tinyml_once_convolve_s4
#define arm_convolve_1x1_s4_fast                 tinyml_once_convolve_1x1_s4_fast
#define arm_depthwise_conv_s4                    tinyml_once_depthwise_conv_s4
#define arm_fully_connected_s4                   tinyml_once_fully_connected_s4
#define arm_nn_mat_mult_kernel_s4_s16            tinyml_once_mat_mult_kernel_s4_s16
#define arm_nn_mat_mult_nt_t_s4                  tinyml_once_mat_mult_nt_t_s4
#define arm_nn_vec_mat_mult_t_s4                 tinyml_once_vec_mat_mult_t_s4

#include <arm_nnfunctions.h>

#endif /* TINYML_CMSIS_NN_ONCE_H_ */
