/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with DSP instructions: two windows meet two filters at a time. */

#include <stdbool.h>

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "dsp_s8.h"

/* One group of a convolution: which channels it reads, which filters it applies. */
struct group {
	int32_t first_in;  /* first input channel */
	int32_t in_c;      /* input channels */
	int32_t first_out; /* first output channel */
	int32_t out_c;     /* output channels */
	int32_t column;    /* elements of a column, in whole words */
	const uint32_t *filters;
};

/* A column that is being filled: a window of the input in the order of the filters' elements. Where
 * its pieces are not whole words they are put together in `bytes` first.
 */
struct column {
	int16x2_t *to; /* even and odd bytes of every word; the other column's are between them */
	int8_t *bytes;
	bool whole_words;
};

static inline void widen(const int8_t *bytes, int32_t count, int16x2_t *to)
{
	for (const int8_t *end = bytes + count; bytes != end; bytes += 4, to += 4) {
		const uint32_t word = tinyml_load_word(bytes);

		to[0] = tinyml_even_bytes(word);
		to[2] = tinyml_odd_bytes(word);
	}
}

/* Add a piece of the input, or of what is around it, to a column. */
static inline void add(struct column *column, const int8_t *from, int32_t count)
{
	if (column->whole_words) {
		widen(from, count, column->to);
		column->to += count;
		return;
	}
	for (; count >= 4; count -= 4, from += 4, column->bytes += 4) {
		const uint32_t word = tinyml_load_word(from);

		memcpy(column->bytes, &word, sizeof(word));
	}
	for (; count > 0; count--) {
		*column->bytes++ = *from++;
	}
}

static void add_padding(struct column *column, int32_t zero, int32_t count)
{
	const uint32_t word = (uint32_t)(uint8_t)zero * 0x01010101u;

	for (; count >= 4; count -= 4) {
		add(column, (const int8_t *)&word, 4);
	}
	add(column, (const int8_t *)&word, count);
}

/* A window that reaches beyond the input, where there is nothing but its zero point, or one with
 * gaps.
 */
__attribute__((noinline)) static void gather_any(const struct tinyml_conv_s8 *p,
						 const struct group *g, const int8_t *x,
						 int32_t top, int32_t left, struct column *column)
{
	const struct tinyml_window *w = &p->window;

	for (int32_t ky = 0; ky < w->kernel_h; ky++) {
		const int32_t row = top + ky * w->dilation_h;

		for (int32_t kx = 0; kx < w->kernel_w; kx++) {
			const int32_t col = left + kx * w->dilation_w;

			if (row < 0 || row >= w->in_h || col < 0 || col >= w->in_w) {
				add_padding(column, p->in_zero, g->in_c);
			} else {
				add(column, &x[(row * w->in_w + col) * w->in_c], g->in_c);
			}
		}
	}
}

/* The window at (top, left) as a column. */
static void gather(const struct tinyml_conv_s8 *p, const struct group *g, const int8_t *x,
		   int32_t top, int32_t left, struct column column)
{
	const struct tinyml_window *w = &p->window;
	const int32_t row_bytes = w->in_w * w->in_c;
	int8_t *bytes = column.bytes;

	x += g->first_in;
	if (top < 0 || left < 0 || top + w->kernel_h > w->in_h || left + w->kernel_w > w->in_w ||
	    w->dilation_h != 1 || w->dilation_w != 1 || g->in_c != w->in_c) {
		gather_any(p, g, x, top, left, &column);
	} else {
		x += top * row_bytes + left * w->in_c;
		for (int32_t ky = 0; ky < w->kernel_h; ky++, x += row_bytes) {
			add(&column, x, w->kernel_w * w->in_c);
		}
	}
	if (!column.whole_words) {
		widen(bytes, g->column, column.to);
	}
}

/* sums[0..1] += first filter · (column 0, column 1); sums[2..3] += second filter · the same.
 *
 * The two filters take turns, four elements each. Compilers need a fifth more instructions for this
 * loop, which is most of what a model executes. Returns what comes behind the filters.
 */
