/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with Helium: four windows by two filters at a time. VMLADAV requires its sum in an
 * even register; all eight are in use.
 */

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/mve_s8.h"

#define WINDOWS 4

/* Inlined into one another, these functions would run out of registers. */
#define NOT_INLINED __attribute__((noinline)) static

/* Columns are windows of the input, padded with zeros to whole vectors. So filters need no padding:
 * whatever is read past their end is multiplied by zero. The vectors of four columns take turns in
 * the scratch memory, so that one pointer reads all of them.
 */
#define NEXT_VECTOR (WINDOWS * TINYML_LANES)
_Static_assert(NEXT_VECTOR == 64 && WINDOWS == 4, "assembly steps over four vectors of 16 bytes");

/* As many bytes as fit into a vector. */
static inline void conv_mve_put(int8_t *to, const int8_t *from, int32_t count)
{
	int32_t predicate;

	/* In assembly, because compilers move predicates to and fro. Not all of them know that name
	 * of the predicate's register, so its content is restored. */
	/* clang-format off */
	__asm__ volatile(
		"vmrs %[predicate], vpr\n\t"
		"vctp.8 %[count]\n\t"
		"vpstt\n\t"
		"vldrbt.8 q0, [%[from]]\n\t"
		"vstrbt.8 q0, [%[to]]\n\t"
		"vmsr vpr, %[predicate]"
		: [predicate] "=&r"(predicate)
		: [to] "r"(to), [from] "r"(from), [count] "r"(count)
		: "q0", "memory");
	/* clang-format on */
}

/* Write bytes of a window into its column, from element `at` on. */
static inline void conv_mve_put_run(int8_t *column, int32_t at, const int8_t *from, int32_t bytes)
{
	const int32_t lane = at & (TINYML_LANES - 1), room = TINYML_LANES - lane;

	column += (at - lane) * WINDOWS;
	if (lane != 0) {
		const int32_t some = bytes < room ? bytes : room;

		conv_mve_put(column + lane, from, some);
		column += NEXT_VECTOR;
		from += some;
		bytes -= some;
	}
	/* clang-format off */
	__asm__ volatile(
		"wlstp.8 lr, %[bytes], 2f\n"
		"1:\n\t"
		"vldrb.8 q0, [%[from]], #16\n\t"
		"vstrb.8 q0, [%[column]], #64\n\t"
		"letp lr, 1b\n"
		"2:"
		: [column] "+r"(column), [from] "+r"(from)
		: [bytes] "r"(bytes)
		: "lr", "q0", "memory");
	/* clang-format on */
}

/* Copy a window element by element of the kernel: where it extends past the input, the zero point
 * is used.
 */
NOT_INLINED void conv_mve_gather_piecewise(const struct tinyml_conv_mve_s8 *p, const int8_t *x,
					   int32_t oy, int32_t ox, int8_t *column)
{
	const struct tinyml_window *w = &p->window;
	const struct tinyml_span rows =
		tinyml_span(oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);
	const struct tinyml_span cols =
		tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w, w->dilation_w, w->in_w);
	const int32_t in_c = w->in_c, row_bytes = w->kernel_w * in_c, in_bytes = w->in_w * in_c;
	/* Elements that are adjacent in the column and in the input. */
	const int32_t run = w->dilation_w == 1 ? cols.end - cols.first : 1;
	int8_t *at = column;

	for (int32_t left = w->kernel_h * row_bytes; left > 0; left -= TINYML_LANES) {
		vstrbq_p_s8(at, vdupq_n_s8((int8_t)p->in_zero), vctp8q((uint32_t)left));
		at += NEXT_VECTOR;
	}
	x += (rows.start + rows.first * w->dilation_h) * in_bytes + cols.start * in_c;
	for (int32_t ky = rows.first; ky < rows.end; ky++, x += w->dilation_h * in_bytes) {
		for (int32_t kx = cols.first; kx < cols.end; kx += run) {
			conv_mve_put_run(column, ky * row_bytes + kx * in_c,
					 &x[kx * w->dilation_w * in_c], run * in_c);
		}
	}
}

