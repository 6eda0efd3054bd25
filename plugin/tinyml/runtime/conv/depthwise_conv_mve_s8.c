/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with Helium, sixteen channels at a time.
 *
 * Products of bytes are 16 bits wide, and so is the sum of two: 127 * 128 * 2 is below 2^15 (no
 * weight is -128). Multiplying splits a vector into its even and odd lanes, and widening does so
 * again: sum i holds channels i, i + 4, i + 8 and i + 12. Tables of channels are in that order,
 * block by block; narrowing undoes it.
 */

#include <tinyml/depthwise_conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/mve_s8.h"
#include "ring_s8.h"

struct sums {
	int32x4_t s0, s1, s2, s3;
};

/* The two functions below are in assembly because they use all eight vector registers: a compiler
 * that reorders their instructions runs out of registers and spills.
 */
#define WIDEN_AND_ADD                                                                              \
	"vmovlb.s16 %q[x], %q[even]\n\t"                                                           \
	"vadd.i32 %q[s0], %q[s0], %q[x]\n\t"                                                       \
	"vmovlt.s16 %q[even], %q[even]\n\t"                                                        \
	"vadd.i32 %q[s2], %q[s2], %q[even]\n\t"                                                    \
	"vmovlb.s16 %q[x], %q[odd]\n\t"                                                            \
	"vadd.i32 %q[s1], %q[s1], %q[x]\n\t"                                                       \
	"vmovlt.s16 %q[odd], %q[odd]\n\t"                                                          \
	"vadd.i32 %q[s3], %q[s3], %q[odd]"

static inline void add_tap(struct sums *sums, const int8_t *x, const int8_t *w)
{
	int8x16_t vx, vw;
	int16x8_t even, odd;

	__asm__("vldrb.8 %q[x], [%[from]]\n\t"
		"vldrb.8 %q[w], [%[weights]]\n\t"
		"vmullb.s8 %q[even], %q[x], %q[w]\n\t"
		"vmullt.s8 %q[odd], %q[x], %q[w]\n\t" WIDEN_AND_ADD
		: [s0] "+w"(sums->s0), [s1] "+w"(sums->s1), [s2] "+w"(sums->s2),
		  [s3] "+w"(sums->s3), [x] "=&w"(vx), [w] "=&w"(vw), [even] "=&w"(even),
		  [odd] "=&w"(odd)
		: [from] "r"(x), [weights] "r"(w)
		: "memory");
}

static inline void add_two_taps(struct sums *sums, const int8_t *x0, const int8_t *x1,
				const int8_t *w)
{
	int8x16_t vx, vw;
	int16x8_t even, odd;

	__asm__("vldrb.8 %q[x], [%[first]]\n\t"
		"vldrb.8 %q[w], [%[weights]]\n\t"
		"vmullb.s8 %q[even], %q[x], %q[w]\n\t"
		"vmullt.s8 %q[odd], %q[x], %q[w]\n\t"
		"vldrb.8 %q[x], [%[second]]\n\t"
		"vldrb.8 %q[w], [%[weights], #16]\n\t"
		"vmullb.s8 %q[x], %q[x], %q[w]\n\t"
		"vadd.i16 %q[even], %q[even], %q[x]\n\t"
		"vldrb.8 %q[x], [%[second]]\n\t" /* again, because the product replaced it */
		"vmullt.s8 %q[x], %q[x], %q[w]\n\t"
		"vadd.i16 %q[odd], %q[odd], %q[x]\n\t" WIDEN_AND_ADD
		: [s0] "+w"(sums->s0), [s1] "+w"(sums->s1), [s2] "+w"(sums->s2),
		  [s3] "+w"(sums->s3), [x] "=&w"(vx), [w] "=&w"(vw), [even] "=&w"(even),
		  [odd] "=&w"(odd)
		: [first] "r"(x0), [second] "r"(x1), [weights] "r"(w)
		: "memory");
}

/* How sums become outputs. */
struct rescaling {
	const int32_t *multiplier;
	const int8_t *shift;
	int16_t zero;
	int8_t low, high;
};