static inline const uint32_t *dot_2x2(const uint32_t *filters, int32_t words, const void *columns,
				      int32_t sums[4])
{
	const uint32_t *end = filters + words;
	int32_t s00 = sums[0], s01 = sums[1], s10 = sums[2], s11 = sums[3];
	uint32_t a, b, x0, x1, w;

#define FOUR_ELEMENTS                                                                              \
	"ldrd %[a], %[b], [%[filters]], #8\n\t"                                                    \
	"ldrd %[x0], %[x1], [%[columns]], #8\n\t"                                                  \
	"sxtb16 %[w], %[a]\n\t"                                                                    \
	"smlad %[s00], %[w], %[x0], %[s00]\n\t"                                                    \
	"smlad %[s01], %[w], %[x1], %[s01]\n\t"                                                    \
	"sxtb16 %[w], %[b]\n\t"                                                                    \
	"smlad %[s10], %[w], %[x0], %[s10]\n\t"                                                    \
	"smlad %[s11], %[w], %[x1], %[s11]\n\t"                                                    \
	"ldrd %[x0], %[x1], [%[columns]], #8\n\t"                                                  \
	"sxtb16 %[w], %[a], ror #8\n\t"                                                            \
	"smlad %[s00], %[w], %[x0], %[s00]\n\t"                                                    \
	"smlad %[s01], %[w], %[x1], %[s01]\n\t"                                                    \
	"sxtb16 %[w], %[b], ror #8\n\t"                                                            \
	"smlad %[s10], %[w], %[x0], %[s10]\n\t"                                                    \
	"smlad %[s11], %[w], %[x1], %[s11]\n\t"

	__asm__ volatile("sub %[w], %[end], %[filters]\n\t"
			 "lsls %[w], %[w], #28\n\t" /* an odd number: begin with the second */
			 "bmi 2f\n"
			 "1:\n\t" FOUR_ELEMENTS "2:\n\t" FOUR_ELEMENTS "cmp %[filters], %[end]\n\t"
			 "bne 1b\n\t"
			 : [filters] "+r"(filters), [columns] "+r"(columns), [s00] "+r"(s00),
			   [s01] "+r"(s01), [s10] "+r"(s10), [s11] "+r"(s11), [a] "=&r"(a),
			   [b] "=&r"(b), [x0] "=&r"(x0), [x1] "=&r"(x1), [w] "=&r"(w)
			 : [end] "r"(end)
			 : "memory", "cc");
#undef FOUR_ELEMENTS
	sums[0] = s00;
	sums[1] = s01;
	sums[2] = s10;
	sums[3] = s11;
	return filters;
}

/* The sums of both columns, for weights with a zero point. */
static void sum_columns(const int16x2_t *columns, int32_t elements, int32_t sums[2])
{
	const int16x2_t ones = 0x10001;

	sums[0] = sums[1] = 0;
	for (; elements > 0; elements -= 2, columns += 2) {
		sums[0] = __smlad(columns[0], ones, sums[0]);
		sums[1] = __smlad(columns[1], ones, sums[1]);
	}
}

/* All filters of a group at two positions. A pair of filters is bias, weights, factors and
 * exponents of both, one after the other: see ops/_dsp.py.
 */
