/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with Helium, sixteen channels at a time.
 *
 * Products of bytes are 16 bits wide, and so is the sum of two: 128 * 128 + 127 * 128 is below
 * 2^15 (at most one weight of a channel is -128). Multiplying splits a vector into its even and odd
 * lanes, and widening does so again: sum i holds channels i, i + 4, i + 8 and i + 12. Tables of
 * channels are in that order, block by block; narrowing undoes it.
 */

#include <tinyml/depthwise_conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/mve_s8.h"
#include "depthwise_mve_s8.h"
#include "ring_s8.h"

/* What all positions of a row share. The assembly below knows the layout. */
struct row {
	int8_t low[TINYML_LANES];  /* smallest output */
	int8_t high[TINYML_LANES]; /* largest output */
	int32_t zero;
	const int8_t **taps;       /* where they are */
	int32_t pairs;             /* of taps */
	int32_t odd;               /* whether there is another */
	const int8_t *end;         /* of the outputs */
	int8_t last[TINYML_LANES]; /* for the last outputs of a row, fewer than sixteen */
	/* What the assembly for 3x3 kernels loads again for the next position. */
	const int8_t *weights;
	const int32_t *bias;
	const int32_t *multiplier;
	const int8_t *shift;
	int32_t count;  /* of blocks */
	int32_t x_next; /* from behind the blocks of the input to the next position */
	int32_t y_next; /* the same for the output */
};
TINYML_OFFSET(struct row, low, 0);
TINYML_OFFSET(struct row, high, 16);
TINYML_OFFSET(struct row, zero, 32);
TINYML_OFFSET(struct row, taps, 36);
TINYML_OFFSET(struct row, pairs, 40);
TINYML_OFFSET(struct row, odd, 44);
TINYML_OFFSET(struct row, end, 48);
TINYML_OFFSET(struct row, weights, 68);
TINYML_OFFSET(struct row, bias, 72);
TINYML_OFFSET(struct row, multiplier, 76);
TINYML_OFFSET(struct row, shift, 80);
TINYML_OFFSET(struct row, count, 84);
TINYML_OFFSET(struct row, x_next, 88);
TINYML_OFFSET(struct row, y_next, 92);

/* Blocks at one position (for 3x3 kernels: from there on). The assembly loads the members into
 * these registers, in this order. */
struct blocks {
	const int8_t *x0, *x1, *x2; /* r1, r2, r3: rows of the input, for 3x3 kernels */
	const int8_t *weights;      /* r4 */
	const int32_t *bias;        /* r5 */
	const int32_t *multiplier;  /* r6 */
	int8_t *y;                  /* r8 */
	int32_t step;               /* r10: from one tap to the next (3x3), or from the taps */
	const struct row *row;      /* r11 */
	int32_t count;              /* r12 */
	const int8_t *shift;        /* r0 */
};
TINYML_OFFSET(struct blocks, x0, 0);
TINYML_OFFSET(struct blocks, x1, 4);
TINYML_OFFSET(struct blocks, x2, 8);
TINYML_OFFSET(struct blocks, weights, 12);
TINYML_OFFSET(struct blocks, bias, 16);
TINYML_OFFSET(struct blocks, multiplier, 20);
TINYML_OFFSET(struct blocks, y, 24);
TINYML_OFFSET(struct blocks, step, 28);
TINYML_OFFSET(struct blocks, row, 32);
TINYML_OFFSET(struct blocks, count, 36);
TINYML_OFFSET(struct blocks, shift, 40);

/* One instruction in a line. */
/* clang-format off */

/* q0 to q3 are the sums, q4 is the input, q5 the weights, q6 and q7 the products of even and of odd
 * lanes. The input of a second tap is loaded twice, because no register is left to keep it in.
 */
#define LOAD_BIAS                                                                                  \
	"vldrw.32 q0, [r5], #16\n\t"                                                               \
	"vldrw.32 q1, [r5], #16\n\t"                                                               \
	"vldrw.32 q2, [r5], #16\n\t"                                                               \
	"vldrw.32 q3, [r5], #16\n\t"

#define FIRST_TAP(address)                                                                         \
	"vldrb.8 q4, " address "\n\t"                                                              \
	"vldrb.8 q5, [r4], #16\n\t"                                                                \
	"vmullb.s8 q6, q4, q5\n\t"                                                                 \
	"vmullt.s8 q7, q4, q5\n\t"

