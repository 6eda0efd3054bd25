/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* See <tinyml/cmsis_nn_once.h>. Empty without CMSIS-NN. */

#if defined(__has_include)
#if __has_include(<arm_nnfunctions.h>)

/* The library does not compile cleanly with our warnings. */
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"

#define CMSIS_NN_USE_SINGLE_ROUNDING
#include <tinyml/cmsis_nn_once.h>

#include <arm_nnsupportfunctions.h>

/* Relative to the library's Include folder, which is in the search path. */
#include <../Source/ConvolutionFunctions/arm_convolve_1_x_n_s8.c>
#include <../Source/ConvolutionFunctions/arm_convolve_1x1_s8.c>
#include <../Source/ConvolutionFunctions/arm_convolve_1x1_s8_fast.c>
#include <../Source/ConvolutionFunctions/arm_convolve_s8.c>
#include <../Source/ConvolutionFunctions/arm_depthwise_conv_3x3_s8.c>
#include <../Source/ConvolutionFunctions/arm_depthwise_conv_s8.c>
#include <../Source/ConvolutionFunctions/arm_depthwise_conv_s8_opt.c>
#include <../Source/ConvolutionFunctions/arm_nn_mat_mult_kernel_row_offset_s8_s16.c>
#include <../Source/ConvolutionFunctions/arm_nn_mat_mult_kernel_s8_s16.c>
#include <../Source/FullyConnectedFunctions/arm_fully_connected_per_channel_s8.c>
#include <../Source/FullyConnectedFunctions/arm_fully_connected_s8.c>
#include <../Source/NNSupportFunctions/arm_nn_depthwise_conv_nt_t_s8.c>
#include <../Source/NNSupportFunctions/arm_nn_mat_mult_nt_t_s8.c>
#include <../Source/NNSupportFunctions/arm_nn_vec_mat_mult_t_per_ch_s8.c>
#include <../Source/NNSupportFunctions/arm_nn_vec_mat_mult_t_s8.c>

#if __has_include(<../Source/ConvolutionFunctions/arm_nn_mat_mult_kernel_s4_s16.c>)
#include <../Source/ConvolutionFunctions/arm_convolve_1x1_s4_fast.c>
#include <../Source/ConvolutionFunctions/arm_convolve_s4.c>
#include <../Source/ConvolutionFunctions/arm_depthwise_conv_s4.c>
#include <../Source/ConvolutionFunctions/arm_nn_mat_mult_kernel_s4_s16.c>
#include <../Source/FullyConnectedFunctions/arm_fully_connected_s4.c>
#include <../Source/NNSupportFunctions/arm_nn_mat_mult_nt_t_s4.c>
#include <../Source/NNSupportFunctions/arm_nn_vec_mat_mult_t_s4.c>
#endif

#endif
#endif

typedef int tinyml_cmsis_nn_once_is_not_empty; /* ISO C requires a declaration in every file */
