/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * A model in a slot: an image of its own in flash, which can be replaced while the firmware stays.
 *
 * `tinyml pack` writes such images. Code and weights stay where they are and run in place; arena
 * and state are the firmware's. Nothing of an image is used before everything about it was checked:
 *
 *	TINYML_SLOT_DEFINE(digits, 4096, 0);
 *	static const struct tinyml_slot_region region = {
 *		.memory = (const void *)0x08060000, .address = 0x08060000, .bytes = 65536};
 *
 *	if (tinyml_slot_open(&digits, &region, NULL) == 0) {
 *		digits.model.run();
 *	}
 *
 * <tinyml/slots.h> adds two slots, updates and going back.
 */

#ifndef TINYML_SLOT_H_
#define TINYML_SLOT_H_

#include <tinyml/tinyml.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The layout of the descriptor, and how the firmware calls what is in a slot. */
#define TINYML_SLOT_FORMAT    1
#define TINYML_SLOT_INTERFACE 1

/** What the descriptor of an image without code has instead: a player runs it (<tinyml/player.h>).
 */
#define TINYML_PLAYER_INTERFACE 2

/** Slots start at multiples of this. */
#define TINYML_SLOT_ALIGNMENT 32

/** The most inputs and outputs together that a model in a slot may have. */
#ifndef TINYML_SLOT_TENSORS
#define TINYML_SLOT_TENSORS 8
#endif

/** Why a model was refused. */
enum tinyml_slot_error {
	TINYML_SLOT_OK = 0,
	TINYML_SLOT_EMPTY = -1,           /* nothing but erased flash */
	TINYML_SLOT_REGION = -2,          /* the slot itself is misaligned or too small */
	TINYML_SLOT_MAGIC = -3,           /* something else is in it */
	TINYML_SLOT_BOUNDS = -4,          /* the image is longer than the slot, or cut off */
	TINYML_SLOT_ADDRESS = -5,         /* linked for another address */
	TINYML_SLOT_DAMAGED = -6,         /* the checksum is wrong */
	TINYML_SLOT_HASH = -7,            /* the digest is wrong */
	TINYML_SLOT_UNSIGNED = -8,        /* no signature, and this firmware requires one */
	TINYML_SLOT_SIGNATURE = -9,       /* signed with another key, or forged */
	TINYML_SLOT_FORMAT_NEW = -10,     /* of another format, or newer */
	TINYML_SLOT_ABI = -11,            /* made for another interface */
	TINYML_SLOT_CORE_TOO_SMALL = -12, /* needs instructions that this core does not have */
	TINYML_SLOT_ARENA = -13,          /* needs more arena, or better aligned */
	TINYML_SLOT_STATE = -14,          /* needs more memory for its state, or better aligned */
	TINYML_SLOT_POINTER = -15,        /* something in it points outside */
	TINYML_SLOT_TOO_MANY = -16,       /* more inputs and outputs than TINYML_SLOT_TENSORS */
	TINYML_SLOT_VERSION = -17,        /* not newer than the model in use */
	TINYML_SLOT_SELF_TEST = -18,      /* computes something else than when it was packed */
	TINYML_SLOT_REJECTED = -19,       /* failed before, and was not replaced since */
	TINYML_SLOT_NONE = -20,           /* no slot has a model that may be used */
	TINYML_SLOT_FLASH = -21,          /* the flash cannot be written */
	TINYML_SLOT_BUSY = -22,           /* the model in use is on trial: confirm it first */
	TINYML_SLOT_ORDER = -23,          /* called out of order, or data with a gap */
	TINYML_SLOT_NO_CODE = -24,        /* this machine cannot run code from a slot */
	TINYML_SLOT_OVERTAKEN = -25,      /* another update has begun since */
	TINYML_SLOT_KERNEL = -26,         /* needs a kernel that this firmware does not have */
	TINYML_SLOT_CALL = -27,           /* a call would leave its memory */
	TINYML_SLOT_WORK = -28, /* more work than it states, or than the firmware allows */
	TINYML_SLOT_OLD = -29,  /* made for older kernels, which read other tables */
};

