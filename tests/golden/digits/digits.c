/* SPDX-License-Identifier: Apache-2.0 */

/*
 * digits: a neural network as plain C. Generated: do not edit; change the model instead.
 *
 * Model:    model.onnx
 * SHA-256:  10697d9d1e59806d2dc756f65880314af39148c4f60a960edc8b732e089e9562
 * Compiler: tinyml 0.1.0, target cortex-m3, kernels portable
 * Arena:    1680 bytes of RAM (no plan needs less than 1680)
 * Weights:  4192 bytes of flash
 * Work:     80,896 multiply-accumulates per run
 */

#if defined(__GNUC__) && !defined(__clang__)
/* GCC 11 and 12 can take a store of a loop for one through a null pointer, then its function for
 * one without effects, and remove the calls.
 */
#pragma GCC optimize("no-delete-null-pointer-checks")
#endif

#include "digits.h"

#include <tinyml/conv.h>
#include <tinyml/dense.h>
#include <tinyml/quantize.h>

#if TINYML_RUNTIME_INTERFACE != 13
#error "digits.c was generated for another version of the tinyml runtime: generate it again"
#endif
#if TINYML_CORE_DSP != 0 || TINYML_CORE_MVE != 0
#error "digits.c was generated for cortex-m3 and is compiled for another core: see --target"
#endif

#include "digits_weights.h"
#if TINYML_CHECK_WEIGHTS
#include <tinyml/crc32.h>
#endif

#if DIGITS_SET != 0xf68cb9951953b4c || DIGITS_WEIGHTS_SET != 0xb3a31a21f5a1fdd
#error "digits.c needs the header and the tables that were generated with it: generate all again"
#endif

/* All tensors of a run; the comment of each layer gives their offsets.
 * Layers whose output shares the memory of an input have no code: 1 (reshape), 5 (reshape).
 */
TINYML_ARENA(digits, 1680);

#define AT(type, offset) ((type *)(void *)&digits_arena[offset])

/* 0: quantize, by quantize loop
 *    "image_QuantizeLinear"
 *    1x1x8x8 -> 1x1x8x8
 *    arena 0..256 -> 0..64
 */
static void digits_quantize1(const float *x, int8_t *y)
{
	for (int32_t i = 0; i < 64; i++) {
		y[i] = (int8_t)tinyml_quantize_even(x[i], 0.003921569f, -128, -128, 127);
	}
}

static const struct tinyml_conv_stream_s8 digits_conv1_params = {
	.window = {
		.batches = 1, .in_h = 8, .in_w = 8, .in_c = 1, .out_h = 8, .out_w = 8, .out_c = 8,
		.kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1, .dilation_h = 1,
		.dilation_w = 1, .pad_top = 1, .pad_left = 1,
	},
	.filters = digits_conv1_filters, .groups = 1, .weight_zero = 0, .in_zero = -128,
	.out_zero = -128, .out_min = -128, .out_max = 127, .round_once = true,
	.from_the_end = false,
};

/* 2: conv, 4,608 MACs, by tinyml_conv_halves_s8
 *    "conv1"
 *    1x8x8x1 -> 1x8x8x8
 *    arena 0..64 -> 576..1088, scratch 64..188
 */
static void digits_conv1(const int8_t *x, int8_t *y, void *scratch)
{
	tinyml_conv_halves_s8(&digits_conv1_params, x, y, scratch);
}

static const struct tinyml_conv_stream_s8 digits_conv2_params = {
	.window = {
		.batches = 1, .in_h = 8, .in_w = 8, .in_c = 8, .out_h = 8, .out_w = 8, .out_c = 16,
		.kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1, .dilation_h = 1,
		.dilation_w = 1, .pad_top = 1, .pad_left = 1,
	},
	.filters = digits_conv2_filters, .groups = 1, .weight_zero = 0, .in_zero = -128,
	.out_zero = -128, .out_min = -128, .out_max = 127, .round_once = true,
	.from_the_end = false,
};

/* 3: conv, 73,728 MACs, by tinyml_conv_halves_s8
 *    "conv2"
 *    1x8x8x8 -> 1x8x8x16
 *    arena 576..1088 -> 0..1024, scratch 1088..1680
 */
static void digits_conv2(const int8_t *x, int8_t *y, void *scratch)
{
	tinyml_conv_halves_s8(&digits_conv2_params, x, y, scratch);
}

/* 4: max_pool, by max-pool loops
 *    "pool"
 *    1x8x8x16 -> 1x4x4x16
 *    arena 0..1024 -> 0..256
 */
