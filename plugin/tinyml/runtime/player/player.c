/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Opens images and makes their calls. */

#include <string.h>

#include "../slot/format.h"
#include "program.h"

#define MAX_RANK 8u

const uint8_t tinyml_player_sizes[] = {
	[TINYML_FLOAT32] = 4, [TINYML_FLOAT64] = 8, [TINYML_INT8] = 1,  [TINYML_UINT8] = 1,
	[TINYML_INT16] = 2,   [TINYML_UINT16] = 2,  [TINYML_INT32] = 4, [TINYML_UINT32] = 4,
	[TINYML_INT64] = 8,   [TINYML_UINT64] = 8,  [TINYML_BOOL] = 1,
};

#define SUM_WORDS 8 /* at a time */

/* A word sum that notices exchanged words too: ror(sum, 1) + word. */
static uint32_t player_sum_word(uint32_t sum, uint32_t word)
{
	return ((sum >> 1) | (sum << 31)) + word;
}

/* Eight words at a time, up to `end`. */
#if defined(__thumb2__)

/* An instruction a word, and one that loads eight; compilers need two a word and more. */
static uint32_t player_sum_words(uint32_t sum, const uint32_t *at, const uint32_t *end)
{
	while (at != end) {
		/* clang-format off */
		__asm__ volatile(
			"ldmia %[at]!, {r3-r6, r8, r9, r12, lr}\n\t"
			"add %[sum], r3, %[sum], ror #1\n\t"
			"add %[sum], r4, %[sum], ror #1\n\t"
			"add %[sum], r5, %[sum], ror #1\n\t"
			"add %[sum], r6, %[sum], ror #1\n\t"
			"add %[sum], r8, %[sum], ror #1\n\t"
			"add %[sum], r9, %[sum], ror #1\n\t"
			"add %[sum], r12, %[sum], ror #1\n\t"
			"add %[sum], lr, %[sum], ror #1\n\t"
			: [sum] "+r"(sum), [at] "+r"(at)
			:
			: "r3", "r4", "r5", "r6", "r8", "r9", "r12", "lr", "memory");
		/* clang-format on */
	}
	return sum;
}

#else

static uint32_t player_sum_words(uint32_t sum, const uint32_t *at, const uint32_t *end)
{
	for (; at != end; at += SUM_WORDS) {
		for (uint32_t i = 0; i < SUM_WORDS; i++) {
			sum = player_sum_word(sum, at[i]);
		}
	}
	return sum;
}

#endif

static uint32_t player_sum(uint32_t sum, const uint8_t *start, const uint8_t *end)
{
	const uint32_t *at = (const void *)start;
	const uint32_t *const last = (const void *)end;
	const uint32_t *const whole = last - (last - at) % SUM_WORDS;

	for (sum = player_sum_words(sum, at, whole), at = whole; at != last; at++) {
		sum = player_sum_word(sum, *at);
	}
	return sum;
}

struct player_image {
	const uint8_t *start;
	uint32_t bytes; /* header and payload */
	const struct descriptor *descriptor;
};

static bool player_inside(const struct player_image *image, uint32_t position, uint32_t bytes)
{
	return position >= sizeof(struct container_header) && position <= image->bytes &&
	       bytes <= image->bytes - position;
}

static bool player_is_text(const struct player_image *image, uint32_t position)
{
	return player_inside(image, position, 1) &&
	       memchr(image->start + position, 0, image->bytes - position) != NULL;
}

static int player_find(struct player_image *image, const void *start, uint32_t bytes)
{
	const struct container_header *header = start;

	if ((uintptr_t)start % TINYML_PLAYER_ALIGNMENT != 0u) {
		return TINYML_SLOT_REGION;
	}
	if (bytes < sizeof(*header) + sizeof(struct descriptor)) {
		return TINYML_SLOT_BOUNDS;
	}
	if (header->magic != MCUBOOT_MAGIC) {
		return header->magic == ERASED ? TINYML_SLOT_EMPTY : TINYML_SLOT_MAGIC;
	}
	if (header->header_bytes != sizeof(*header) || header->payload_bytes % 4u != 0u ||
	    header->payload_bytes < sizeof(struct descriptor) ||
	    header->payload_bytes > bytes - sizeof(*header)) {
		return TINYML_SLOT_BOUNDS;
	}
	image->start = start;
	image->bytes = (uint32_t)sizeof(*header) + header->payload_bytes;
	image->descriptor = (const void *)(image->start + sizeof(*header));
	return 0;
}