/* What code may need of a core, one bit each; an image lists all that it needs, the firmware all
 * that there is. */
#define TINYML_SLOT_CORE_ARMV6M     (1u << 0)
#define TINYML_SLOT_CORE_ARMV7M     (1u << 1)
#define TINYML_SLOT_CORE_ARMV8M     (1u << 2)
#define TINYML_SLOT_CORE_DSP        (1u << 3)
#define TINYML_SLOT_CORE_MVE        (1u << 4)
#define TINYML_SLOT_CORE_MVE_FLOAT  (1u << 5)
#define TINYML_SLOT_CORE_FPU        (1u << 6)
#define TINYML_SLOT_CORE_FPU_DOUBLE (1u << 7)
#define TINYML_SLOT_CORE_RV32I      (1u << 16)
#define TINYML_SLOT_CORE_RV32M      (1u << 17)
#define TINYML_SLOT_CORE_RV32A      (1u << 18)
#define TINYML_SLOT_CORE_RV32C      (1u << 19)
#define TINYML_SLOT_CORE_RV32F      (1u << 20)
#define TINYML_SLOT_CORE_RV32E      (1u << 21) /* 16 registers; instead of RV32I */
#define TINYML_SLOT_CORE_VECTORS    (1u << 22) /* Zve32x; only images without code ask for it */

#define TINYML_SLOT_IF(condition, bit) ((condition) ? (bit) : 0u)

/* The core that this source is compiled for. */
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#ifndef __ARM_FP
#define TINYML_SLOT_FP 0
#else
#define TINYML_SLOT_FP __ARM_FP
#endif
#ifndef __ARM_FEATURE_MVE
#define TINYML_SLOT_VECTORS 0
#else
#define TINYML_SLOT_VECTORS __ARM_FEATURE_MVE
#endif
#ifdef __ARM_ARCH_ISA_THUMB
#define TINYML_SLOT_THUMB __ARM_ARCH_ISA_THUMB
#else
#define TINYML_SLOT_THUMB 2
#endif
#define TINYML_SLOT_CORE                                                                           \
	(TINYML_SLOT_CORE_ARMV6M |                                                                 \
	 TINYML_SLOT_IF(TINYML_SLOT_THUMB >= 2, TINYML_SLOT_CORE_ARMV7M) |                         \
	 TINYML_SLOT_IF(__ARM_ARCH >= 8, TINYML_SLOT_CORE_ARMV8M) |                                \
	 TINYML_SLOT_IF(TINYML_CORE_DSP, TINYML_SLOT_CORE_DSP) |                                   \
	 TINYML_SLOT_IF((TINYML_SLOT_VECTORS & 1) != 0, TINYML_SLOT_CORE_MVE) |                    \
	 TINYML_SLOT_IF((TINYML_SLOT_VECTORS & 2) != 0, TINYML_SLOT_CORE_MVE_FLOAT) |              \
	 TINYML_SLOT_IF((TINYML_SLOT_FP & 4) != 0, TINYML_SLOT_CORE_FPU) |                         \
	 TINYML_SLOT_IF((TINYML_SLOT_FP & 8) != 0, TINYML_SLOT_CORE_FPU_DOUBLE))
#elif defined(__riscv) && __riscv_xlen == 32
#if defined(__riscv_32e) || defined(__riscv_e)
#define TINYML_SLOT_RISCV_BASE TINYML_SLOT_CORE_RV32E
#else
#define TINYML_SLOT_RISCV_BASE TINYML_SLOT_CORE_RV32I
#endif
#ifdef __riscv_mul
#define TINYML_SLOT_RISCV_M TINYML_SLOT_CORE_RV32M
#else
#define TINYML_SLOT_RISCV_M 0u
#endif
#ifdef __riscv_atomic
#define TINYML_SLOT_RISCV_A TINYML_SLOT_CORE_RV32A
#else
#define TINYML_SLOT_RISCV_A 0u
#endif
#ifdef __riscv_compressed
#define TINYML_SLOT_RISCV_C TINYML_SLOT_CORE_RV32C
#else
#define TINYML_SLOT_RISCV_C 0u
#endif
#ifdef __riscv_flen
#define TINYML_SLOT_RISCV_F TINYML_SLOT_CORE_RV32F
#else
#define TINYML_SLOT_RISCV_F 0u
#endif
#define TINYML_SLOT_CORE                                                                           \
	(TINYML_SLOT_RISCV_BASE | TINYML_SLOT_RISCV_M | TINYML_SLOT_RISCV_A |                      \
	 TINYML_SLOT_RISCV_C | TINYML_SLOT_RISCV_F)
