/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Detectors: which of many overlapping boxes are kept. */

#ifndef TINYML_BOXES_H_
#define TINYML_BOXES_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** ONNX's NonMaxSuppression. Real value = scale * (stored - zero), for kernels on bytes. */
struct tinyml_nms {
	int32_t batches;
	int32_t classes;
	int32_t boxes;
	int32_t most; /* rows of the output */
	bool center;  /* boxes are x, y of the centre, width, height; else two corners as y, x */
	bool scored;  /* only scores above a limit count */
	float box_scale;
	float score_scale;
	int32_t box_zero;
	int32_t score_zero;
	int32_t per_class; /* no more arrive in the limits; 0 if they are known */
};

/** What may arrive at run time. */
struct tinyml_nms_limits {
	int32_t per_class; /* boxes to choose */
	int32_t boxes;     /* of each batch that count, the first ones */
	float overlap;     /* a box that overlaps a chosen one by more is not chosen */
	float score;
};

/**
 * Choose boxes: `y` gets batch, class and box of each, `count` their number; the rest of `y` is
 * zero. Returns 0, or TINYML_EBOUND if there are more than `most`: then `y` has the first of them.
 * `chosen`: memory for as many boxes as a class can have; `heap`: 8 bytes (4 for bytes) per box.
 */
int tinyml_nms_f32(const struct tinyml_nms *p, struct tinyml_nms_limits limits, const float *boxes,
		   const float *scores, int64_t *y, int64_t *count, void *chosen, void *heap);
int tinyml_nms_s8(const struct tinyml_nms *p, struct tinyml_nms_limits limits, const int8_t *boxes,
		  const int8_t *scores, int64_t *y, int64_t *count, void *chosen, void *heap);

/** TensorFlow Lite's TFLite_Detection_PostProcess. */
struct tinyml_detection {
	int32_t boxes;
	int32_t box_stride;   /* numbers of each box, of which the first four count */
	int32_t score_stride; /* scores of each box */
	int32_t background;   /* scores before those of the classes: 0 or 1 */
	int32_t classes;
	int32_t most;      /* boxes to find */
	int32_t per_class; /* boxes of each class, if classes do not suppress each other */
	int32_t kinds;     /* classes for each box, if they do */
	float scales[4];   /* of the centre and the size: y, x, h, w */
	float score;       /* what a score must reach */
	float overlap;
	float box_scale; /* for kernels on bytes */
	float score_scale;
	float anchor_scale;
	int32_t box_zero;
	int32_t score_zero;
	int32_t anchor_zero;
};

/** Where results go; all of them are filled, with zeros after the last. */
struct tinyml_detected {
	float *boxes; /* y0, x0, y1, x1 of each */
	float *classes;
	float *scores;
	float *count;
};

/**
 * Find boxes of all classes together: of boxes that overlap, whatever their class, one stays.
 * `chosen`: 20 bytes for each of `most` boxes; `heap`: 8 bytes (4 for bytes) per box.
 */
void tinyml_detection_f32(const struct tinyml_detection *p, const float *boxes, const float *scores,
			  const float *anchors, struct tinyml_detected y, void *chosen, void *heap,
			  int32_t *order);
void tinyml_detection_s8(const struct tinyml_detection *p, const int8_t *boxes,
			 const int8_t *scores, const int8_t *anchors, struct tinyml_detected y,
			 void *chosen, void *heap, int32_t *order);

/** Find boxes class by class; `chosen`: 20 bytes for each of `per_class` boxes. */
void tinyml_detection_classes_f32(const struct tinyml_detection *p, const float *boxes,
				  const float *scores, const float *anchors,
				  struct tinyml_detected y, void *chosen, void *heap);
void tinyml_detection_classes_s8(const struct tinyml_detection *p, const int8_t *boxes,
				 const int8_t *scores, const int8_t *anchors,
				 struct tinyml_detected y, void *chosen, void *heap);

/** TensorFlow Lite's NonMaxSuppressionV4 and V5. */
struct tinyml_suppression {
	int32_t boxes;
	int32_t most; /* boxes to choose: rows of the outputs */
	float scale;  /* -0.5 / sigma, for the soft kind */
};

/** What may arrive at run time. */
struct tinyml_suppression_limits {
	float overlap; /* a box is dropped if it and a chosen one have this part in common */
	float score;   /* only scores above it count */
};

/** Where results go; all of them are filled, with zeros after the last. */
struct tinyml_suppressed {
	int32_t *indices;
	float *scores;
	int32_t *count;
};

/**
 * Choose boxes, the best first. `chosen`: 20 bytes for each box that can be chosen; `queue`: 8
 * bytes per box. The soft kind lowers the score of a box by what it shares with chosen ones instead
 * of dropping it; `since`: a number per box.
 */
void tinyml_suppression_f32(const struct tinyml_suppression *p,
			    struct tinyml_suppression_limits limits, const float *boxes,
			    const float *scores, struct tinyml_suppressed y, void *chosen,
			    void *queue);
void tinyml_soft_suppression_f32(const struct tinyml_suppression *p,
				 struct tinyml_suppression_limits limits, const float *boxes,
				 const float *scores, struct tinyml_suppressed y, void *chosen,
				 void *queue, int32_t *since);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_BOXES_H_ */