/* Whether the extents of a tensor are there, and their product is its size: programs that use
 * tensors may rely on either. */
static bool player_has_shape(const struct player_image *image, const struct tensor_record *record)
{
	const int32_t *shape = (const void *)(image->start + record->shape);
	uint32_t bytes = tinyml_player_sizes[record->type];

	/* Processors load eight bytes from addresses that are multiples of four. */
	if (record->rank > MAX_RANK || record->shape % 4u != 0u ||
	    !player_inside(image, record->shape, 4u * record->rank) ||
	    (record->offset & (bytes - 1u) & 3u) != 0u) {
		return false;
	}
	for (uint32_t i = 0; i < record->rank; i++) {
		bytes = tinyml_check_times(bytes, (uint32_t)shape[i]);
	}
	return bytes == record->bytes;
}

static int player_take_tensor(struct tinyml_player *player, const struct player_image *image,
			      const struct tensor_record *record, struct tinyml_tensor *tensor)
{
	const bool in_state = record->in_state != 0u;
	const uint32_t room =
		in_state ? image->descriptor->state_bytes : image->descriptor->arena_bytes;

	if (!player_is_text(image, record->name) || record->type > TINYML_BOOL ||
	    !player_has_shape(image, record) || record->offset > room ||
	    record->bytes > room - record->offset) {
		return TINYML_SLOT_POINTER;
	}
	if (tensor == NULL) { /* only checked */
		return 0;
	}
	*tensor = (struct tinyml_tensor){
		.name = (const char *)(image->start + record->name),
		.data = player->memory[in_state ? TINYML_PLAYER_STATE : TINYML_PLAYER_ARENA] +
			record->offset,
		.shape = (const void *)(image->start + record->shape),
		.bytes = record->bytes,
		.scale = record->scale,
		.zero_point = record->zero_point,
		.type = record->type,
		.rank = record->rank,
	};
	return 0;
}

static int player_take_tensors(struct tinyml_player *player, const struct player_image *image)
{
	const struct descriptor *descriptor = image->descriptor;
	const uint32_t count = (uint32_t)descriptor->inputs + descriptor->outputs;
	const struct tensor_record *records = (const void *)(image->start + descriptor->tensors);
	int error = 0;

	if (count > player->tensor_count) {
		return TINYML_SLOT_TOO_MANY;
	}
	if (descriptor->tensors % 4u != 0u ||
	    !player_inside(image, descriptor->tensors, count * (uint32_t)sizeof(*records)) ||
	    !player_is_text(image, descriptor->name)) {
		return TINYML_SLOT_POINTER;
	}
	for (uint32_t i = 0; i < count && error == 0; i++) {
		error = player_take_tensor(player, image, &records[i],
					   player->tensors != NULL ? &player->tensors[i] : NULL);
	}
	return error;
}

static int player_find_program(struct tinyml_player *player, const struct player_image *image)
{
	const uint32_t position = image->descriptor->run;
	const struct tinyml_program *program = (const void *)(image->start + position);
	const uint8_t *const payload = image->start + sizeof(struct container_header);
	uint32_t sum;

	if (position % 4u != 0u || !player_inside(image, position, (uint32_t)sizeof(*program))) {
		return TINYML_SLOT_POINTER;
	}
	if (program->format != PROGRAM_FORMAT) {
		return TINYML_SLOT_FORMAT_NEW;
	}
	sum = player_sum(0, payload, image->start + position);
	sum = player_sum(sum, image->start + position + 4, image->start + image->bytes);
	if (sum != program->sum) {
		return TINYML_SLOT_DAMAGED;
	}
	player->program = program;
	return 0;
}