#else
/* A machine that emulates a device, for tests of updates: it accepts images for any core and,
 * without a `call` of its own, runs none. */
#define TINYML_SLOT_PLAYS_DEVICE 1
#define TINYML_SLOT_CORE         0xffffffffu
#endif

/** Where an image is, and where it believes to be. Both are the same on a device. */
struct tinyml_slot_region {
	const void *memory; /* readable here */
	uint32_t address;   /* linked for this address */
	uint32_t bytes;
	const struct tinyml_flash *flash; /* for updates: <tinyml/slots.h> */
};

/** Who may sign. `verify` compares a SHA-512 digest with that of the data, then checks an Ed25519
 * signature of the digest. Adapters: <tinyml/slot_trust.h>. */
struct tinyml_slot_trust {
	/** @return 0, TINYML_SLOT_HASH or TINYML_SLOT_SIGNATURE */
	int (*verify)(const struct tinyml_slot_trust *trust, const uint8_t *data, uint32_t bytes,
		      const uint8_t digest[64], const uint8_t signature[64]);
	const uint8_t *public_key; /* 32 bytes */
};

struct tinyml_slot;

/** A function in a slot. */
typedef int (*tinyml_slot_entry)(void *arena, void *state);

/** What runs images without code: TINYML_SLOT_PLAYER_DEFINE() of <tinyml/player.h> makes one. */
struct tinyml_slot_player {
	/** Whether the image can be played; it is inside its slot, whole and trusted. */
	int (*check)(const struct tinyml_slot *slot, const void *image, uint32_t bytes);
	/** Make it the model of the slot, with its state reset. */
	int (*open)(struct tinyml_slot *slot, const void *image, uint32_t bytes);
	int (*run)(struct tinyml_slot *slot);
	void (*reset)(struct tinyml_slot *slot);
	int (*test)(struct tinyml_slot *slot);
	struct tinyml_player *player;
	uint32_t core;          /* what images may need: TINYML_SLOT_CORE_... */
	const uint8_t *kernels; /* by number; those that are not 0 can be played */
	const uint32_t *kernel_count;
};

/** A model that comes from a slot. TINYML_SLOT_DEFINE() makes one. */
struct tinyml_slot {
	struct tinyml_model model; /* like any other, once opened */
	struct tinyml_tensor tensors[TINYML_SLOT_TENSORS];
	uint8_t *arena;
	uint8_t *state;
	uint32_t arena_bytes;
	uint32_t state_bytes;
	uint32_t version[2]; /* major, minor and revision in the first word, build in the second */
	tinyml_slot_entry run;
	tinyml_slot_entry reset;
	tinyml_slot_entry test;
	int (*run_model)(void); /* what the model's own function pointers are */
	void (*reset_model)(void);
	/** How to call code in a slot where a plain call does not do; NULL: a plain call. */
	int (*call)(struct tinyml_slot *slot, tinyml_slot_entry entry);
	/** How to make the core see what was written to a slot; NULL: tinyml_slot_sync(). */
	void (*sync)(const void *start, uint32_t bytes);
	/** What runs images without code; NULL: they are refused. */
	const struct tinyml_slot_player *player;
	bool played; /* the model is one without code */
};

/* Where the memory of a model from a slot goes, next to TINYML_ARENA_SECTION(): its state, and what
 * the firmware knows about it. The default is ordinary RAM. */
#ifndef TINYML_SLOT_STATE_SECTION
#define TINYML_SLOT_STATE_SECTION(slot_name)
#endif
#ifndef TINYML_SLOT_SECTION
#define TINYML_SLOT_SECTION(slot_name)
#endif