/* Turn sixteen sums into bytes; their entries in the tables begin at `at`. */
static inline int8x16_t rescale_sums(const struct sums *sums, const struct rescaling *to,
				     int32_t at, bool once)
{
	const int32_t *m = &to->multiplier[at];
	const int8_t *s = &to->shift[at];
	const int32x4_t q0 = tinyml_rescale_4(sums->s0, vldrwq_s32(m), vldrbq_s32(s), once);
	const int32x4_t q1 = tinyml_rescale_4(sums->s1, vldrwq_s32(m + 4), vldrbq_s32(s + 4), once);
	const int32x4_t q2 = tinyml_rescale_4(sums->s2, vldrwq_s32(m + 8), vldrbq_s32(s + 8), once);
	const int32x4_t q3 =
		tinyml_rescale_4(sums->s3, vldrwq_s32(m + 12), vldrbq_s32(s + 12), once);
	int16x8_t even = vqmovntq_s32(vqmovnbq_s32(vuninitializedq_s16(), q0), q2);
	int16x8_t odd = vqmovntq_s32(vqmovnbq_s32(vuninitializedq_s16(), q1), q3);
	int8x16_t bytes = vuninitializedq_s8();

	even = vqaddq_n_s16(even, to->zero);
	odd = vqaddq_n_s16(odd, to->zero);
	bytes = vqmovntq_s16(vqmovnbq_s16(bytes, even), odd);
	return vminq_s8(vmaxq_s8(bytes, vdupq_n_s8(to->low)), vdupq_n_s8(to->high));
}

/* Eight channels fill a vector with two neighbouring positions. */
static inline int32_t positions(const struct tinyml_window *w)
{
	return w->in_c == TINYML_LANES / 2 && w->stride_w == 1 ? 2 : 1;
}

/* All channels at one position, `at` bytes into the rows; of fewer than sixteen channels, `bytes`
 * of the outputs are written.
 */
static inline void convolve_position(const struct tinyml_depthwise_conv_mve_s8 *p,
				     const struct rescaling *to, const int8_t *const rows[],
				     int32_t at, int8_t *y, int32_t bytes)
{
	const int32_t channels = p->window.in_c, step = p->window.dilation_w * channels;
	const int32_t last = channels < TINYML_LANES ? 0 : channels - TINYML_LANES;
	const int32_t *bias = p->bias;
	const int8_t *k = p->weights;

	/* The last block ends with the last channel, so some channels may be computed twice. */
	for (int32_t block = 0; block < channels; block += TINYML_LANES, bias += TINYML_LANES) {
		const int32_t c = block < last ? block : last;
		struct sums sums = {vldrwq_s32(bias), vldrwq_s32(&bias[4]), vldrwq_s32(&bias[8]),
				    vldrwq_s32(&bias[12])};

		for (int32_t ky = 0; ky < p->window.kernel_h; ky++) {
			const int8_t *x = &rows[ky][at + c];

			for (int32_t left = p->window.kernel_w; left >= 2; left -= 2) {
				add_two_taps(&sums, x, &x[step], k);
				x += 2 * step;
				k += 2 * TINYML_LANES;
			}
			if (p->window.kernel_w % 2 != 0) {
				add_tap(&sums, x, k);
				k += TINYML_LANES;
			}
		}
		if (channels >= TINYML_LANES) {
			vstrbq_s8(&y[c], rescale_sums(&sums, to, block, p->round_once));
		} else {
			vstrbq_p_s8(y, rescale_sums(&sums, to, block, p->round_once),
				    vctp8q((uint32_t)bytes));
		}
	}
}

/* Limits and zero point of the outputs; the assembly below knows their offsets. */
struct outputs {
	int8_t low[TINYML_LANES];
	int8_t high[TINYML_LANES];
	int32_t zero;
};

/* Blocks of a 3x3 kernel at one position, in the order in which the assembly loads them. */
struct blocks {
	const int8_t *x0, *x1, *x2; /* r1, r2, r3: rows of the input */
	const int8_t *weights;      /* r4 */
	const int32_t *bias;        /* r5 */
	const int32_t *multiplier;  /* r6 */
	int8_t *y;                  /* r8 */
	int32_t step;               /* r10: bytes from one tap to the next */
	const struct outputs *to;   /* r11 */
	int32_t count;              /* r12, then lr */
	const int8_t *shift;        /* r0 */
};

/* q0 to q3 are the sums, q4 the input, q5 the weights, q6 and q7 the products of even and of odd
 * lanes; r12 is the address of a tap. The input of a second tap is loaded twice, because no
 * register is left to keep it in.
 */
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
	"vldrb.s32 q4, [r0], #4\n\t" multiply " " sum ", " sum                                     \
	", q5\n\t" round(sum) "vrshl.s32 " sum ", " sum ", q4\n\t"

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

/* In assembly as a whole: what a compiler spills between two pieces costs more than the arithmetic.
 * r7 and r9 are left alone, because they may be the frame pointer and the platform's register.
 */
