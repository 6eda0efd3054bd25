/* SPDX-License-Identifier: Apache-2.0 */

/*
 * digits: compiled from model.onnx by tinyml 0.1.0. Do not edit.
 * digits.c states the model file and the options.
 */

#ifndef TINYML_MODEL_DIGITS_H_
#define TINYML_MODEL_DIGITS_H_

#include <tinyml/tinyml.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Identifies this header; digits.c refuses any other. */
#define DIGITS_SET 0xca8628005058fd9

/** RAM for the tensors of one run. */
#define DIGITS_ARENA_BYTES 1376

/** image: 1x1x8x8 float32 */
#define DIGITS_INPUT_BYTES 256
#define DIGITS_INPUT_ELEMENTS 64
#define DIGITS_INPUT_TYPE TINYML_FLOAT32
#define DIGITS_INPUT_RANK 4
#define DIGITS_INPUT_DIM0 1
#define DIGITS_INPUT_DIM1 1
#define DIGITS_INPUT_DIM2 8
#define DIGITS_INPUT_DIM3 8
/** logits: 1x10 float32 */
#define DIGITS_OUTPUT_BYTES 40
#define DIGITS_OUTPUT_ELEMENTS 10
#define DIGITS_OUTPUT_TYPE TINYML_FLOAT32
#define DIGITS_OUTPUT_RANK 2
#define DIGITS_OUTPUT_DIM0 1
#define DIGITS_OUTPUT_DIM1 10

/**
 * Compute the outputs from the inputs, all in memory of the caller: at least as many bytes as the macros
 * above say, aligned to their element type, none overlapping another. Inputs are only read. Returns 0,
 * TINYML_EINVAL if a buffer is NULL or not aligned, or TINYML_ECORRUPT (see TINYML_CHECK_WEIGHTS).
 */
int digits_run(const float *input, float *output);

/** Description for code that handles any model. */
extern const struct tinyml_model digits_model;

#ifdef __cplusplus
}
#endif

#endif /* TINYML_MODEL_DIGITS_H_ */