/* How windows that lie inside the input are copied. */
struct taking {
	int32_t ahead;     /* from one window to the next, in bytes of the input */
	int32_t in_bytes;  /* from one row to the next */
	int32_t row_bytes; /* of a window */
	int32_t rows;
	int32_t elements;
	bool straight; /* rows start at whole vectors */
	/* Others are gathered by the offsets of their elements, if there are few. */
	const uint16_t *offsets;
};

/* Rows of bytes become vectors of a column, one after the other. */
static inline void conv_mve_take_rows(const struct taking *t, int8_t *column, const int8_t *from)
{
	int32_t rows = t->rows;

	/* clang-format off */
	__asm__ volatile(
		"1:\n\t"
		"wlstp.8 lr, %[bytes], 3f\n"
		"2:\n\t"
		"vldrb.8 q0, [%[from]], #16\n\t"
		"vstrb.8 q0, [%[column]], #64\n\t"
		"letp lr, 2b\n"
		"3:\n\t"
		"add %[from], %[from], %[skipped]\n\t"
		"subs %[rows], %[rows], #1\n\t"
		"bgt 1b"
		: [column] "+r"(column), [from] "+r"(from), [rows] "+r"(rows)
		: [bytes] "r"(t->row_bytes), [skipped] "r"(t->in_bytes - t->row_bytes)
		: "lr", "q0", "cc", "memory");
	/* clang-format on */
}

/* Vectors of a column by the offsets of their elements. Only the last one may be incomplete. */
static inline void conv_mve_take_elements(const struct taking *t, int8_t *column,
					  const int8_t *from)
{
	const int32_t more = (t->elements - 1) / TINYML_LANES;
	const int32_t left = t->elements - more * TINYML_LANES;
	const uint16_t *offsets = t->offsets;
	int32_t predicate;

	/* Not all compilers know that name of the predicate's register, so its content is
	 * restored. */
	/* clang-format off */
	__asm__ volatile(
		"vmrs %[predicate], vpr\n\t"
		"wls lr, %[more], 2f\n"
		"1:\n\t"
		"vldrh.16 q0, [%[offsets]], #32\n\t"
		"vldrh.16 q1, [%[offsets], #-16]\n\t"
		"vldrb.u16 q2, [%[from], q0]\n\t"
		"vldrb.u16 q3, [%[from], q1]\n\t"
		"vstrb.16 q2, [%[column]], #64\n\t"
		"vstrb.16 q3, [%[column], #-56]\n\t"
		"le lr, 1b\n"
		"2:\n\t"
		"vldrh.16 q0, [%[offsets]]\n\t"
		"vldrh.16 q1, [%[offsets], #16]\n\t"
		"vctp.16 %[first]\n\t"
		"vpstt\n\t"
		"vldrbt.u16 q2, [%[from], q0]\n\t"
		"vstrbt.16 q2, [%[column]]\n\t"
		"vctp.16 %[second]\n\t"
		"vpstt\n\t"
		"vldrbt.u16 q3, [%[from], q1]\n\t"
		"vstrbt.16 q3, [%[column], #8]\n\t"
		"vmsr vpr, %[predicate]"
		: [column] "+l"(column), [offsets] "+l"(offsets), [predicate] "=&r"(predicate)
		: [from] "l"(from), [more] "r"(more), [first] "r"(left < 8 ? left : 8),
		  [second] "r"(left < 8 ? 0 : left - 8)
		: "lr", "q0", "q1", "q2", "q3", "memory");
	/* clang-format on */
}

/* Windows by the offsets of their elements, more than 24 and not more than 32: three channels of a
 * 3x3 kernel.
 */