static void digits_max_pool1(const int8_t *x, int8_t *y)
{
	for (int32_t o0 = 0; o0 < 4; o0++) {
		for (int32_t o1 = 0; o1 < 4; o1++) {
			for (int32_t c = 0; c < 16; c++) {
				int8_t best = -128;

				for (int32_t k0 = 0; k0 < 2; k0++) {
					const int32_t i0 = o0 * 2 + k0;
					for (int32_t k1 = 0; k1 < 2; k1++) {
						const int32_t i1 = o1 * 2 + k1;
						const int8_t v = x[(i0 * 8 + i1) * 16 + c];

						best = v > best ? v : best;
					}
				}
				y[(o0 * 4 + o1) * 16 + c] = best;
			}
		}
	}
}

static const struct tinyml_dense_stream_s8 digits_dense1_params = {
	.rows = 1, .inputs = 256, .outputs = 10, .filters = digits_dense1_filters, .weight_zero = 0,
	.out_zero = 34, .out_min = -128, .out_max = 127, .round_once = true,
};

/* 6: dense, 2,560 MACs, by tinyml_dense_quads_s8
 *    "dense"
 *    1x256 -> 1x10
 *    arena 0..256 -> 256..266
 */
static void digits_dense1(const int8_t *x, int8_t *y)
{
	tinyml_dense_quads_s8(&digits_dense1_params, x, y);
}

/* 7: dequantize, by dequantize loop
 *    "logits_DequantizeLinear"
 *    1x10 -> 1x10
 *    arena 256..266 -> 0..40
 */
static void digits_dequantize1(const int8_t *x, float *y)
{
	for (int32_t i = 0; i < 10; i++) {
		y[i] = 0.16654912f * (float)(x[i] - 34);
	}
}

#if TINYML_CHECK_WEIGHTS
/* Whether the constants are those that the compiler wrote; computed once if they are. */
static bool digits_intact(void)
{
	static bool intact;

	if (!intact) {
		uint32_t crc = 0;

		crc = tinyml_crc32(crc, digits_conv1_filters, sizeof(digits_conv1_filters));
		crc = tinyml_crc32(crc, digits_conv2_filters, sizeof(digits_conv2_filters));
		crc = tinyml_crc32(crc, digits_dense1_filters, sizeof(digits_dense1_filters));
		intact = crc == 0xf6642383u;
	}
	return intact;
}
#endif

int digits_run(void)
{
	TINYML_CHECK_CLAIM(digits);
#if TINYML_CHECK_WEIGHTS
	if (!digits_intact()) {
		return TINYML_ECORRUPT;
	}
#endif
	TINYML_LAYER(0, digits_quantize1(AT(float, 0), AT(int8_t, 0)));
	TINYML_LAYER(2, digits_conv1(AT(int8_t, 0), AT(int8_t, 576), AT(void, 64)));
	TINYML_LAYER(3, digits_conv2(AT(int8_t, 576), AT(int8_t, 0), AT(void, 1088)));
	TINYML_LAYER(4, digits_max_pool1(AT(int8_t, 0), AT(int8_t, 0)));
	TINYML_LAYER(6, digits_dense1(AT(int8_t, 0), AT(int8_t, 256)));
	TINYML_LAYER(7, digits_dequantize1(AT(int8_t, 256), AT(float, 0)));
	return 0;
}

float *digits_input(void)
{
	return AT(float, 0);
}

const float *digits_output(void)
{
	return AT(float, 0);
}

static const int32_t digits_input_shape[] = { 1, 1, 8, 8 };
static const int32_t digits_output_shape[] = { 1, 10 };

static const struct tinyml_tensor digits_inputs[] = {
	{
		.name = "image",
		.data = TINYML_TENSOR_DATA(AT(float, 0)),
		.shape = digits_input_shape,
		.bytes = 256,
		.scale = 0.0f,
		.zero_point = 0,
		.type = TINYML_FLOAT32,
		.rank = 4,
	},
};

static const struct tinyml_tensor digits_outputs[] = {
	{
		.name = "logits",
		.data = TINYML_TENSOR_DATA(AT(float, 0)),
		.shape = digits_output_shape,
		.bytes = 40,
		.scale = 0.0f,
		.zero_point = 0,
		.type = TINYML_FLOAT32,
		.rank = 2,
	},
};

const struct tinyml_model digits_model = {
	.name = "digits",
	.run = digits_run,
	.inputs = digits_inputs,
	.outputs = digits_outputs,
	.input_count = 1,
	.output_count = 1,
	.sha256 = { 0x10, 0x69, 0x7d, 0x9d, 0x1e, 0x59, 0x80, 0x6d },
	.arena_bytes = DIGITS_ARENA_BYTES,
	.lock = TINYML_LOCK(digits),
};
