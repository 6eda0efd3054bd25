/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A model written by hand against the interface that generated models keep: it adds an offset and
 * the number of earlier runs. Its input `mode` makes it misbehave in ways that the harness must
 * notice. */

#include "toy.h"

#ifdef TOY_CMSIS_NN
#include <arm_nnfunctions.h>
#endif

#ifdef TOY_LIBRARY
#include <math.h>
#include <string.h>
#endif

enum mode { /* positive: so many rounds of a loop of two instructions */
	    BUS_FAULT = -1,
	    DIVISION_BY_ZERO = -2,
	    STACK_OVERFLOW = -3,
	    UNDEFINED_INSTRUCTION = -4,
	    ENDLESS_LOOP = -5,
	    FAILURE = -6,
	    DEEP_STACK = -7,
	    OUT_OF_BOUNDS = -8,
	    OVERFLOW = -9,
};

static const int16_t toy_offsets[256] = {[0] = 100, [1] = 200, [2] = 300, [3] = 400};

static int16_t toy_x[4];
static int32_t toy_mode[1];
static int16_t toy_y[4];
static int32_t toy_runs[1];
static int32_t toy_count;

static volatile int32_t toy_zero;

#if defined(__arm__)
__attribute__((naked, noinline)) static void toy_loop(int32_t rounds)
{
	(void)rounds;
	__asm volatile(".syntax unified\n" /* not GCC's default for Armv6-M */
		       "1: subs r0, #1\n"
		       "bne 1b\n"
		       "bx lr\n");
}
/* 2003 instructions, to check absolute counts with. */
__attribute__((naked, unused)) static int toy_counted(void)
{
	__asm volatile(".syntax unified\n"
		       "movs r0, #250\n"
		       "lsls r0, r0, #2\n"
		       "1: subs r0, #1\n"
		       "bne 1b\n"
		       "bx lr\n");
}
#elif defined(__riscv)
__attribute__((naked, noinline)) static void toy_loop(int32_t rounds)
{
	(void)rounds;
	__asm volatile("1: addi a0, a0, -1\n"
		       "bnez a0, 1b\n"
		       "ret\n");
}
__attribute__((naked, unused)) static int toy_counted(void)
{
	__asm volatile("li a0, 1000\n"
		       "1: addi a0, a0, -1\n"
		       "bnez a0, 1b\n"
		       "li a0, 0\n"
		       "ret\n");
}
#else
static void toy_loop(int32_t rounds)
{
	while (toy_zero + rounds-- > 1) {
	}
}
#endif

__attribute__((noinline)) static int32_t toy_recurse(int32_t depth)
{
	volatile int32_t frame[64] = {depth};

	return toy_zero == 0 ? toy_recurse(depth + 1) + frame[0] : depth;
}

__attribute__((noinline)) static int toy_deep(void)
{
	volatile uint8_t frame[1024];

	for (int i = 0; i < 1024; i++) {
		frame[i] = 0;
	}
	return frame[toy_zero];
}

static int toy_misbehave(int32_t mode)
{
	switch (mode) {
	case BUS_FAULT:
		*(volatile int32_t *)(uintptr_t)(0xf0000000u + (uint32_t)toy_zero) = 1;
		return 0;
	case DIVISION_BY_ZERO:
		return (int)(100 / toy_zero);
	case STACK_OVERFLOW:
		return (int)toy_recurse(0);
	case UNDEFINED_INSTRUCTION:
#ifdef __riscv /* where the built-in is a breakpoint */
		__asm volatile("unimp");
#elif defined(__XTENSA__) /* where it is a call of abort() */
		__asm volatile("ill");
#endif
		__builtin_trap();
	case ENDLESS_LOOP:
		while (toy_zero == 0) {
		}
		return 0;
	case DEEP_STACK:
		return toy_deep();
	case OUT_OF_BOUNDS:
		return toy_offsets[256 + toy_zero];
	case OVERFLOW:
		return (int)(INT32_MAX + (toy_zero + 1));
	default:
		return 7;
	}
}

int toy_run(void)
{
	int32_t mode = toy_mode[0]; /* the input may share memory with the outputs */

	for (int i = 0; i < 4; i++) {
		toy_y[i] = (int16_t)(toy_x[i] + toy_offsets[i] + toy_count);
	}
#ifdef TOY_CMSIS_NN
	arm_relu_q15(toy_y, 4);
#endif
#ifdef TOY_LIBRARY
	/* What kernels may ask of the C library and of the compiler's own. */
	float copy[4];

	for (int i = 0; i < 4; i++) {
		copy[i] = expf((float)toy_x[i]);
	}
	memmove(copy + 1, copy, 3 * sizeof(copy[0]));
	toy_y[0] = (int16_t)lrintf(logf(copy[1]));
	toy_y[1] = (int16_t)(INT64_MAX / (INT64_C(0x3ffffffffffffff) - toy_zero));
	toy_y[2] = (int16_t)(100.0 * pow(2.0, (double)toy_x[1]));
	toy_y[3] = (int16_t)lround(1000.0 * (double)tanhf(erff((float)toy_x[2])));
#endif
	toy_runs[0] = ++toy_count;
	if (mode < 0) {
		return toy_misbehave(mode);
	}
	if (mode > 0) {
		toy_loop(mode);
	}
	return 0;
}

void toy_reset(void)
{
	toy_count = 0;
}

static const int32_t toy_shape_x[] = {2, 2};
static const int32_t toy_shape_1[] = {1};

static const struct tinyml_tensor toy_inputs[] = {
	{.name = "x",
	 .data = toy_x,
	 .shape = toy_shape_x,
	 .bytes = 8,
	 .type = TINYML_INT16,
	 .rank = 2},
	{.name = "mode",
	 .data = toy_mode,
	 .shape = toy_shape_1,
	 .bytes = 4,
	 .type = TINYML_INT32,
	 .rank = 1},
};

static const struct tinyml_tensor toy_outputs[] = {
	{.name = "y",
	 .data = toy_y,
	 .shape = toy_shape_x,
	 .bytes = 8,
	 .type = TINYML_INT16,
	 .rank = 2},
	{.name = "runs",
	 .data = toy_runs,
	 .shape = toy_shape_1,
	 .bytes = 4,
	 .type = TINYML_INT32,
	 .rank = 1},
};

const struct tinyml_model toy_model = {
	.name = "toy",
#ifdef TOY_COUNTED
	.run = toy_counted,
#else
	.run = toy_run,
#endif
	.reset = toy_reset,
	.inputs = toy_inputs,
	.outputs = toy_outputs,
	.input_count = 2,
	.output_count = 2,
};