#define FEWEST_OF_FOUR 25
#define MOST_OF_FOUR   32
static inline void conv_mve_take_four_times_8(const struct taking *t, int8_t *column,
					      const int8_t *from, int32_t count)
{
	int32_t predicate;

	/* clang-format off */
	__asm__ volatile(
		"vmrs %[predicate], vpr\n\t"
		"vldrh.16 q0, [%[offsets]]\n\t"
		"vldrh.16 q1, [%[offsets], #16]\n\t"
		"vldrh.16 q2, [%[offsets], #32]\n\t"
		"vldrh.16 q3, [%[offsets], #48]\n\t"
		"vctp.16 %[left]\n\t"
		"dls lr, %[count]\n"
		"1:\n\t"
		"vldrb.u16 q4, [%[from], q0]\n\t"
		"vstrb.16 q4, [%[column]], #8\n\t"
		"vldrb.u16 q5, [%[from], q1]\n\t"
		"vstrb.16 q5, [%[column]], #8\n\t"
		"vldrb.u16 q4, [%[from], q2]\n\t"
		"vstrb.16 q4, [%[column], #48]\n\t"
		"vpst\n\t"
		"vldrbt.u16 q5, [%[from], q3]\n\t"
		"vstrb.16 q5, [%[column], #56]\n\t"
		"add %[from], %[from], %[ahead]\n\t"
		"le lr, 1b\n\t"
		"vmsr vpr, %[predicate]"
		: [column] "+l"(column), [from] "+l"(from), [predicate] "=&r"(predicate)
		: [offsets] "l"(t->offsets), [left] "r"(t->elements - MOST_OF_FOUR + 8),
		  [count] "r"(count), [ahead] "r"(t->ahead)
		: "lr", "q0", "q1", "q2", "q3", "q4", "q5", "memory");
	/* clang-format on */
}

/* Windows that follow one another. */
NOT_INLINED void conv_mve_take_windows(const struct taking *t, int8_t *column, const int8_t *from,
				       int32_t count)
{
	if (t->offsets != NULL && t->elements >= FEWEST_OF_FOUR && t->elements <= MOST_OF_FOUR) {
		conv_mve_take_four_times_8(t, column, from, count);
		return;
	}
	for (; count > 0; count--, column += TINYML_LANES, from += t->ahead) {
		if (t->straight) {
			conv_mve_take_rows(t, column, from);
		} else if (t->offsets != NULL) {
			conv_mve_take_elements(t, column, from);
		} else {
			for (int32_t i = 0; i < t->rows; i++) {
				conv_mve_put_run(column, i * t->row_bytes, &from[i * t->in_bytes],
						 t->row_bytes);
			}
		}
	}
}

/* Offsets of the elements of a window, if there are few. */
#define OFFSETS 64
static bool conv_mve_find_offsets(const struct taking *t, uint16_t *offsets)
{
	if (t->elements > OFFSETS || t->rows * t->in_bytes > UINT16_MAX) {
		return false;
	}
	for (int32_t i = 0; i < t->elements; i++) {
		*offsets++ = (uint16_t)(i / t->row_bytes * t->in_bytes + i % t->row_bytes);
	}
	return true;
}

