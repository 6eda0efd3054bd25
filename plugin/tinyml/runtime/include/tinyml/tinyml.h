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

/** Generated code names the interface it was written for and refuses any other. */
#define TINYML_RUNTIME_INTERFACE 4

#ifdef __cplusplus
extern "C" {
#endif

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
	void *data; /* where it lives in the arena; NULL if the caller brings the memory */
	const int32_t *shape; /* rank extents */
	uint32_t bytes;
	float scale;
	int32_t zero_point;
	uint8_t type; /* enum tinyml_type */
	uint8_t rank;
};

struct tinyml_lock; /* of the platform, if it has threads */

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
};

/** Every arena, and every tensor in it that a kernel reads as words or vectors, starts here. */
#define TINYML_ARENA_ALIGNMENT 16

/* A platform may define any of what follows in a header that TINYML_PORT_HEADER names. */
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

/* The arena itself. Where models share one, it is only declared here and defined elsewhere. */
#ifndef TINYML_ARENA
#define TINYML_ARENA(model, size_bytes)                                                            \
	static uint8_t model##_arena[size_bytes] TINYML_ARENA_SECTION(model)                       \
		__attribute__((aligned(TINYML_ARENA_ALIGNMENT)))
#endif

/* What a model remembers between runs, and where its table of inputs and outputs says they are. A
 * model in a slot (tinyml/slot.h) learns both addresses only when the firmware calls it. */
#ifndef TINYML_STATE
#define TINYML_STATE(type, name, length) static type name[length]
#endif
#ifndef TINYML_TENSOR_DATA
#define TINYML_TENSOR_DATA(address) (address)
#endif

/* What guards the arena between threads, and what a run or reset does first to check that. */
#ifndef TINYML_LOCK
#define TINYML_LOCK(model) NULL
#endif
#ifndef TINYML_CHECK_CLAIM
#define TINYML_CHECK_CLAIM(model) ((void)0)
#endif

/* A platform that profiles defines TINYML_LAYER(index, call), which is around every layer of a run,
 * in order, with the index that its comment has. By default there is only a barrier behind it,
 * which costs no instruction: layers keep values of different types in the same bytes of the arena,
 * and no access of one may be moved past those of the next. */
#ifndef TINYML_LAYER
#define TINYML_LAYER(index, call)                                                                  \
	do {                                                                                       \
		call;                                                                              \
		__asm__ volatile("" ::: "memory");                                                 \
	} while (0)
#endif

/* What the compiler may use of the core. Code is generated for one core: its kernels, and with them
 * the scratch memory they want, differ between cores with and without these instructions. */
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

#ifdef __cplusplus
}
#endif

#endif /* TINYML_TINYML_H_ */