#define SECOND_TAP(address, again)                                                                 \
	"vldrb.8 q4, " address "\n\t"                                                              \
	"vldrb.8 q5, [r4], #16\n\t"                                                                \
	"vmullb.s8 q4, q4, q5\n\t"                                                                 \
	"vadd.i16 q6, q6, q4\n\t"                                                                  \
	"vldrb.8 q4, " again "\n\t"                                                                \
	"vmullt.s8 q4, q4, q5\n\t"                                                                 \
	"vadd.i16 q7, q7, q4\n\t"

#define ADD_PRODUCTS                                                                               \
	"vmovlb.s16 q4, q6\n\t"                                                                    \
	"vadd.i32 q0, q0, q4\n\t"                                                                  \
	"vmovlt.s16 q6, q6\n\t"                                                                    \
	"vadd.i32 q2, q2, q6\n\t"                                                                  \
	"vmovlb.s16 q4, q7\n\t"                                                                    \
	"vadd.i32 q1, q1, q4\n\t"                                                                  \
	"vmovlt.s16 q7, q7\n\t"                                                                    \
	"vadd.i32 q3, q3, q7\n\t"

#define RESCALE(sum, multiply, round)                                                              \
	"vldrw.32 q5, [r6], #16\n\t"                                                               \
	"vldrb.s32 q4, [r0], #4\n\t"                                                               \
	multiply " " sum ", " sum ", q5\n\t"                                                       \
	round(sum)                                                                                 \
	"vrshl.s32 " sum ", " sum ", q4\n\t"

/* The shift rounds halves up, but negative halves must round down. */
#define HALVES_AWAY(sum)                                                                           \
	"vand q6, " sum ", q4\n\t"                                                                 \
	"vshr.s32 q6, q6, #31\n\t"                                                                 \
	"vqadd.s32 " sum ", " sum ", q6\n\t"
#define HALVES_UP(sum) ""

#define LIMIT                                                                                      \
	"vldrb.8 q4, [r11]\n\t"                                                                    \
	"vmax.s8 q0, q0, q4\n\t"                                                                   \
	"vldrb.8 q4, [r11, #16]\n\t"                                                               \
	"vmin.s8 q0, q0, q4\n\t"
#define NO_LIMIT ""

#define STORE_OUTPUTS(multiply, round, limit)                                                      \
	RESCALE("q0", multiply, round)                                                             \
	RESCALE("q1", multiply, round)                                                             \
	RESCALE("q2", multiply, round)                                                             \
	RESCALE("q3", multiply, round)                                                             \
	"ldr r12, [r11, #32]\n\t"                                                                  \
	"vqmovnb.s32 q0, q0\n\t"                                                                   \
	"vqmovnt.s32 q0, q2\n\t"                                                                   \
	"vqmovnb.s32 q1, q1\n\t"                                                                   \
	"vqmovnt.s32 q1, q3\n\t"                                                                   \
	"vqadd.s16 q0, q0, r12\n\t"                                                                \
	"vqadd.s16 q1, q1, r12\n\t"                                                                \
	"vqmovnb.s16 q0, q0\n\t"                                                                   \
	"vqmovnt.s16 q0, q1\n\t"                                                                   \
	limit                                                                                      \
	"vstrb.8 q0, [r8], #16\n\t"

/* The blocks in assembly as a whole: what a compiler spills between two pieces costs more than the
 * arithmetic. r7 and r9 are left alone, because they may be the frame pointer and the platform's
 * register.
 */