/* Groups of four filters at four windows. The assembly below knows the layout. */
struct filters {
	int32_t adjust; /* from behind the vectors of a pair to the next pair */
	const int8_t *columns;
	int32_t rounds;        /* of the loop over vectors, four each */
	int32_t skip;          /* bytes of its code to skip at first */
	const int8_t *weights; /* less the first adjustment */
	const int32_t *channels;
	int8_t *y;                   /* outputs of the first window */
	int32_t others[WINDOWS - 1]; /* from there to those of the other windows */
	const int8_t *end;           /* of the outputs of the first window */
	int32_t zero;
	int8_t low[TINYML_LANES];
	int8_t high[TINYML_LANES];
	int32_t saved;      /* r7 */
	int32_t pair_bytes; /* of the vectors of a pair; not for the assembly */
};
TINYML_OFFSET(struct filters, adjust, 0);
TINYML_OFFSET(struct filters, columns, 4);
TINYML_OFFSET(struct filters, rounds, 8);
TINYML_OFFSET(struct filters, skip, 12);
TINYML_OFFSET(struct filters, weights, 16);
TINYML_OFFSET(struct filters, channels, 20);
TINYML_OFFSET(struct filters, y, 24);
TINYML_OFFSET(struct filters, others, 28);
TINYML_OFFSET(struct filters, end, 40);
TINYML_OFFSET(struct filters, zero, 44);
TINYML_OFFSET(struct filters, low, 48);
TINYML_OFFSET(struct filters, high, 64);
TINYML_OFFSET(struct filters, saved, 80);

/* One instruction in a line. */
/* clang-format off */

/* A vector of two filters times one of four windows. Sums of the first filter are in r0, r2, r4 and
 * r6, of the second in r8, r10, r12 and lr.
 */
#define MULTIPLY(multiply)                                                                         \
	"vldrb.8 q2, [r3], #64\n\t"                                                                \
	"vldrb.8 q0, [r1], #32\n\t"                                                                \
	multiply " r0, q0, q2\n\t"                                                                 \
	"vldrb.8 q1, [r1, #-16]\n\t"                                                               \
	multiply " r8, q1, q2\n\t"                                                                 \
	"vldrb.8 q3, [r3, #-48]\n\t"                                                               \
	multiply " r2, q0, q3\n\t"                                                                 \
	"vldrb.8 q2, [r3, #-32]\n\t"                                                               \
	multiply " r10, q1, q3\n\t"                                                                \
	multiply " r4, q0, q2\n\t"                                                                 \
	"vldrb.8 q3, [r3, #-16]\n\t"                                                               \
	multiply " r12, q1, q2\n\t"                                                                \
	multiply " r6, q0, q3\n\t"                                                                 \
	multiply " lr, q1, q3\n\t"
/* The same with both filters in one vector: 16 * q + p, where p is between -8 and 7. */
#define MULTIPLY_NIBBLES(multiply)                                                                 \
	"vldrb.8 q2, [r3], #64\n\t"                                                                \
	"vldrb.8 q0, [r1], #16\n\t"                                                                \
	multiply " r0, q0, q2\n\t"                                                                 \
	"vrshr.s8 q1, q0, #4\n\t"                                                                  \
	multiply " r8, q1, q2\n\t"                                                                 \
	"vldrb.8 q3, [r3, #-48]\n\t"                                                               \
	multiply " r2, q0, q3\n\t"                                                                 \
	"vldrb.8 q2, [r3, #-32]\n\t"                                                               \
	multiply " r10, q1, q3\n\t"                                                                \
	multiply " r4, q0, q2\n\t"                                                                 \
	"vldrb.8 q3, [r3, #-16]\n\t"                                                               \
	multiply " r12, q1, q2\n\t"                                                                \
	multiply " r6, q0, q3\n\t"                                                                 \
	multiply " lr, q1, q3\n\t"
#define MULTIPLY_BYTES 56
#define BRANCH_BYTES 8
#define ROUND_BYTES (4 * MULTIPLY_BYTES + BRANCH_BYTES)

/* Two filters at four windows: the sums of a filter become a vector. The loop is entered where the
 * vectors after the first one, divided by four, leave that remainder.
 */