/* The self-test, if there is one: what is expected of each output is inside. */
static int player_check_test(const struct player_image *image)
{
	const struct descriptor *descriptor = image->descriptor;
	const struct tensor_record *outputs =
		(const struct tensor_record *)(const void *)(image->start + descriptor->tensors) +
		descriptor->inputs;
	const struct test_output *tests =
		(const void *)(image->start + descriptor->test +
			       descriptor->inputs * sizeof(struct test_input));

	if (descriptor->test == 0u) {
		return 0;
	}
	if (descriptor->test % 4u != 0u ||
	    !player_inside(image, descriptor->test,
			   (uint32_t)(descriptor->inputs * sizeof(struct test_input) +
				      descriptor->outputs * sizeof(struct test_output)))) {
		return TINYML_SLOT_POINTER;
	}
	for (uint32_t i = 0; i < descriptor->outputs; i++) {
		if (tests[i].expected % 8u != 0u ||
		    !player_inside(image, tests[i].expected, outputs[i].bytes)) {
			return TINYML_SLOT_POINTER;
		}
	}
	return 0;
}

static int player_check(struct tinyml_player *player, const struct player_image *image)
{
	const struct descriptor *descriptor = image->descriptor;
	int error;

	if (descriptor->magic != SLOT_MAGIC || descriptor->format != TINYML_SLOT_FORMAT) {
		return TINYML_SLOT_FORMAT_NEW;
	}
	if (descriptor->interface != TINYML_PLAYER_INTERFACE) {
		return TINYML_SLOT_ABI;
	}
	if ((descriptor->core & ~TINYML_PLAYER_CORE) != 0u) {
		return TINYML_SLOT_CORE_TOO_SMALL;
	}
	if (descriptor->arena_bytes > player->arena_bytes) {
		return TINYML_SLOT_ARENA;
	}
	if (descriptor->state_bytes > player->state_bytes) {
		return TINYML_SLOT_STATE;
	}
	error = player_find_program(player, image);
	if (error != 0) {
		return error;
	}
	player->memory[TINYML_PLAYER_IMAGE] = (uint8_t *)(uintptr_t)image->start;
	player->model.arena_bytes = descriptor->arena_bytes;
	error = player_take_tensors(player, image);
	error = error != 0 ? error : player_check_test(image);
	return error != 0 ? error : tinyml_program_check(player, image->bytes);
}

int tinyml_player_check(const struct tinyml_player *player, const void *start, uint32_t bytes)
{
	struct tinyml_player trial = *player;
	struct player_image image;
	int error = tinyml_pack_choose(&start, &bytes);

	error = error != 0 ? error : player_find(&image, start, bytes);
	trial.tensors = NULL; /* those of the player are in use */
	return error != 0 ? error : player_check(&trial, &image);
}

int tinyml_player_open(struct tinyml_player *player, const void *start, uint32_t bytes)
{
	struct tinyml_model *const model = &player->model;
	struct player_image image;
	int error;

	tinyml_player_close(player);
	error = tinyml_pack_choose(&start, &bytes);
	error = error != 0 ? error : player_find(&image, start, bytes);
	error = error != 0 ? error : player_check(player, &image);
	if (error != 0) {
		player->program = NULL;
		return error;
	}
	model->name = (const char *)(image.start + image.descriptor->name);
	model->inputs = player->tensors;
	model->outputs = player->tensors + image.descriptor->inputs;
	model->input_count = image.descriptor->inputs;
	model->output_count = image.descriptor->outputs;
	model->run = player->run_model;
	model->reset = player->program->reset_words != 0u ? player->reset_model : NULL;
	player->test = image.descriptor->test;
	memcpy(model->sha256, image.descriptor->sha256, sizeof(model->sha256));
	tinyml_player_reset(player);
	return 0;
}

void tinyml_player_close(struct tinyml_player *player)
{
	player->model.name = "";
	player->model.input_count = 0;
	player->model.output_count = 0;
	player->model.reset = NULL;
	player->program = NULL;
}

