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
#define DIGITS_SET 0xf68cb9951953b4c

/** RAM for the tensors of one run. */
#define DIGITS_ARENA_BYTES 1680

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

/** Write the input here before a run. It is part of the arena, and a run may overwrite it. */
float *digits_input(void);

/** Compute the outputs from the inputs. Returns 0, or TINYML_ECORRUPT: see TINYML_CHECK_WEIGHTS. */
int digits_run(void);

/** The output of the last run; valid until the next one, or until an input is written. */
const float *digits_output(void);

/** Description for code that handles any model. */
extern const struct tinyml_model digits_model;

#ifdef __cplusplus
}
#endif

#endif /* TINYML_MODEL_DIGITS_H_ */
