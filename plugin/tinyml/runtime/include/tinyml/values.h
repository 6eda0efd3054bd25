/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Real numbers into a model and out of it, whatever type its tensors have:
 *
 *	tinyml_set_input(&kws_model.inputs[0], features, KWS_INPUT_ELEMENTS);
 *	kws_run();
 *	tinyml_get_output(&kws_model.outputs[0], scores, KWS_OUTPUT_ELEMENTS);
 *
 * so that an application need not change when its model becomes int8. Quantised values are rounded
 * to the nearest, halves to even (as ONNX's QuantizeLinear and numpy do; TensorFlow Lite rounds
 * halves away from zero), and saturate at the ends of their type; so do integers without a scale,
 * those of 64 bits at 2^62. NaN becomes the lowest. No C library needed.
 */

#ifndef TINYML_VALUES_H_
#define TINYML_VALUES_H_

#include <tinyml/quantize.h>
#include <tinyml/tinyml.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of one element. */
static inline size_t tinyml_type_bytes(uint8_t type)
{
	switch (type) {
	case TINYML_FLOAT64:
	case TINYML_INT64:
	case TINYML_UINT64:
		return 8;
	case TINYML_FLOAT32:
	case TINYML_INT32:
	case TINYML_UINT32:
		return 4;
	case TINYML_INT16:
	case TINYML_UINT16:
		return 2;
	default:
		return 1;
	}
}

/** The number of elements of a tensor. */
static inline size_t tinyml_elements(const struct tinyml_tensor *tensor)
{
	return tensor->bytes / tinyml_type_bytes(tensor->type);
}

/* For types with more bits than a float's mantissa. */
static inline int64_t tinyml_quantize_wide(float steps, int32_t zero_point, int64_t low,
					   int64_t high)
{
	const float limit = 4611686018427387904.0f; /* 2^62 */

	if (!(steps > -limit)) {
		steps = -limit;
	} else if (steps > limit) {
		steps = limit;
	}

	int64_t whole = (int64_t)steps;
	const float rest = steps - (float)whole;
	const bool odd = (whole & 1) != 0;

	if (rest > 0.5f || (rest == 0.5f && odd)) {
		whole++;
	} else if (rest < -0.5f || (rest == -0.5f && odd)) {
		whole--;
	}
	whole += zero_point;
	return whole < low ? low : whole > high ? high : whole;
}

/** The integer that represents a real number in this tensor. */
static inline int64_t tinyml_quantize(const struct tinyml_tensor *tensor, float value)
{
	const float scale = tensor->scale != 0.0f ? tensor->scale : 1.0f;
	const int32_t zero = tensor->zero_point;

	switch (tensor->type) {
	case TINYML_BOOL:
		return value != 0.0f;
	case TINYML_INT8:
		return tinyml_quantize_even(value, scale, zero, INT8_MIN, INT8_MAX);
	case TINYML_UINT8:
		return tinyml_quantize_even(value, scale, zero, 0, UINT8_MAX);
	case TINYML_INT16:
		return tinyml_quantize_even(value, scale, zero, INT16_MIN, INT16_MAX);
	case TINYML_UINT16:
		return tinyml_quantize_even(value, scale, zero, 0, UINT16_MAX);
	case TINYML_INT32:
		return tinyml_quantize_wide(value / scale, zero, INT32_MIN, INT32_MAX);
	case TINYML_UINT32:
		return tinyml_quantize_wide(value / scale, zero, 0, UINT32_MAX);
	case TINYML_UINT64:
		return tinyml_quantize_wide(value / scale, zero, 0, INT64_MAX);
	default:
		return tinyml_quantize_wide(value / scale, zero, INT64_MIN, INT64_MAX);
	}
}

/** The real number that an integer represents in this tensor. */
static inline float tinyml_dequantize(const struct tinyml_tensor *tensor, int64_t stored)
{
	return tensor->scale != 0.0f ? (float)(stored - tensor->zero_point) * tensor->scale
				     : (float)stored;
}

/** Store one value as element @a index of a tensor at @a memory. */
static inline void tinyml_store_one(const struct tinyml_tensor *tensor, void *memory, size_t index,
				    float value)
{
	if (tensor->type == TINYML_FLOAT32) {
		((float *)memory)[index] = value;
		return;
	}
	if (tensor->type == TINYML_FLOAT64) {
		((double *)memory)[index] = (double)value;
		return;
	}

	const int64_t stored = tinyml_quantize(tensor, value);

	switch (tinyml_type_bytes(
		tensor->type)) { /* signed and unsigned types of one size are stored alike */
	case 8:
		((uint64_t *)memory)[index] = (uint64_t)stored;
		break;
	case 4:
		((uint32_t *)memory)[index] = (uint32_t)stored;
		break;
	case 2:
		((uint16_t *)memory)[index] = (uint16_t)stored;
		break;
	default:
		((uint8_t *)memory)[index] = (uint8_t)stored;
		break;
	}
}

/** The real number in element @a index of a tensor at @a memory. */
static inline float tinyml_load_one(const struct tinyml_tensor *tensor, const void *memory,
				    size_t index)
{
	switch (tensor->type) {
	case TINYML_FLOAT32:
		return ((const float *)memory)[index];
	case TINYML_FLOAT64:
		return (float)((const double *)memory)[index];
	case TINYML_INT8:
		return tinyml_dequantize(tensor, ((const int8_t *)memory)[index]);
	case TINYML_INT16:
		return tinyml_dequantize(tensor, ((const int16_t *)memory)[index]);
	case TINYML_UINT16:
		return tinyml_dequantize(tensor, ((const uint16_t *)memory)[index]);
	case TINYML_INT32:
		return tinyml_dequantize(tensor, ((const int32_t *)memory)[index]);
	case TINYML_UINT32:
		return tinyml_dequantize(tensor, ((const uint32_t *)memory)[index]);
	case TINYML_INT64:
		return tinyml_dequantize(tensor, ((const int64_t *)memory)[index]);
	case TINYML_UINT64:
		return (float)((const uint64_t *)memory)[index]; /* never quantised */
	default:
		return tinyml_dequantize(tensor, ((const uint8_t *)memory)[index]);
	}
}

/** Store values in a tensor at @a memory, as many as fit. Returns their number. */
static inline size_t tinyml_store(const struct tinyml_tensor *tensor, void *memory,
				  const float *values, size_t count)
{
	const size_t room = tinyml_elements(tensor);
	const size_t stored = count < room ? count : room;

	for (size_t i = 0; i < stored; i++) {
		tinyml_store_one(tensor, memory, i, values[i]);
	}
	return stored;
}

/** The values of a tensor at @a memory, at most @a count. Returns their number. */
static inline size_t tinyml_load(const struct tinyml_tensor *tensor, const void *memory,
				 float *values, size_t count)
{
	const size_t elements = tinyml_elements(tensor);
	const size_t loaded = count < elements ? count : elements;

	for (size_t i = 0; i < loaded; i++) {
		values[i] = tinyml_load_one(tensor, memory, i);
	}
	return loaded;
}

/** tinyml_store() for a model with its inputs in its arena. */
static inline size_t tinyml_set_input(const struct tinyml_tensor *input, const float *values,
				      size_t count)
{
	return tinyml_store(input, input->data, values, count);
}

/** tinyml_load() for a model with its outputs in its arena. */
static inline size_t tinyml_get_output(const struct tinyml_tensor *output, float *values,
				       size_t count)
{
	return tinyml_load(output, output->data, values, count);
}

#ifdef __cplusplus
}
#endif

#endif /* TINYML_VALUES_H_ */