/* The compiler keeps a value in a register instead of computing it again. */
#define PLAYER_KEEP(value) __asm__("" : "+r"(value))

/* The address of the operand at `word`; `memory` has addresses that make up for its highest bits.
 */
static inline void *player_operand(const uintptr_t *memory, const uint32_t *word)
{
	return (void *)(memory[OPERAND_MEMORY(*word)] + *word);
}

/* The operands of any call; returns what follows it. */
__attribute__((noinline)) static const uint32_t *
player_operands(const uintptr_t *memory, const uint32_t *at, uint32_t turn, void **operand)
{
	const uint32_t head = at[0], count = CALL_COUNT(head);

	at += 2;
	for (uint32_t i = 0; i < count; i++) {
		operand[i] = player_operand(memory, at++);
	}
	if (CALL_STRIDED(head)) {
		for (uint32_t i = 0; i < count; i++) {
			operand[i] = (uint8_t *)operand[i] + turn * *at++;
		}
	}
	return at;
}

/* Make calls up to `end` or to a repetition; returns where that is. Small models spend a hundredth
 * of their time here. So operands, of which kernels have seldom more than three, are not a loop. */
__attribute__((noinline)) static const uint32_t *player_calls(const uint8_t *image,
							      const uintptr_t *memory,
							      const uint32_t *at,
							      const uint32_t *end, uint32_t turn)
{
	const struct tinyml_play_kernel *kernels = tinyml_play_kernels;
	const uint8_t *index = tinyml_play_index;
	struct tinyml_play play; /* operands that the kernel does not have stay as they are */

	PLAYER_KEEP(kernels);
	PLAYER_KEEP(index);
	play.image = image;
	while (at != end) {
		const uint32_t head = at[0], form = head & CALL_FORM(7, 1);
		const struct tinyml_play_kernel *kernel;

		if (CALL_KERNEL(head) == CALL_REPEAT) {
			break;
		}
		kernel = &kernels[index[CALL_KERNEL(head)]];
		PLAYER_KEEP(kernel);
		play.kernel = kernel;
		play.record = image + at[1];
		if (form == CALL_FORM(2, 0)) {
			play.operand[0] = player_operand(memory, &at[2]);
			play.operand[1] = player_operand(memory, &at[3]);
			at += 4;
		} else if (form == CALL_FORM(3, 0)) {
			play.operand[0] = player_operand(memory, &at[2]);
			play.operand[1] = player_operand(memory, &at[3]);
			play.operand[2] = player_operand(memory, &at[4]);
			at += 5;
		} else {
			at = player_operands(memory, at, turn, play.operand);
		}
		TINYML_LAYER(CALL_HIGH(head), kernel->play(&play));
	}
	return at;
}

static void player_play(const struct tinyml_player *player, uint32_t position, uint32_t words)
{
	const uint8_t *const image = player->memory[TINYML_PLAYER_IMAGE];
	const uint32_t *at = (const void *)(image + position);
	const uint32_t *const end = at + words;
	uintptr_t memory[4];

	for (uint32_t i = 0; i < 4u; i++) {
		memory[i] = (uintptr_t)player->memory[i] - ((uintptr_t)i << OPERAND_BITS);
	}
	for (at = player_calls(image, memory, at, end, 0); at != end;
	     at = player_calls(image, memory, at, end, 0)) {
		const uint32_t turns = CALL_HIGH(at[0]);
		const uint32_t *const calls = at + 2;

		at = calls + at[1];
		for (uint32_t turn = 0; turn < turns; turn++) {
			(void)player_calls(image, memory, calls, at, turn);
		}
	}
}

int tinyml_player_run(struct tinyml_player *player)
{
	if (player->program == NULL) {
		return TINYML_SLOT_NONE;
	}
	player_play(player, player->program->run, player->program->run_words);
	return 0;
}

void tinyml_player_reset(struct tinyml_player *player)
{
	if (player->program != NULL) {
		player_play(player, player->program->reset, player->program->reset_words);
	}
}
