/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The player: runs a model that is only data.
 *
 * `tinyml pack --data` writes such models. The compiler has decided everything: the order of the
 * calls, the kernel of each, every address in the arena, the layout of the weights. The player
 * checks an image once, then makes the calls.
 *
 *	TINYML_PLAYER_DEFINE(player, 16384, 4096);
 *
 *	if (tinyml_player_open(&player, pack, bytes) == 0) {
 *		memcpy(player.model.inputs[0].data, samples, player.model.inputs[0].bytes);
 *		player.model.run();
 *	}
 *
 * An image stays where it is and is read in place. Which kernels a firmware has is stated in a
 * table, `tinyml_play_kernels`, which the build writes (see <tinyml/play.h>).
 */

#ifndef TINYML_PLAYER_H_
#define TINYML_PLAYER_H_

#include <tinyml/play.h>
#include <tinyml/slot.h>
#include <tinyml/tinyml.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the core has that images may need, a bit each: TINYML_SLOT_CORE_... */
#ifdef TINYML_SLOT_PLAYS_DEVICE
#define TINYML_PLAYER_CORE 0u /* plain C only */
#elif TINYML_CORE_RVV
#define TINYML_PLAYER_CORE (TINYML_SLOT_CORE | TINYML_SLOT_CORE_VECTORS)
#else
#define TINYML_PLAYER_CORE TINYML_SLOT_CORE
#endif

/** Images start at multiples of this. */
#define TINYML_PLAYER_ALIGNMENT 16

/** The most inputs and outputs together that a model may have. */
#ifndef TINYML_PLAYER_TENSORS
#define TINYML_PLAYER_TENSORS 4
#endif

/** What operands are in: the two highest bits of their position. */
enum tinyml_player_memory {
	TINYML_PLAYER_ARENA,
	TINYML_PLAYER_STATE,
	TINYML_PLAYER_IMAGE,
	TINYML_PLAYER_NOTHING, /* a NULL pointer */
};

/** A model that comes as data. TINYML_PLAYER_DEFINE() makes one. */
struct tinyml_player {
	struct tinyml_model model; /* like any other, once opened */
	struct tinyml_tensor *tensors;
	uint8_t *memory[4]; /* by enum tinyml_player_memory */
	uint32_t arena_bytes;
	uint32_t state_bytes;
	const struct tinyml_program *program; /* NULL: no model */
	uint32_t test;                        /* position of the self-test; 0: there is none */
	int (*run_model)(void);               /* what the model's own function pointers are */
	void (*reset_model)(void);
	uint32_t work_limit;  /* the most work of a run that is accepted; 0: any */
	uint16_t call;        /* that a check refused, counted from 0 */
	uint8_t tensor_count; /* how many inputs and outputs there is room for */
};

/* Where a player and the state of its model go; the arena has TINYML_ARENA_SECTION(). */
#ifndef TINYML_PLAYER_SECTION
#define TINYML_PLAYER_SECTION(player_name)
#endif
#ifndef TINYML_PLAYER_STATE_SECTION
#define TINYML_PLAYER_STATE_SECTION(player_name)
#endif