#define PAIR(loop, first, second, product, part)                                                   \
	"ldm r11, {r0, r3, r7}\n\t"                                                                \
	"add r1, r1, r0\n\t"                                                                       \
	product("vmladav.s8")                                                                      \
	"4:\n\t"                                                                                   \
	"add pc, r5\n\t" /* from 4 bytes after this instruction */                                 \
	"nop\n"                                                                                    \
	loop ":\n\t"                                                                               \
	TINYML_CODE_BYTES("4b", loop "b", 4)                                                       \
	product("vmladava.s8")                                                                     \
	product("vmladava.s8")                                                                     \
	product("vmladava.s8")                                                                     \
	product("vmladava.s8")                                                                     \
	"5:\n\t"                                                                                   \
	TINYML_CODE_BYTES(loop "b", "5b", 4 * MULTIPLY_BYTES)                                      \
	"subs.w r7, r7, #1\n\t"                                                                    \
	"bne.w " loop "b\n\t"                                                                      \
	"6:\n\t"                                                                                   \
	TINYML_CODE_BYTES(loop "b", "6b", ROUND_BYTES)                                             \
	"vmov " first "[2], " first "[0], r0, r4\n\t"                                              \
	"vmov " first "[3], " first "[1], r2, r6\n\t"                                              \
	"vmov " second "[2], " second "[0], r8, r12\n\t"                                           \
	"vmov " second "[3], " second "[1], r10, lr\n\t"                                           \
	part(first, second)
#define APART(first, second) ""
/* Sums of 16 * q + p less 16 times those of q. */
#define APART_NIBBLES(first, second)                                                               \
	"vshl.i32 q0, " second ", #4\n\t"                                                          \
	"vsub.i32 " first ", " first ", q0\n\t"

/* The shift rounds halves up, but negative halves must round down. */
#define HALVES_AWAY                                                                                \
	"vshr.s32 q0, q4, #31\n\t"                                                                 \
	"vqadd.s32 q4, q4, q0\n\t"                                                                 \
	"vshr.s32 q1, q5, #31\n\t"                                                                 \
	"vqadd.s32 q5, q5, q1\n\t"                                                                 \
	"vshr.s32 q2, q6, #31\n\t"                                                                 \
	"vqadd.s32 q6, q6, q2\n\t"                                                                 \
	"vshr.s32 q3, q7, #31\n\t"                                                                 \
	"vqadd.s32 q7, q7, q3\n\t"
#define HALVES_UP ""

#define LIMIT                                                                                      \
	"vldrb.8 q0, [r11, #48]\n\t"                                                               \
	"vmax.s8 q4, q4, q0\n\t"                                                                   \
	"vldrb.8 q1, [r11, #64]\n\t"                                                               \
	"vmin.s8 q4, q4, q1\n\t"
#define NO_LIMIT ""

/* In assembly, because compilers spend more instructions on moving registers than on the sums. r9 is
 * left alone, because it may be the platform's register. r7 may be the frame pointer, which a
 * compiler does not let go, so it is saved here.
 */
