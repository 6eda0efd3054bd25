/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/index.h>
#include <tinyml/maths.h>
#include <tinyml/sample.h>

struct point {
	int32_t low;
	int32_t high;
	float part; /* weight of `high` */
};

/* The two elements around a position on one axis; false if it is too far outside. */
static bool roi_align_locate_point(float v, int32_t size, struct point *point)
{
	if (!(v >= -1.0f && v <= (float)size)) {
		return false;
	}
	v = tinyml_bounded(v, 0.0f, (float)(size - 1));
	point->low = (int32_t)v;
	point->high = point->low < size - 1 ? point->low + 1 : point->low;
	point->part = v - (float)point->low;
	return true;
}

static float roi_align_at(const struct tinyml_roi_align *p, const float *plane, struct point y,
			  struct point x)
{
	const float part[4] = {
		(1.0f - y.part) * (1.0f - x.part) * plane[y.low * p->in_w + x.low],
		(1.0f - y.part) * x.part * plane[y.low * p->in_w + x.high],
		y.part * (1.0f - x.part) * plane[y.high * p->in_w + x.low],
		y.part * x.part * plane[y.high * p->in_w + x.high],
	};

	if (p->largest) {
		return tinyml_fmaxf(tinyml_fmaxf(part[0], part[1]), tinyml_fmaxf(part[2], part[3]));
	}
	return part[0] + part[1] + part[2] + part[3];
}

struct bin {
	float start;
	float size;
	int32_t samples;
};

static struct bin roi_align_bin_of(const struct tinyml_roi_align *p, float from, float to,
				   int32_t bins)
{
	const float shift = p->half_pixel ? 0.5f : 0.0f;
	const float start = from * p->scale - shift;
	float extent = to * p->scale - shift - start;

	if (!p->half_pixel && !(extent >= 1.0f)) {
		extent = 1.0f;
	}
	const float size = extent / (float)bins;
	const float samples = p->samples > 0 ? (float)p->samples : tinyml_ceilf(size);

	return (struct bin){start, size, (int32_t)tinyml_bounded(samples, 0.0f, 1000.0f)};
}

static float roi_align_pool(const struct tinyml_roi_align *p, const float *plane, struct bin rows,
			    struct bin cols, int32_t oy, int32_t ox)
{
	float result = 0.0f;
	bool first = true;

	for (int32_t i = 0; i < rows.samples; i++) {
		const float v = rows.start +
				((float)oy + ((float)i + 0.5f) / (float)rows.samples) * rows.size;

		for (int32_t j = 0; j < cols.samples; j++) {
			const float u =
				cols.start +
				((float)ox + ((float)j + 0.5f) / (float)cols.samples) * cols.size;
			struct point y;
			struct point x;
			float value = 0.0f;

			if (roi_align_locate_point(v, p->in_h, &y) &&
			    roi_align_locate_point(u, p->in_w, &x)) {
				value = roi_align_at(p, plane, y, x);
			}
			if (!p->largest) {
				result += value;
			} else if (first || value > result) {
				result = value;
			}
			first = false;
		}
	}
	const int32_t count = rows.samples * cols.samples;

	return p->largest || count == 0 ? result : result / (float)count;
}

void tinyml_roi_align_f32(const struct tinyml_roi_align *p, const float *x, const float *rois,
			  const int64_t *batch, float *y)
{
	const int32_t plane = p->in_h * p->in_w;

	for (int32_t r = 0; r < p->regions; r++) {
		const struct bin cols = roi_align_bin_of(p, rois[4 * r], rois[4 * r + 2], p->out_w);
		const struct bin rows =
			roi_align_bin_of(p, rois[4 * r + 1], rois[4 * r + 3], p->out_h);
		const float *image = &x[tinyml_index(batch[r], p->batches) * p->channels * plane];

		for (int32_t c = 0; c < p->channels; c++) {
			for (int32_t oy = 0; oy < p->out_h; oy++) {
				for (int32_t ox = 0; ox < p->out_w; ox++) {
					*y++ = roi_align_pool(p, &image[c * plane], rows, cols, oy,
							      ox);
				}
			}
		}
	}
}