/** A player called @a player_name, and the memory that its models may use. */
#define TINYML_PLAYER_DEFINE(player_name, arena_size, state_size)                                  \
	static uint8_t                                                                             \
		player_name##_player_arena[(arena_size) > 0 ? (arena_size)                         \
							    : 1] TINYML_ARENA_SECTION(player_name) \
			__attribute__((aligned(TINYML_ARENA_ALIGNMENT)));                          \
	static uint8_t player_name##_player_state                                                  \
		[(state_size) > 0 ? (state_size) : 1] TINYML_PLAYER_STATE_SECTION(player_name)     \
			__attribute__((aligned(TINYML_ARENA_ALIGNMENT)));                          \
	static struct tinyml_tensor player_name##_player_tensors[TINYML_PLAYER_TENSORS];           \
	static int player_name##_player_run(void);                                                 \
	static void player_name##_player_reset(void);                                              \
	struct tinyml_player player_name TINYML_PLAYER_SECTION(player_name) = {                    \
		.model = {.name = "", .run = player_name##_player_run},                            \
		.tensors = player_name##_player_tensors,                                           \
		.memory = {player_name##_player_arena, player_name##_player_state},                \
		.arena_bytes = (arena_size),                                                       \
		.state_bytes = (state_size),                                                       \
		.run_model = player_name##_player_run,                                             \
		.reset_model = player_name##_player_reset,                                         \
		.tensor_count = TINYML_PLAYER_TENSORS,                                             \
	};                                                                                         \
	static int player_name##_player_run(void)                                                  \
	{                                                                                          \
		return tinyml_player_run(&player_name);                                            \
	}                                                                                          \
	static void player_name##_player_reset(void)                                               \
	{                                                                                          \
		tinyml_player_reset(&player_name);                                                 \
	}                                                                                          \
	extern struct tinyml_player player_name /* the semicolon comes from the caller */

/**
 * Check an image and, if all is well, make `player->model` the model in it, with its state reset.
 * Of a pack with images for several cores, it is the one for this core. Image or pack start at a
 * multiple of TINYML_PLAYER_ALIGNMENT and stay there as long as the model is open.
 *
 * The check proves that no call reads or writes outside the image, the arena and the state. It does
 * not depend on who made the image. A word sum finds damage; for signatures, keep images in slots.
 *
 * @return 0, or one of tinyml_slot_error. Then no model is open; after TINYML_SLOT_KERNEL,
 * TINYML_SLOT_OLD, TINYML_SLOT_CALL and TINYML_SLOT_WORK `player->call` is the number of the call
 * that was refused, and after TINYML_SLOT_ARENA `player->model.arena_bytes` is what the model
 * needs.
 */
int tinyml_player_open(struct tinyml_player *player, const void *image, uint32_t bytes);

/** The same checks without using the image. The arena and state sizes are those of @a player. */
int tinyml_player_check(const struct tinyml_player *player, const void *image, uint32_t bytes);

/** Run the input that travels with the model and compare; leaves the state reset.
 *
 * @return 0, TINYML_SLOT_SELF_TEST, or TINYML_SLOT_NONE without a model or without a test. */
int tinyml_player_self_test(struct tinyml_player *player);

/**
 * From a pack, which is a .tmodel file, to the image in it that makes most of this core: a device
 * needs to keep no other. An image stays as it is.
 *
 * @return 0, TINYML_SLOT_CORE_TOO_SMALL without an image for this core, or another error
 */
int tinyml_pack_choose(const void **pack, uint32_t *bytes);

/** Forget the model: runs fail with TINYML_SLOT_NONE until another one is opened. */
void tinyml_player_close(struct tinyml_player *player);

/** What `model.run` and `model.reset` do. */
int tinyml_player_run(struct tinyml_player *player);
void tinyml_player_reset(struct tinyml_player *player);

/** A slot (<tinyml/slot.h>) for images with code and for images without. */
#define TINYML_SLOT_PLAYER_DEFINE(slot_name, arena_size, state_size)                               \
	static struct tinyml_player slot_name##_slot_player_data TINYML_PLAYER_SECTION(slot_name); \
	static const struct tinyml_slot_player slot_name##_slot_player = {                         \
		.check = tinyml_slot_player_check,                                                 \
		.open = tinyml_slot_player_open,                                                   \
		.run = tinyml_slot_player_run,                                                     \
		.reset = tinyml_slot_player_reset,                                                 \
		.test = tinyml_slot_player_test,                                                   \
		.player = &slot_name##_slot_player_data,                                           \
		.core = TINYML_PLAYER_CORE,                                                        \
		.kernels = tinyml_play_index,                                                      \
		.kernel_count = &tinyml_play_index_count,                                          \
	};                                                                                         \
	TINYML_SLOT_DEFINE_WITH(slot_name, arena_size, state_size, &slot_name##_slot_player)

/** What a slot calls for images without code. */
int tinyml_slot_player_check(const struct tinyml_slot *slot, const void *image, uint32_t bytes);
int tinyml_slot_player_open(struct tinyml_slot *slot, const void *image, uint32_t bytes);
int tinyml_slot_player_run(struct tinyml_slot *slot);
void tinyml_slot_player_reset(struct tinyml_slot *slot);
int tinyml_slot_player_test(struct tinyml_slot *slot);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAYER_H_ */
