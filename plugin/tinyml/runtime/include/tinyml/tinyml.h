/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * What every compiled model offers, whatever the platform.
 *
 * A model called kws brings kws.h with kws_run(), kws_input(), kws_output() and `kws_model`, a
 * constant description for code that handles any model: test harnesses, shells, registries.
 */

#ifndef TINYML_TINYML_H_
#define TINYML_TINYML_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Generated code names the interface that it was written for, and does not compile with another.
 */
#define TINYML_RUNTIME_INTERFACE 13

#ifdef __cplusplus
extern "C" {
#endif

/** Errors that runs return; the values are those of -EINVAL, -ENOSPC and -EIO. */
#define TINYML_EINVAL   (-22) /* a buffer of the caller is NULL or not aligned */
#define TINYML_EBOUND   (-28) /* a layer has more results than its bound: see docs/detectors.md */
#define TINYML_ECORRUPT (-5)  /* the constants have changed: see TINYML_CHECK_WEIGHTS */

enum tinyml_type {
	TINYML_FLOAT32,
	TINYML_FLOAT64,
	TINYML_INT8,
	TINYML_UINT8,
	TINYML_INT16,
	TINYML_UINT16,
	TINYML_INT32,
	TINYML_UINT32,
	TINYML_INT64,
	TINYML_UINT64,
	TINYML_BOOL,
};

/** An input or output of a model. real value = scale * (stored - zero_point), if scale is not 0. */
struct tinyml_tensor {
	const char *name;
	void *data;           /* its place in the arena; NULL if the caller provides the memory */
	const int32_t *shape; /* rank extents */
	uint32_t bytes;
	float scale;
	int32_t zero_point;
	uint8_t type; /* enum tinyml_type */
	uint8_t rank;
};

struct tinyml_lock; /* defined by the platform, if it has threads */

struct tinyml_model {
	const char *name;
	int (*run)(void);    /* 0 on success; NULL if <name>_run() takes the caller's buffers */
	void (*reset)(void); /* forget all state; NULL if the model has none */
	const struct tinyml_tensor *inputs;
	const struct tinyml_tensor *outputs;
	uint8_t input_count;
	uint8_t output_count;
	uint8_t sha256[8]; /* first bytes of the model file's SHA-256 */
	uint32_t arena_bytes;
	struct tinyml_lock *lock; /* guards the arena; NULL where the platform has no locks */
	/* For an input that arrives in rows (io: rows); else NULL. feed() takes the next bytes of
	 * it and returns how many are still missing: 0 after the last, when the outputs are ready.
	 */
	int (*begin)(void);
	int (*feed)(const void *data, size_t bytes);
};

/**
 * Alignment, in bytes. An arena starts at a multiple of this. A tensor in it starts at a multiple
 * of its element size; kernels that load words or vectors of int8 tensors do so without assuming
 * more. Scratch memory starts at a multiple of 4, or of 8 if its size is a multiple of 8. The
 * planner's validator checks all three for every model.
 */
#define TINYML_ARENA_ALIGNMENT 16

/* A platform can define any of the following macros in a header that TINYML_PORT_HEADER names. */
#ifdef TINYML_PORT_HEADER
#include TINYML_PORT_HEADER
#endif

/* Where a model's arena and its tables of constants go, for example
 * __attribute__((section(".noinit.tinyml." #model))). The default is ordinary RAM and flash. */
#ifndef TINYML_ARENA_SECTION
#define TINYML_ARENA_SECTION(model)
#endif
#ifndef TINYML_WEIGHTS_SECTION
#define TINYML_WEIGHTS_SECTION(model)
#endif

/* The arena itself. Where models share an arena, a port declares it here and defines it elsewhere.
 */
#ifndef TINYML_ARENA
#define TINYML_ARENA(model, size_bytes)                                                            \
	static uint8_t model##_arena[size_bytes] TINYML_ARENA_SECTION(model)                       \
		__attribute__((aligned(TINYML_ARENA_ALIGNMENT)))
#endif

/* State that a model keeps between runs, and the addresses in its table of inputs and outputs. A
 * model in a slot (tinyml/slot.h) learns both only when the firmware calls it. */
#ifndef TINYML_STATE
#define TINYML_STATE(type, name, length) static type name[length]
#endif
#ifndef TINYML_TENSOR_DATA
#define TINYML_TENSOR_DATA(address) (address)
#endif

/* The lock that guards the arena between threads, and the check that a run or reset makes first. */
#ifndef TINYML_LOCK
#define TINYML_LOCK(model) NULL
#endif
#ifndef TINYML_CHECK_CLAIM
#define TINYML_CHECK_CLAIM(model) ((void)0)
#endif

/* Generated code calls every layer through TINYML_LAYER(index, call), in order, with the index that
 * the layer's comment has. A platform that profiles defines TINYML_WRAP_LAYER(index, call) around
 * it. The compiler barrier that follows costs no instruction and is always there: layers keep
 * values of different types in the same bytes of the arena, and no access of one layer may be moved
 * past those of the next. */
#ifdef TINYML_LAYER
#error "a port header defines TINYML_WRAP_LAYER; TINYML_LAYER adds the barrier that models rely on"
#endif
#ifndef TINYML_WRAP_LAYER
#define TINYML_WRAP_LAYER(index, call) call
#endif
#define TINYML_LAYER(index, call) TINYML_INNER_LAYER(TINYML_WRAP_LAYER(index, call))

/* A layer that is called by another one, in each turn of a loop. It is not profiled by itself. */
#define TINYML_INNER_LAYER(call)                                                                   \
	do {                                                                                       \
		call;                                                                              \
		__asm__ volatile("" ::: "memory");                                                 \
	} while (0)

/* Debug assertions: what kernels require of their arguments, such as alignment, ranges of shifts
 * and sizes that divide. They are off by default and then cost nothing; the compiler guarantees
 * what they check. Compile runtime and models with -DTINYML_ASSERTIONS=1 to check with assert(),
 * for example while writing a kernel, or define TINYML_ASSERT(condition) in the port header. */
#ifndef TINYML_ASSERT
#if defined(TINYML_ASSERTIONS) && TINYML_ASSERTIONS
#include <assert.h>
#define TINYML_ASSERT(condition) assert(condition)
#else
#define TINYML_ASSERT(condition) ((void)sizeof((condition) ? 1 : 0)) /* checked, not evaluated */
#endif
#endif
#define TINYML_ALIGNED(pointer, bytes) (((uintptr_t)(const void *)(pointer)) % (bytes) == 0u)

/* With -DTINYML_CHECK_WEIGHTS=1, the first run of a model compares the CRC-32 of its constants, and
 * of the initial values of its state, with that which the compiler computed. As long as they
 * differ, runs compute nothing and return TINYML_ECORRUPT. This finds flash that was damaged or not
 * written completely; it does not detect intentional changes. */
#ifndef TINYML_CHECK_WEIGHTS
#define TINYML_CHECK_WEIGHTS 0
#endif

/* Instructions that the compiler may use. Code is generated for one core: kernels, and the scratch
 * memory they require, differ between cores with and without these instructions. */
#if defined(__ARM_FEATURE_SIMD32) && __ARM_FEATURE_SIMD32
#define TINYML_CORE_DSP 1
#else
#define TINYML_CORE_DSP 0
#endif
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#define TINYML_CORE_MVE 1
#else
#define TINYML_CORE_MVE 0
#endif
/* RISC-V's vectors, Zve32x or larger, with intrinsics of version 0.12: GCC 14, clang 18. */
#if defined(__riscv_v_intrinsic) && __riscv_v_intrinsic >= 12000
#define TINYML_CORE_RVV 1
#else
#define TINYML_CORE_RVV 0
#endif
/* The same with vectors of floats: Zve32f or larger. */
#if TINYML_CORE_RVV && defined(__riscv_v_elen_fp) && __riscv_v_elen_fp >= 32
#define TINYML_CORE_RVV_F32 1
#else
#define TINYML_CORE_RVV_F32 0
#endif

#ifdef __cplusplus
}
#endif

#endif /* TINYML_TINYML_H_ */