#define APPLY(filters, multiply, round, limit, product, part)                                      \
	do {                                                                                       \
		register struct filters *at __asm__("r0") = (filters);                             \
                                                                                                   \
		__asm__ volatile(                                                                  \
			"mov r11, r0\n\t"                                                          \
			"str r7, [r11, #80]\n\t"                                                   \
			"ldrd r5, r1, [r11, #12]\n"                                                \
			"1:\n\t"                                                                   \
			PAIR("2", "q4", "q5", product, part)                                       \
			PAIR("3", "q6", "q7", product, part)                                       \
			"ldr r0, [r11, #20]\n\t"                                                   \
			"ldm r0!, {r2, r3, r4, r6, r7, r8, r10, r12, lr}\n\t"                      \
			"str r0, [r11, #20]\n\t"                                                   \
			"vadd.i32 q4, q4, r2\n\t"                                                  \
			"vadd.i32 q5, q5, r3\n\t"                                                  \
			"vadd.i32 q6, q6, r4\n\t"                                                  \
			"vadd.i32 q7, q7, r6\n\t"                                                  \
			multiply " q4, q4, r7\n\t"                                                 \
			"sxtb r2, lr\n\t"                                                          \
			multiply " q5, q5, r8\n\t"                                                 \
			"sxtb r3, lr, ror #8\n\t"                                                  \
			multiply " q6, q6, r10\n\t"                                                \
			"sxtb r4, lr, ror #16\n\t"                                                 \
			multiply " q7, q7, r12\n\t"                                                \
			"asr lr, lr, #24\n\t"                                                      \
			round                                                                      \
			"vrshl.s32 q4, r2\n\t"                                                     \
			"vrshl.s32 q5, r3\n\t"                                                     \
			"vrshl.s32 q6, r4\n\t"                                                     \
			"vrshl.s32 q7, lr\n\t"                                                     \
			"ldr r6, [r11, #44]\n\t"                                                   \
			"vqmovnb.s32 q4, q4\n\t"                                                   \
			"vqmovnb.s32 q5, q5\n\t"                                                   \
			"vqmovnt.s32 q4, q6\n\t"                                                   \
			"vqmovnt.s32 q5, q7\n\t"                                                   \
			"vqadd.s16 q4, q4, r6\n\t"                                                 \
			"vqadd.s16 q5, q5, r6\n\t"                                                 \
			"vqmovnb.s16 q4, q4\n\t"                                                   \
			"vqmovnt.s16 q4, q5\n\t"                                                   \
			limit                                                                      \
			"ldrd r0, r2, [r11, #24]\n\t"                                              \
			"ldrd r3, r4, [r11, #32]\n\t"                                              \
			"vmov r6, r8, q4[2], q4[0]\n\t"                                            \
			"vmov r10, r12, q4[3], q4[1]\n\t"                                          \
			"str r12, [r0, r4]\n\t"                                                    \
			"str r8, [r0, r3]\n\t"                                                     \
			"str r10, [r0, r2]\n\t"                                                    \
			"str r6, [r0], #4\n\t"                                                     \
			"ldr r2, [r11, #40]\n\t"                                                   \
			"str r0, [r11, #24]\n\t"                                                   \
			"cmp r0, r2\n\t"                                                           \
			"bne.w 1b\n\t"                                                             \
			"str r1, [r11, #16]\n\t"                                                   \
			"ldr r7, [r11, #80]\n\t"                                                   \
			: "+r"(at)                                                                 \
			:                                                                          \
			: "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r10", "r11", "r12", "lr",     \
			  "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");         \
	} while (false)

/* clang-format on */

struct tinyml_conv_mve {
	void (*apply)(struct filters *filters);
};

/* One function each, so that only what a model uses is linked. */
#define LOOP(name, multiply, round, limit, product, part)                                          \
	NOT_INLINED void conv_mve_apply_##name(struct filters *filters)                            \
	{                                                                                          \
		APPLY(filters, multiply, round, limit, product, part);                             \
	}                                                                                          \
	const struct tinyml_conv_mve tinyml_conv_mve_##name = {conv_mve_apply_##name};
LOOP(once, "vqdmulh.s32", HALVES_UP, LIMIT, MULTIPLY, APART)
LOOP(twice, "vqrdmulh.s32", HALVES_AWAY, LIMIT, MULTIPLY, APART)
/* Nothing below the zero point is kept: how negative halves are rounded changes no output. The
 * limits are those of a byte. */
LOOP(relu, "vqrdmulh.s32", HALVES_UP, NO_LIMIT, MULTIPLY, APART)
LOOP(nibbles_once, "vqdmulh.s32", HALVES_UP, LIMIT, MULTIPLY_NIBBLES, APART_NIBBLES)
LOOP(nibbles_twice, "vqrdmulh.s32", HALVES_AWAY, LIMIT, MULTIPLY_NIBBLES, APART_NIBBLES)
LOOP(nibbles_relu, "vqrdmulh.s32", HALVES_UP, NO_LIMIT, MULTIPLY_NIBBLES, APART_NIBBLES)
#undef LOOP