__attribute__((noinline)) static void filters(const struct tinyml_conv_s8 *p, const struct group *g,
					      const int16x2_t *columns, int8_t *y0, int8_t *y1)
{
	const bool once = p->round_once;
	const int32_t low = p->out_min, high = p->out_max, twice_zero = 2 * p->out_zero + 1;
	const bool narrow = low > INT8_MIN || high < INT8_MAX;
	const int32_t words = g->column / 2, weight_zero = p->weight_zero;
	const uint32_t *w = g->filters;
	int32_t zero[2] = {0, 0};

	if (weight_zero != 0) {
		sum_columns(columns, g->column, zero);
	}
	for (int32_t left = g->out_c; left > 0; left -= 2) {
		const int32_t *bias = (const int32_t *)w;
		int32_t acc[4] = {bias[0], bias[0], bias[1], bias[1]};
		int32_t f0, f1, e0, e1;

		if (weight_zero != 0) {
			acc[0] -= weight_zero * zero[0];
			acc[1] -= weight_zero * zero[1];
			acc[2] -= weight_zero * zero[0];
			acc[3] -= weight_zero * zero[1];
		}
		w = dot_2x2(w + 2, words, columns, acc);
		f0 = (int32_t)w[0];
		f1 = (int32_t)w[1];
		e0 = ((const int8_t *)w)[8];
		e1 = ((const int8_t *)w)[9];
		w += 3;
		if (once) {
			acc[0] = tinyml_output_dsp(acc[0], f0, e0, true, twice_zero);
			acc[1] = tinyml_output_dsp(acc[1], f0, e0, true, twice_zero);
			acc[2] = tinyml_output_dsp(acc[2], f1, e1, true, twice_zero);
			acc[3] = tinyml_output_dsp(acc[3], f1, e1, true, twice_zero);
		} else {
			acc[0] = tinyml_output_dsp(acc[0], f0, e0, false, twice_zero);
			acc[1] = tinyml_output_dsp(acc[1], f0, e0, false, twice_zero);
			acc[2] = tinyml_output_dsp(acc[2], f1, e1, false, twice_zero);
			acc[3] = tinyml_output_dsp(acc[3], f1, e1, false, twice_zero);
		}
		if (narrow) {
			acc[0] = tinyml_clamp(acc[0], low, high);
			acc[1] = tinyml_clamp(acc[1], low, high);
			acc[2] = tinyml_clamp(acc[2], low, high);
			acc[3] = tinyml_clamp(acc[3], low, high);
		}
		/* The second first: where there is no second position, it is overwritten. */
		*y1++ = (int8_t)acc[1];
		*y0++ = (int8_t)acc[0];
		if (left > 1) { /* a last odd filter has no partner */
			*y1++ = (int8_t)acc[3];
			*y0++ = (int8_t)acc[2];
		}
	}
}

/* One group at all positions of one item. */
static void convolve(const struct tinyml_conv_s8 *p, const struct group *g, const int8_t *x,
		     int8_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w;
	const int32_t step = p->from_the_end ? -1 : 1;
	int32_t at = p->from_the_end ? positions - 1 : 0;
	int16x2_t *columns = scratch;
	struct column column = {
		.bytes = (int8_t *)&columns[g->column],
		.whole_words = g->in_c % 4 == 0,
	};

	memset(&column.bytes[g->column - 4], 0, column.whole_words ? 0 : 4); /* what fills it up */
	y += g->first_out;
	for (int32_t left = positions; left > 0; left--, at += step) {
		const int32_t row = at / w->out_w, col = at - row * w->out_w;
		const bool odd = (positions - left) % 2 != 0;

		column.to = &columns[odd];
		gather(p, g, x, row * w->stride_h - w->pad_top, col * w->stride_w - w->pad_left,
		       column);
		if (odd) {
			filters(p, g, columns, &y[(at - step) * w->out_c], &y[at * w->out_c]);
		} else if (left == 1) { /* a single last window is its own partner */
			filters(p, g, columns, &y[at * w->out_c], &y[at * w->out_c]);
		}
	}
}

void tinyml_conv_dsp_s8(const struct tinyml_conv_s8 *p, const int8_t *x, int8_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	struct group g = {.in_c = w->in_c / p->groups, .out_c = w->out_c / p->groups};
	int32_t pair;

	g.column = (w->kernel_h * w->kernel_w * g.in_c + 3) & ~3;
	pair = 5 + g.column / 2; /* words of two filters */
	for (int32_t item = 0; item < w->batches; item++) {
		const int32_t n = p->from_the_end ? w->batches - 1 - item : item;

		g.filters = (const uint32_t *)(const void *)p->weights;
		for (int32_t i = 0; i < p->groups; i++, g.filters += (g.out_c + 1) / 2 * pair) {
			g.first_in = i * g.in_c;
			g.first_out = i * g.out_c;
			convolve(p, &g, &x[n * w->in_h * w->in_w * w->in_c],
				 &y[n * w->out_h * w->out_w * w->out_c], scratch);
		}
	}
}

#endif /* TINYML_CORE_DSP */
