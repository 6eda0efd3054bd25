/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** What checks of windows share. */

#ifndef TINYML_PLAYER_WINDOW_H_
#define TINYML_PLAYER_WINDOW_H_

#include <tinyml/conv.h>
#include <tinyml/play.h>

#define WINDOW_MOST 32767u /* extents with padding are int16 */

/** Elements of a tensor of images. */
uint32_t tinyml_check_image(int32_t batches, int32_t height, int32_t width, int32_t channels);

/**
 * The window moves over its input as convolutions do: every extent is at least 1. With enough
 * padding, windows may be outside the input. Reads operand 0 and writes operand 1, int8.
 *
 * @return the elements of the output
 */
uint32_t tinyml_check_window_s8(struct tinyml_check *check, const struct tinyml_window *window);

/** The same for elements of `size` bytes. */
uint32_t tinyml_check_window(struct tinyml_check *check, const struct tinyml_window *window,
			     uint32_t size);

/** The same for elements of other sizes in the output. */
uint32_t tinyml_check_window_between(struct tinyml_check *check, const struct tinyml_window *window,
				     uint32_t in_size, uint32_t out_size);

/** Whether no window is before the input or begins after it, for kernels that require this. */
bool tinyml_check_meets(const struct tinyml_window *window);

/** Elements of one axis that windows reach, with padding. */
static inline uint32_t tinyml_check_reach(int32_t out, int32_t stride, int32_t kernel,
					  int32_t dilation)
{
	return (uint32_t)(out - 1) * (uint32_t)stride +
	       (uint32_t)(kernel - 1) * (uint32_t)dilation + 1u;
}

/** Elements of a kernel. */
static inline uint32_t tinyml_check_taps(const struct tinyml_window *window)
{
	return tinyml_check_times((uint32_t)window->kernel_h, (uint32_t)window->kernel_w);
}

static inline uint32_t tinyml_check_words(uint32_t elements)
{
	return elements / 4u + (elements % 4u != 0u ? 1u : 0u);
}

/** The taps of a window along one axis that are inside the input. */
struct tinyml_play_cut {
	int32_t begin; /* the first one's place in the input */
	int32_t taps;
};

static inline struct tinyml_play_cut tinyml_play_cut(int32_t in, int32_t out, int32_t stride,
						     int32_t kernel, int32_t dilation, int32_t pad)
{
	const struct tinyml_span span = tinyml_span(out, stride, pad, kernel, dilation, in);

	return (struct tinyml_play_cut){span.start + span.first * dilation, span.end - span.first};
}

#endif /* TINYML_PLAYER_WINDOW_H_ */