#define CONVOLVE_3X3(blocks, multiply, round, limit)                                               \
	do {                                                                                       \
		register const struct blocks *at __asm__("r0") = (blocks);                         \
                                                                                                   \
		__asm__ volatile(                                                                  \
			"ldm r0!, {r1, r2, r3, r4, r5, r6, r8, r10, r11, r12}\n\t"                 \
			"ldr r0, [r0]\n\t"                                                         \
			"dls lr, r12\n"                                                            \
			"1:\n\t"                                                                   \
			"vldrw.32 q0, [r5], #16\n\t"                                               \
			"vldrw.32 q1, [r5], #16\n\t"                                               \
			"vldrw.32 q2, [r5], #16\n\t"                                               \
			"vldrw.32 q3, [r5], #16\n\t"                                               \
			"add r12, r1, r10\n\t" FIRST_TAP("[r1], #16") SECOND_TAP("[r12]", "[r12]") \
				ADD_PRODUCTS                                                       \
			"add r12, r12, r10\n\t" FIRST_TAP(                                         \
				"[r12]") "add r12, r2, r10\n\t" SECOND_TAP("[r2]", "[r2], #16")    \
				ADD_PRODUCTS FIRST_TAP(                                            \
					"[r12]") "add r12, r12, r10\n\t" SECOND_TAP("[r12]",       \
										    "[r12]")       \
					ADD_PRODUCTS "add r12, r3, r10\n\t" FIRST_TAP("[r3], #16") \
						SECOND_TAP("[r12]", "[r12]") ADD_PRODUCTS          \
			"add r12, r12, r10\n\t" FIRST_TAP("[r12]") ADD_PRODUCTS RESCALE(           \
				"q0", multiply, round) RESCALE("q1", multiply, round)              \
				RESCALE("q2", multiply, round) RESCALE(                            \
					"q3", multiply, round) "ldr r12, [r11, #32]\n\t"           \
							       "vqmovnb.s32 q0, q0\n\t"            \
							       "vqmovnt.s32 q0, q2\n\t"            \
							       "vqmovnb.s32 q1, q1\n\t"            \
							       "vqmovnt.s32 q1, q3\n\t"            \
							       "vqadd.s16 q0, q0, r12\n\t"         \
							       "vqadd.s16 q1, q1, r12\n\t"         \
							       "vqmovnb.s16 q0, q0\n\t"            \
							       "vqmovnt.s16 q0, q1\n\t" limit      \
							       "vstrb.8 q0, [r8], #16\n\t"         \
							       "le lr, 1b"                         \
			: "+r"(at)                                                                 \
			:                                                                          \
			: "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r10", "r11", "r12", "lr",     \
			  "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory");               \
	} while (false)

/* How sums are rounded, and which outputs are possible. */
enum rounding {
	ROUND_ONCE,
	ROUND_TWICE,
	/* Twice, but nothing below the zero point is kept: how negative halves are rounded changes
	 * no output. The limits are those of a byte. */
	ROUND_TWICE_RELU,
};

static inline __attribute__((always_inline)) void convolve_3x3(const struct blocks *blocks,
							       enum rounding rounding)
{
	if (rounding == ROUND_ONCE) {
		CONVOLVE_3X3(blocks, "vqdmulh.s32", HALVES_UP, LIMIT);
	} else if (rounding == ROUND_TWICE) {
		CONVOLVE_3X3(blocks, "vqrdmulh.s32", HALVES_AWAY, LIMIT);
	} else {
		CONVOLVE_3X3(blocks, "vqrdmulh.s32", HALVES_UP, NO_LIMIT);
	}
}

/* One row of outputs of any kernel. */
__attribute__((noinline)) static void row_any(const struct tinyml_depthwise_conv_mve_s8 *p,
					      const int8_t *const rows[], int8_t *y)
{
	const struct tinyml_window *w = &p->window;
	const struct rescaling to = {p->multiplier, p->shift, p->out_zero, (int8_t)p->out_min,
				     (int8_t)p->out_max};
	const int32_t step = positions(w) * w->out_c, row_bytes = w->out_w * w->out_c;

	for (int32_t done = 0, at = 0; done < row_bytes; done += step) {
		const int32_t left = row_bytes - done;

		convolve_position(p, &to, rows, at, &y[done], left < step ? left : step);
		at += positions(w) * w->stride_w * w->in_c;
	}
}

/* Which blocks of a row: from which channel on, with which entries of the tables, how many. */
struct run {
	int32_t channel;
	int32_t entry;
	int32_t count;
};

