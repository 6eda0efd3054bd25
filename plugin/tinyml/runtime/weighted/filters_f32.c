/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/maths_bits.h>

#include "filters_f32.h"
#include "tile_f32.h"

static const float filters_f32_zeros[8];

/* Some filters with all windows. */
static inline __attribute__((always_inline)) void
filters_f32_some(const struct tinyml_filters_f32 *f, struct tinyml_tile_f32 *t, const float *w,
		 const float *x, float *y, int32_t times, bool two, int32_t together)
{
	t->w_skip = f->w_skip * together * (int32_t)sizeof(float);
	w += f->first * together;
	for (; times > 0; times--, x += f->x_next, y += f->y_next) {
		float *const other = &y[f->y_other];

		if (f->go_on) {
			t->start0 = y;
			t->start1 = other;
		}
		if (two) {
			tinyml_tile_2_f32(t, together, x, &x[f->x_other], w, y, other);
		} else {
			tinyml_tile_1_f32(t, together, x, w, y);
		}
	}
}

void tinyml_filters_f32(const struct tinyml_filters_f32 *f, const float *x, float *y, int32_t times,
			bool two)
{
	struct tinyml_tile_f32 t = {
		.rows = f->rows,
		.count = f->count,
		.x_skip = f->x_skip * (int32_t)sizeof(float),
		.start0 = filters_f32_zeros,
		.start1 = filters_f32_zeros,
		.bias = filters_f32_zeros,
	};
	int32_t done = 0;

	while (done < f->filters) {
		const int32_t left = f->filters - done;
		const float *const w = &f->weights[f->filter_size * done];

		if (f->bias != NULL) {
			t.bias = &f->bias[done];
		}
		if (left >= 8) {
			filters_f32_some(f, &t, w, x, &y[done], times, two, 8);
			done += 8;
		} else if (left >= 4) {
			filters_f32_some(f, &t, w, x, &y[done], times, two, 4);
			done += 4;
		} else {
			filters_f32_some(f, &t, w, x, &y[done], times, two, 1);
			done += 1;
		}
	}
}

#if TINYML_TILE_VECTORS

void tinyml_limit_f32(float *y, int32_t count, float min, float max)
{
	if (min == -TINYML_INFINITYF && max == TINYML_INFINITYF) {
		return;
	}
	/* clang-format off */
	__asm__ volatile(
		"vdup.32 q1, %[min]\n\t"
		"vdup.32 q2, %[max]\n\t"
		"wlstp.32 lr, %[count], 2f\n"
		"1:\n\t"
		"vldrw.u32 q0, [%[y]]\n\t"
		"vpt.f32 gt, q1, q0\n\t"
		"vmovt q0, q1\n\t"
		"vpt.f32 gt, q0, q2\n\t"
		"vmovt q0, q2\n\t"
		"vstrw.32 q0, [%[y]], #16\n\t"
		"letp lr, 1b\n"
		"2:"
		: [y] "+l"(y)
		: [count] "r"(count), [min] "r"(min), [max] "r"(max)
		: "lr", "q0", "q1", "q2", "cc", "memory");
	/* clang-format on */
}

#else

void tinyml_limit_f32(float *y, int32_t count, float min, float max)
{
	const float *const end = y + count;

	if (max < TINYML_INFINITYF) {
		for (; y != end; y++) {
			const float value = *y < min ? min : *y;

			*y = value > max ? max : value;
		}
	} else if (min > -TINYML_INFINITYF) {
		for (; y != end; y++) {
			if (*y < min) {
				*y = min;
			}
		}
	}
}

#endif