/* Four filters, or the last ones, whose outputs are not written as words. */
NOT_INLINED void conv_mve_apply_four(const struct tinyml_conv_mve_s8 *p, struct filters *filters,
				     int8_t *y, int32_t left)
{
	const int32_t adjust = filters->adjust, pair_bytes = filters->pair_bytes;
	const int32_t second = filters->others[0], third = filters->others[1];
	const int32_t fourth = filters->others[2], some = left < 4 ? left : 4;
	int8_t block[WINDOWS * 4];

	filters->y = block;
	filters->end = block + 4;
	filters->others[0] = 4;
	filters->others[1] = 8;
	filters->others[2] = 12;
	if (left <= 2) { /* there is no second pair: use the first again */
		filters->weights += adjust + pair_bytes;
		filters->adjust = -pair_bytes;
	}
	p->loop->apply(filters);
	filters->adjust = adjust;
	filters->others[0] = second;
	filters->others[1] = third;
	filters->others[2] = fourth;
	/* Outputs of the first window are written last. */
	conv_mve_put(y + fourth, &block[12], some);
	conv_mve_put(y + third, &block[8], some);
	conv_mve_put(y + second, &block[4], some);
	conv_mve_put(y, block, some);
}

/* Apply all filters to the windows in the columns. */
static inline void conv_mve_apply_filters(const struct tinyml_conv_mve_s8 *p,
					  struct filters *filters, int8_t *y)
{
	int32_t at = p->window.out_c & ~3;

#ifndef __ARM_FEATURE_UNALIGNED
	if (!TINYML_ALIGNED(y, 4) || at != p->window.out_c) {
		at = 0;
	}
#endif
	filters->weights = p->weights - filters->adjust;
	filters->channels = p->channels;
	filters->y = y;
	filters->end = y + at;
	if (at > 0) {
		p->loop->apply(filters);
	}
	for (; at < p->window.out_c; at += 4) {
		conv_mve_apply_four(p, filters, y + at, p->window.out_c - at);
	}
}