/* Some blocks of a row of outputs of a 3x3 kernel. */
static inline __attribute__((always_inline)) void
row_3x3(const struct tinyml_depthwise_conv_mve_s8 *p, const int8_t *const rows[], int8_t *y,
	struct run run, enum rounding rounding)
{
	const struct tinyml_window *w = &p->window;
	const int32_t channels = w->in_c, step = positions(w) * channels;
	const int32_t next = w->stride_w * step, end = w->out_w * channels;
	const bool narrow = channels < TINYML_LANES;
	struct outputs to = {.zero = p->out_zero};
	struct blocks blocks = {
		.x0 = &rows[0][run.channel],
		.x1 = &rows[1][run.channel],
		.x2 = &rows[2][run.channel],
		.weights = &p->weights[9 * run.entry],
		.bias = &p->bias[run.entry],
		.multiplier = &p->multiplier[run.entry],
		.step = w->dilation_w * channels,
		.to = &to,
		.count = run.count,
		.shift = &p->shift[run.entry],
	};
	int8_t block[TINYML_LANES];

	tinyml_fill(to.low, (int8_t)p->out_min, TINYML_LANES);
	tinyml_fill(to.high, (int8_t)p->out_max, TINYML_LANES);
	for (int32_t at = run.channel; at < end; at += step) {
		blocks.y = narrow ? block : &y[at];
		convolve_3x3(&blocks, rounding);
		if (narrow) {
			tinyml_copy(&y[at], block, end - at < step ? end - at : step);
		}
		blocks.x0 += next;
		blocks.x1 += next;
		blocks.x2 += next;
	}
}

/* One function each, so that none reserves registers for the others. */
typedef void row_function(const struct tinyml_depthwise_conv_mve_s8 *p, const int8_t *const rows[],
			  int8_t *y, struct run run);

__attribute__((noinline)) static void row_3x3_once(const struct tinyml_depthwise_conv_mve_s8 *p,
						   const int8_t *const rows[], int8_t *y,
						   struct run run)
{
	row_3x3(p, rows, y, run, ROUND_ONCE);
}

__attribute__((noinline)) static void row_3x3_twice(const struct tinyml_depthwise_conv_mve_s8 *p,
						    const int8_t *const rows[], int8_t *y,
						    struct run run)
{
	row_3x3(p, rows, y, run, ROUND_TWICE);
}

__attribute__((noinline)) static void row_3x3_relu(const struct tinyml_depthwise_conv_mve_s8 *p,
						   const int8_t *const rows[], int8_t *y,
						   struct run run)
{
	row_3x3(p, rows, y, run, ROUND_TWICE_RELU);
}

/* The function for a 3x3 kernel. */
static row_function *row_function_3x3(const struct tinyml_depthwise_conv_mve_s8 *p)
{
	if (p->round_once) {
		return row_3x3_once;
	}
	if (p->out_zero == INT8_MIN && p->out_min == INT8_MIN && p->out_max == INT8_MAX) {
		return row_3x3_relu;
	}
	return row_3x3_twice;
}

static void convolve_row(const struct tinyml_depthwise_conv_mve_s8 *p, const int8_t *const rows[],
			 int8_t *y)
{
	const int32_t channels = p->window.in_c, whole = channels / TINYML_LANES;
	row_function *row;

	if (p->window.kernel_h != 3 || p->window.kernel_w != 3) {
		row_any(p, rows, y);
		return;
	}
	row = row_function_3x3(p);
	row(p, rows, y, (struct run){0, 0, whole > 0 ? whole : 1});
	if (whole > 0 && channels % TINYML_LANES != 0) {
		/* The last block ends with the last channel, so some channels are computed twice.
		 */
		row(p, rows, y, (struct run){channels - TINYML_LANES, whole * TINYML_LANES, 1});
	}
}

void tinyml_depthwise_conv_mve_s8(const struct tinyml_depthwise_conv_mve_s8 *p, const int8_t *x,
				  int8_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t row_bytes = w->in_w * w->in_c, out_bytes = w->out_w * w->out_c;
	const int8_t *rows[TINYML_DEPTHWISE_MVE_ROWS];

	TINYML_ASSERT(w->kernel_h <= TINYML_DEPTHWISE_MVE_ROWS && w->in_c == w->out_c);
	TINYML_ASSERT(scratch != NULL || w->in_c >= TINYML_LANES);
	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * row_bytes) {
		struct tinyml_ring ring = tinyml_ring(w, scratch);

		for (int32_t oy = 0; oy < w->out_h; oy++, y += out_bytes) {
			const int32_t top = oy * w->stride_h - w->pad_top;

			if (scratch != NULL) {
				tinyml_ring_fill(&ring, p, x, top + ring.count);
			}
			for (int32_t ky = 0; ky < w->kernel_h; ky++) {
				const int32_t row = top + ky * w->dilation_h;

				rows[ky] = scratch != NULL ? tinyml_ring_row(&ring, row)
							   : &x[row * row_bytes];
			}
			convolve_row(p, rows, y);
		}
	}
}

#endif /* TINYML_CORE_MVE */