#define CONVOLVE_3X3(blocks, multiply, round, limit)                                               \
	do {                                                                                       \
		register const struct blocks *at __asm__("r0") = (blocks);                         \
                                                                                                   \
		__asm__ volatile(                                                                  \
			"ldm r0!, {r1, r2, r3, r4, r5, r6, r8, r10, r11, r12}\n\t"                 \
			"ldr r0, [r0]\n\t"                                                         \
			"mov lr, r12\n"                                                            \
			"1:\n\t"                                                                   \
			LOAD_BIAS                                                                  \
			"add r12, r1, r10\n\t"                                                     \
			FIRST_TAP("[r1], #16")                                                     \
			SECOND_TAP("[r12]", "[r12]")                                               \
			ADD_PRODUCTS                                                               \
			"add r12, r12, r10\n\t"                                                    \
			FIRST_TAP("[r12]")                                                         \
			"add r12, r2, r10\n\t"                                                     \
			SECOND_TAP("[r2]", "[r2], #16")                                            \
			ADD_PRODUCTS                                                               \
			FIRST_TAP("[r12]")                                                         \
			"add r12, r12, r10\n\t"                                                    \
			SECOND_TAP("[r12]", "[r12]")                                               \
			ADD_PRODUCTS                                                               \
			"add r12, r3, r10\n\t"                                                     \
			FIRST_TAP("[r3], #16")                                                     \
			SECOND_TAP("[r12]", "[r12]")                                               \
			ADD_PRODUCTS                                                               \
			"add r12, r12, r10\n\t"                                                    \
			FIRST_TAP("[r12]")                                                         \
			ADD_PRODUCTS                                                               \
			STORE_OUTPUTS(multiply, round, limit)                                      \
			"le lr, 1b\n\t"                                                            \
			"ldrd r4, r5, [r11, #68]\n\t"                                              \
			"ldrd r6, r0, [r11, #76]\n\t"                                              \
			"ldrd lr, r12, [r11, #84]\n\t"                                             \
			"add r1, r1, r12\n\t"                                                      \
			"add r2, r2, r12\n\t"                                                      \
			"add r3, r3, r12\n\t"                                                      \
			"ldr r12, [r11, #92]\n\t"                                                  \
			"add r8, r8, r12\n\t"                                                      \
			"ldr r12, [r11, #48]\n\t"                                                  \
			"cmp r8, r12\n\t"                                                          \
			"bne.w 1b\n\t"                                                             \
			: "+r"(at)                                                                 \
			:                                                                          \
			: "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r10", "r11", "r12", "lr",     \
			  "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");         \
	} while (false)

#define CONVOLVE_TAPS(blocks, multiply, round, limit)                                              \
	do {                                                                                       \
		register const struct blocks *at __asm__("r0") = (blocks);                         \
                                                                                                   \
		__asm__ volatile(                                                                  \
			"ldm r0!, {r1, r2, r3, r4, r5, r6, r8, r10, r11, r12}\n\t"                 \
			"ldr r0, [r0]\n\t"                                                         \
			"1:\n\t"                                                                   \
			LOAD_BIAS                                                                  \
			"ldrd r1, lr, [r11, #36]\n\t"                                              \
			"wls lr, lr, 3f\n\t"                                                       \
			"2:\n\t"                                                                   \
			"ldrd r2, r3, [r1], #8\n\t"                                                \
			"add r2, r2, r10\n\t"                                                      \
			"add r3, r3, r10\n\t"                                                      \
			FIRST_TAP("[r2]")                                                          \
			SECOND_TAP("[r3]", "[r3]")                                                 \
			ADD_PRODUCTS                                                               \
			"le lr, 2b\n\t"                                                            \
			"3:\n\t"                                                                   \
			"ldr r2, [r11, #44]\n\t"                                                   \
			"cbz r2, 4f\n\t"                                                           \
			"ldr r2, [r1]\n\t"                                                         \
			"add r2, r2, r10\n\t"                                                      \
			FIRST_TAP("[r2]")                                                          \
			ADD_PRODUCTS                                                               \
			"4:\n\t"                                                                   \
			STORE_OUTPUTS(multiply, round, limit)                                      \
			"ldr r12, [r11, #48]\n\t"                                                  \
			"add r10, r10, #16\n\t"                                                    \
			"cmp r8, r12\n\t"                                                          \
			"bne 1b\n\t"                                                               \
			: "+r"(at)                                                                 \
			:                                                                          \
			: "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r10", "r11", "r12", "lr",     \
			  "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");         \
	} while (false)

/* clang-format on */

/* How sums are rounded, and which outputs are possible. */
enum rounding {
	ROUND_ONCE,
	ROUND_TWICE,
	/* Twice, but nothing below the zero point is kept: how negative halves are rounded changes
	 * no output. The limits are those of a byte. */
	ROUND_TWICE_RELU,
};

static inline __attribute__((always_inline)) void
depthwise_conv_mve_convolve_3x3(const struct blocks *blocks, enum rounding rounding)
{
	if (rounding == ROUND_ONCE) {
		CONVOLVE_3X3(blocks, "vqdmulh.s32", HALVES_UP, LIMIT);
	} else if (rounding == ROUND_TWICE) {
		CONVOLVE_3X3(blocks, "vqrdmulh.s32", HALVES_AWAY, LIMIT);
	} else {
		CONVOLVE_3X3(blocks, "vqrdmulh.s32", HALVES_UP, NO_LIMIT);
	}
}

static inline __attribute__((always_inline)) void
depthwise_conv_mve_convolve_taps(const struct blocks *blocks, bool once)
{
	if (once) {
		CONVOLVE_TAPS(blocks, "vqdmulh.s32", HALVES_UP, LIMIT);
	} else {
		CONVOLVE_TAPS(blocks, "vqrdmulh.s32", HALVES_AWAY, LIMIT);
	}
}