/** A model called @a name that comes from a slot, and the memory it may use. */
#define TINYML_SLOT_DEFINE(slot_name, arena_size, state_size)                                      \
	TINYML_SLOT_DEFINE_WITH(slot_name, arena_size, state_size, NULL)

/** The same; @a slot_player runs images without code. */
#define TINYML_SLOT_DEFINE_WITH(slot_name, arena_size, state_size, slot_player)                    \
	static uint8_t                                                                             \
		slot_name##_slot_arena[(arena_size) > 0 ? (arena_size) : 1] TINYML_ARENA_SECTION(  \
			slot_name) __attribute__((aligned(TINYML_ARENA_ALIGNMENT)));               \
	static uint8_t                                                                             \
		slot_name##_slot_state[(state_size) > 0 ? (state_size)                             \
							: 1] TINYML_SLOT_STATE_SECTION(slot_name)  \
			__attribute__((aligned(TINYML_ARENA_ALIGNMENT)));                          \
	static int slot_name##_slot_run(void);                                                     \
	static void slot_name##_slot_reset(void);                                                  \
	struct tinyml_slot slot_name TINYML_SLOT_SECTION(slot_name) = {                            \
		.model = {.name = "", .run = slot_name##_slot_run},                                \
		.arena = slot_name##_slot_arena,                                                   \
		.state = slot_name##_slot_state,                                                   \
		.arena_bytes = (arena_size),                                                       \
		.state_bytes = (state_size),                                                       \
		.run_model = slot_name##_slot_run,                                                 \
		.reset_model = slot_name##_slot_reset,                                             \
		.player = (slot_player),                                                           \
	};                                                                                         \
	static int slot_name##_slot_run(void)                                                      \
	{                                                                                          \
		return tinyml_slot_run(&slot_name);                                                \
	}                                                                                          \
	static void slot_name##_slot_reset(void)                                                   \
	{                                                                                          \
		tinyml_slot_reset(&slot_name);                                                     \
	}                                                                                          \
	extern struct tinyml_slot slot_name /* the semicolon comes from the caller */

/**
 * Check everything about the image in a region and, if all is well, make `slot->model` the model in
 * it, with its state reset. Without @a trust, a checksum finds damage but not forgery.
 *
 * @return 0, or one of tinyml_slot_error; then the slot is closed and nothing was executed.
 */
int tinyml_slot_open(struct tinyml_slot *slot, const struct tinyml_slot_region *region,
		     const struct tinyml_slot_trust *trust);

/** The same checks without using the image. The arena and state sizes are those of @a slot. */
int tinyml_slot_check(const struct tinyml_slot *slot, const struct tinyml_slot_region *region,
		      const struct tinyml_slot_trust *trust);

/** Forget the model: runs fail with TINYML_SLOT_NONE until another one is opened. */
void tinyml_slot_close(struct tinyml_slot *slot);

/** Run the input that travels with the model and compare; leaves the state reset.
 *
 * @return 0, TINYML_SLOT_SELF_TEST, TINYML_SLOT_NONE without a model, or TINYML_SLOT_NO_CODE on a
 * machine that only emulates a device. Whatever else the code in the slot returns is a failure. */
int tinyml_slot_self_test(struct tinyml_slot *slot);

/** What `model.run` and `model.reset` do. */
int tinyml_slot_run(struct tinyml_slot *slot);
void tinyml_slot_reset(struct tinyml_slot *slot);

/**
 * Make the core read and run what is in memory now, not what its caches hold of it: cleans and
 * invalidates the data cache and invalidates the instruction cache (Cortex-M7, M55, M85) or
 * executes `fence.i` (RISC-V). Where there are no caches, or they are off, nothing happens. Every
 * check of a slot begins with it. Caches outside of the core, such as ICACHE of an STM32U5, need a
 * function of their own: `sync` in struct tinyml_slot.
 */
void tinyml_slot_sync(const void *start, uint32_t bytes);

/** An error in a few words. Links all of them. */
const char *tinyml_slot_error_text(int error);

/** CRC-32 as in zlib: `crc` is 0 for the first part of the data. */
uint32_t tinyml_slot_crc32(uint32_t crc, const void *data, uint32_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_SLOT_H_ */