static inline __attribute__((always_inline)) void
conv_mve_convolve(const struct tinyml_conv_mve_s8 *p, const int8_t *x, int8_t *y, void *scratch,
		  bool nibbles)
{
	const struct tinyml_window *w = &p->window;
	const int32_t row_bytes = w->kernel_w * w->in_c, in_bytes = w->in_w * w->in_c;
	const int32_t elements = w->kernel_h * row_bytes;
	const int32_t vectors = (elements + TINYML_LANES - 1) / TINYML_LANES, more = vectors - 1;
	const int32_t step = p->from_the_end ? -w->out_c : w->out_c;
	const int32_t ahead = p->from_the_end ? -w->stride_w : w->stride_w;
	const bool undilated = w->dilation_h == 1 && w->dilation_w == 1;
	/* Windows of one element are one row, unless there is padding, with which strides can make
	 * the output as large as the input. */
	const bool flat = elements * w->stride_h * w->stride_w == w->in_c && w->in_h == w->out_h &&
			  w->in_w == w->out_w && undilated;
	const int32_t images = w->batches * w->out_h;
	const int32_t rows = flat ? 1 : images, width = flat ? images * w->out_w : w->out_w;
	/* Positions of a row whose windows lie inside the input: from `begin` on, before `end`. */
	const int32_t margin = (w->pad_left + w->stride_w - 1) / w->stride_w;
	const int32_t room = w->in_w + w->pad_left - w->kernel_w;
	const int32_t fit = flat ? width : room < 0 ? 0 : room / w->stride_w + 1;
	const int32_t most = fit < width ? fit : width;
	const int32_t begin = p->from_the_end ? width - most : margin;
	const int32_t end = p->from_the_end ? width - margin : most;
	int8_t *const columns = scratch;
	uint16_t offsets[OFFSETS];
	struct taking taking = {
		.ahead = ahead * w->in_c,
		.in_bytes = in_bytes,
		.row_bytes = row_bytes,
		.rows = w->kernel_h,
		.elements = elements,
		.straight = row_bytes % TINYML_LANES == 0 || w->kernel_h == 1,
	};
	struct filters filters;
	int32_t count = 0;
	bool before = false;

	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4) && p->out_min <= p->out_max);
	taking.offsets =
		!taking.straight && conv_mve_find_offsets(&taking, offsets) ? offsets : NULL;
	filters.adjust = elements - vectors * TINYML_LANES; /* the second of a pair is not padded */
	filters.pair_bytes = (nibbles ? 1 : 2) * vectors * TINYML_LANES;
	filters.columns = columns;
	filters.rounds = (more + 3) / 4;
	filters.skip = more == 0 ? ROUND_BYTES : (4 - more % 4) % 4 * MULTIPLY_BYTES;
	filters.others[0] = step;
	filters.others[1] = 2 * step;
	filters.others[2] = 3 * step;
	filters.zero = p->out_zero;
	tinyml_fill(filters.low, (int8_t)p->out_min, TINYML_LANES);
	tinyml_fill(filters.high, (int8_t)p->out_max, TINYML_LANES);
	tinyml_fill(columns, 0, vectors * NEXT_VECTOR);
	y += p->from_the_end ? (images * w->out_w - 1) * w->out_c : 0;
	for (int32_t i = 0; i < rows; i++) {
		const int32_t row = p->from_the_end ? rows - 1 - i : i;
		const int32_t item = row / w->out_h, oy = row - item * w->out_h;
		const int8_t *from = &x[item * w->in_h * in_bytes];
		const int32_t top = oy * w->stride_h - w->pad_top;
		const bool inside = undilated && top >= 0 && top + w->kernel_h <= w->in_h;
		const int8_t *first = &from[top * in_bytes];
		const int32_t start = (p->from_the_end ? width - 1 : 0) * w->stride_w - w->pad_left;

		for (int32_t j = 0; j < width;) {
			int8_t *column = &columns[count * TINYML_LANES];
			int32_t taken = 1;

			/* Always a copy, so that outputs of a 1x1 convolution can be written over
			 * its inputs. */
			if (!inside || j < begin || j >= end) {
				const int32_t ox = p->from_the_end ? width - 1 - j : j;

				conv_mve_gather_piecewise(p, from, oy, ox, column);
			} else {
				taken = end - j < WINDOWS - count ? end - j : WINDOWS - count;
				conv_mve_take_windows(&taking, column,
						      &first[(start + j * ahead) * w->in_c], taken);
			}
			j += taken;
			count += taken;
			if (count == WINDOWS) {
				conv_mve_apply_filters(p, &filters, y);
				before = true;
				y += WINDOWS * step;
				count = 0;
			}
		}
	}
	if (count > 0) {
		/* The other columns are still those of the windows before, whose outputs are
		 * written again. If there were none, outputs of the first window are written
		 * last. */
		for (int32_t i = count; i < WINDOWS; i++) {
			filters.others[i - 1] = before ? (i - WINDOWS) * step : 0;
		}
		conv_mve_apply_filters(p, &filters, y);
	}
}

void tinyml_conv_mve_s8(const struct tinyml_conv_mve_s8 *p, const int8_t *x, int8_t *y,
			void *scratch)
{
	TINYML_ASSERT(p->round_once == (p->loop == &tinyml_conv_mve_once));
	conv_mve_convolve(p, x, y, scratch, false);
}

void tinyml_conv_nibbles_mve_s8(const struct tinyml_conv_mve_s8 *p, const int8_t *x, int8_t *y,
				void *scratch)
{
	TINYML_ASSERT(p->round_once == (p->loop == &tinyml_conv_mve_nibbles_once));
	conv_mve_convolve(p, x, y, scratch, true);
}

#endif /* TINYML_CORE_MVE */