/* Eight channels fill a vector with two neighbouring positions. */
static inline int32_t depthwise_conv_mve_positions(const struct tinyml_window *w)
{
	return w->in_c == TINYML_LANES / 2 && w->stride_w == 1 ? 2 : 1;
}

static inline struct blocks
depthwise_conv_mve_blocks_of(const struct tinyml_depthwise_conv_mve_s8 *p, const struct row *row,
			     struct run run)
{
	const int32_t taps = p->window.kernel_h * p->window.kernel_w;

	return (struct blocks){
		.weights = &p->weights[taps * run.entry],
		.bias = &p->bias[run.entry],
		.multiplier = &p->multiplier[run.entry],
		.row = row,
		.count = run.count,
		.shift = &p->shift[run.entry],
	};
}

/* Some blocks of a row of outputs of a 3x3 kernel. */
static inline __attribute__((always_inline)) void
depthwise_conv_mve_row_3x3(const struct tinyml_depthwise_conv_mve_s8 *p, struct row *row, int8_t *y,
			   struct run run, enum rounding rounding)
{
	const struct tinyml_window *w = &p->window;
	const int32_t channels = w->in_c, step = depthwise_conv_mve_positions(w) * channels;
	const int32_t next = w->stride_w * step, end = w->out_w * channels;
	struct blocks blocks = depthwise_conv_mve_blocks_of(p, row, run);

	const int8_t *x0 = &row->taps[0][run.channel];
	const int8_t *x1 = &row->taps[3][run.channel];
	const int8_t *x2 = &row->taps[6][run.channel];
	/* Outputs of fewer than sixteen channels are followed by some that the next block replaces;
	 * but nothing is written past the row. */
	const int32_t width = run.count * TINYML_LANES;
	int32_t at = run.channel, whole = 0;

	row->weights = blocks.weights;
	row->bias = blocks.bias;
	row->multiplier = blocks.multiplier;
	row->shift = blocks.shift;
	row->count = run.count;
	row->x_next = next - width;
	row->y_next = step - width;
	blocks.step = w->dilation_w * channels;
	while (at < end) {
		const bool last = end - at < TINYML_LANES;

		if (!last) {
			whole = (end - at - TINYML_LANES) / step + 1;
		}
		blocks.x0 = x0;
		blocks.x1 = x1;
		blocks.x2 = x2;
		blocks.y = last ? row->last : &y[at];
		row->end = blocks.y + (last ? 1 : whole) * step;
		depthwise_conv_mve_convolve_3x3(&blocks, rounding);
		if (last) {
			tinyml_copy(&y[at], row->last, end - at);
			whole = 1;
		}
		at += whole * step;
		x0 += whole * next;
		x1 += whole * next;
		x2 += whole * next;
	}
}

/* Some blocks of a row of outputs of any kernel. */
static inline __attribute__((always_inline)) void
depthwise_conv_mve_row_taps(const struct tinyml_depthwise_conv_mve_s8 *p, struct row *row,
			    int8_t *y, struct run run, bool once)
{
	const struct tinyml_window *w = &p->window;
	const int32_t channels = w->in_c, step = depthwise_conv_mve_positions(w) * channels;
	const int32_t next = w->stride_w * step, end = w->out_w * channels;
	struct blocks blocks = depthwise_conv_mve_blocks_of(p, row, run);

	blocks.step = run.channel;
	for (int32_t at = run.channel; at < end; at += step) {
		/* Outputs of fewer than sixteen channels are followed by some that the next block
		 * replaces; but nothing is written past the row. */
		const bool last = end - at < TINYML_LANES;

		blocks.y = last ? row->last : &y[at];
		row->end = blocks.y + run.count * TINYML_LANES;
		depthwise_conv_mve_convolve_taps(&blocks, once);
		if (last) {
			tinyml_copy(&y[at], row->last, end - at);
		}
		blocks.step += next;
	}
}

/* One function each, so that none reserves registers for the others, and only what a model uses is
 * linked.
 */
#define LOOP(name, square, call)                                                                   \
	__attribute__((noinline)) static void depthwise_conv_mve_row_##name(                       \
		const struct tinyml_depthwise_conv_mve_s8 *p, struct row *row, int8_t *y,          \
		struct run run)                                                                    \
	{                                                                                          \
		call;                                                                              \
	}                                                                                          \
	const struct tinyml_depthwise_mve tinyml_depthwise_mve_##name = {                          \
		depthwise_conv_mve_row_##name, square};
