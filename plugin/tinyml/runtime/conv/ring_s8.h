/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The rows of an input that a depthwise kernel spans, copied with their padding, so that the output
 * can be written over the input and windows stay inside their rows. The file that includes this has
 * tinyml_copy() and tinyml_fill() for its vectors.
 */

#ifndef TINYML_RING_S8_H_
#define TINYML_RING_S8_H_

#include <tinyml/depthwise_conv.h>
#include <tinyml/tinyml.h>

struct tinyml_ring {
	int8_t *rows;
	int32_t count;     /* rows in the ring: what the kernel spans */
	int32_t row_bytes; /* bytes of a row with its padding */
	int32_t next; /* first row of the input that is not in the ring yet (may be negative) */
};

static inline struct tinyml_ring tinyml_ring(const struct tinyml_window *w, void *scratch)
{
	const int32_t reach = (w->kernel_w - 1) * w->dilation_w + (w->out_w - 1) * w->stride_w + 1;
	const int32_t given = w->pad_left + w->in_w;

	return (struct tinyml_ring){
		.rows = scratch,
		.count = (w->kernel_h - 1) * w->dilation_h + 1,
		.row_bytes = (reach > given ? reach : given) * w->in_c,
		.next = -w->pad_top,
	};
}

static inline int8_t *tinyml_ring_row(const struct tinyml_ring *ring, int32_t row)
{
	/* Rows above the input have negative numbers, at most as many as the ring holds. */
	TINYML_ASSERT(row + ring->count >= 0);
	return &ring->rows[(row + ring->count) % ring->count * ring->row_bytes];
}

/** Read rows of the input into the ring until it holds every row before `end`. */
static inline void tinyml_ring_fill(struct tinyml_ring *ring, const struct tinyml_window *w,
				    int8_t zero, const int8_t *x, int32_t end)
{
	const int32_t before = w->pad_left * w->in_c, inside = w->in_w * w->in_c;

	for (; ring->next < end; ring->next++) {
		int8_t *row = tinyml_ring_row(ring, ring->next);

		if (ring->next < 0 || ring->next >= w->in_h) {
			tinyml_fill(row, zero, ring->row_bytes);
			continue;
		}
		tinyml_fill(row, zero, before);
		tinyml_copy(&row[before], &x[ring->next * inside], inside);
		tinyml_fill(&row[before + inside], zero, ring->row_bytes - before - inside);
	}
}

#endif /* TINYML_RING_S8_H_ */
