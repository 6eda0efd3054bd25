/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Layers that sample an image at computed positions between its elements. Channels first. */

#ifndef TINYML_SAMPLE_H_
#define TINYML_SAMPLE_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** `v` between `low` and `high`; `low` if it is not a number. */
static inline float tinyml_bounded(float v, float low, float high)
{
	if (!(v > low)) {
		return low;
	}
	return v > high ? high : v;
}

/** Values outside an image. */
enum tinyml_outside {
	TINYML_OUTSIDE_ZEROS,
	TINYML_OUTSIDE_BORDER,
	TINYML_OUTSIDE_REFLECTION,
};

/** Up to three spatial axes; missing ones come first and have extent 1. */
struct tinyml_grid_sample {
	int32_t batches;
	int32_t channels;
	int32_t in[3];
	int32_t axes;      /* of the image: 1, 2 or 3 */
	int32_t positions; /* per batch */
	uint8_t taps;      /* per axis: 1 nearest, 2 linear, 4 cubic */
	uint8_t outside;   /* enum tinyml_outside */
	bool align_corners;
};

/** grid is (batches, positions, axes), the last image axis first, from -1 to 1. */
void tinyml_grid_sample_f32(const struct tinyml_grid_sample *p, const float *x, const float *grid,
			    float *y);

struct tinyml_roi_align {
	int32_t regions;
	int32_t batches;
	int32_t channels;
	int32_t in_h, in_w;
	int32_t out_h, out_w;
	int32_t samples; /* per bin and axis; 0: as many as the bin has elements */
	float scale;
	bool half_pixel;
	bool largest; /* the largest contribution instead of the mean */
};

/** rois is (regions, 4): x1, y1, x2, y2; batch gives the image of each region. */
void tinyml_roi_align_f32(const struct tinyml_roi_align *p, const float *x, const float *rois,
			  const int64_t *batch, float *y);

struct tinyml_deform_conv {
	int32_t batches;
	int32_t in_c, in_h, in_w;
	int32_t out_c, out_h, out_w;
	int32_t kernel_h, kernel_w;
	int32_t stride_h, stride_w;
	int32_t dilation_h, dilation_w;
	int32_t pad_top, pad_left;
	int32_t groups, offset_groups;
};

/** bias and mask may be NULL. */
void tinyml_deform_conv_f32(const struct tinyml_deform_conv *p, const float *x, const float *w,
			    const float *offset, const float *bias, const float *mask, float *y);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_SAMPLE_H_ */