LOOP(3x3_once, true, depthwise_conv_mve_row_3x3(p, row, y, run, ROUND_ONCE))
LOOP(3x3_twice, true, depthwise_conv_mve_row_3x3(p, row, y, run, ROUND_TWICE))
LOOP(3x3_relu, true, depthwise_conv_mve_row_3x3(p, row, y, run, ROUND_TWICE_RELU))
LOOP(any_once, false, depthwise_conv_mve_row_taps(p, row, y, run, true))
LOOP(any_twice, false, depthwise_conv_mve_row_taps(p, row, y, run, false))
#undef LOOP

/* Where the taps of the first position of a row are, from input row `top` on. */
static void depthwise_conv_mve_find_taps(struct row *row, const struct tinyml_window *w,
					 const struct tinyml_ring *ring, const int8_t *x,
					 int32_t top)
{
	const bool copied = ring->rows != NULL;
	const int32_t row_bytes = copied ? ring->row_bytes : w->in_w * w->in_c;
	const int32_t ring_bytes = ring->count * ring->row_bytes;
	const int32_t step = w->dilation_w * w->in_c, next = w->dilation_h * row_bytes;
	const int8_t *at = copied ? tinyml_ring_row(ring, top) : &x[top * row_bytes];
	const int8_t **tap = row->taps;

	for (int32_t ky = 0; ky < w->kernel_h; ky++, at += next) {
		if (copied && at >= &ring->rows[ring_bytes]) {
			at -= ring_bytes;
		}
		for (int32_t kx = 0; kx < w->kernel_w; kx++) {
			*tap++ = &at[kx * step];
		}
	}
}

/* All rows of outputs; `taps` has room for the taps of a position. */
static inline void depthwise_conv_mve_convolve(const struct tinyml_depthwise_conv_mve_s8 *p,
					       const int8_t *x, int8_t *y, void *scratch,
					       const int8_t **taps)
{
	const struct tinyml_window *w = &p->window;
	const int32_t count = w->kernel_h * w->kernel_w, channels = w->in_c;
	const int32_t whole = channels / TINYML_LANES;
	struct row row = {.zero = p->out_zero, .taps = taps, .pairs = count / 2, .odd = count % 2};

	TINYML_ASSERT(scratch != NULL || channels >= TINYML_LANES);
	tinyml_fill(row.low, (int8_t)p->out_min, TINYML_LANES);
	tinyml_fill(row.high, (int8_t)p->out_max, TINYML_LANES);
	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * w->in_w * channels) {
		struct tinyml_ring ring = tinyml_ring(w, scratch);

		for (int32_t oy = 0; oy < w->out_h; oy++, y += w->out_w * channels) {
			const int32_t top = oy * w->stride_h - w->pad_top;

			if (scratch != NULL) {
				tinyml_ring_fill(&ring, w, (int8_t)p->in_zero, x, top + ring.count);
			}
			depthwise_conv_mve_find_taps(&row, w, &ring, x, top);
			p->loop->convolve_row(p, &row, y,
					      (struct run){0, 0, whole > 0 ? whole : 1});
			if (whole > 0 && channels % TINYML_LANES != 0) {
				/* The last block ends with the last channel, so some channels are
				 * computed twice. */
				p->loop->convolve_row(p, &row, y,
						      (struct run){channels - TINYML_LANES,
								   whole * TINYML_LANES, 1});
			}
		}
	}
}

/* A function of its own, so that 3x3 kernels need no stack for many taps. */
__attribute__((noinline)) static void
depthwise_conv_mve_convolve_any(const struct tinyml_depthwise_conv_mve_s8 *p, const int8_t *x,
				int8_t *y, void *scratch)
{
	const int8_t *taps[TINYML_DEPTHWISE_MVE_TAPS];

	TINYML_ASSERT(p->window.kernel_h * p->window.kernel_w <= TINYML_DEPTHWISE_MVE_TAPS);
	depthwise_conv_mve_convolve(p, x, y, scratch, taps);
}

void tinyml_depthwise_conv_mve_s8(const struct tinyml_depthwise_conv_mve_s8 *p, const int8_t *x,
				  int8_t *y, void *scratch)
{
	TINYML_ASSERT(p->window.in_c == p->window.out_c);
	if (p->loop->square) {
		const int8_t *taps[9];

		TINYML_ASSERT(p->window.kernel_h == 3 && p->window.kernel_w == 3);
		depthwise_conv_mve_convolve(p, x, y, scratch, taps);
	} else {
		depthwise_conv_mve_convolve_any(p, x, y, scratch);
	}
}

#endif /* TINYML_CORE_MVE */
