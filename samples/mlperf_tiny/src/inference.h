/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* From the bytes of `db` to the model's input, and from its output to the numbers of `results`. */

#ifndef MLPERF_TINY_INFERENCE_H_
#define MLPERF_TINY_INFERENCE_H_

#include <stdint.h>

#include <tinyml/tinyml.h>

/** What the bytes are that a runner sends. */
enum inference_data {
	INFERENCE_VALUES, /* of the type of the model's input: keyword spotting */
	INFERENCE_PIXELS, /* of 0 to 255: images */
	INFERENCE_FLOATS, /* real numbers: anomaly detection, whose result is an error */
};

/**
 * Before the first command.
 *
 * @param data  what `db` fills
 * @param input memory as large as the model's input
 */
void inference_start(const struct tinyml_model *model, enum inference_data kind,
		     const uint8_t *data, uint8_t *input);

/** Bytes of `data` for an input of so many elements and bytes: a constant expression. */
#define INFERENCE_BYTES(kind, elements, bytes)                                                     \
	((kind) == INFERENCE_VALUES ? (bytes)                                                      \
				    : ((kind) == INFERENCE_PIXELS ? (elements) : 4 * (elements)))

/** The real value of an element of a tensor. */
float inference_value(const struct tinyml_tensor *tensor, uint32_t index);

/** Store a real value as the tensor's type: quantised, or as it is. */
void inference_store(const struct tinyml_tensor *tensor, void *data, uint32_t index, float value);

/** Elements of a tensor of float32, int8 or uint8. */
uint32_t inference_elements(const struct tinyml_tensor *tensor);

#endif /* MLPERF_TINY_INFERENCE_H_ */
