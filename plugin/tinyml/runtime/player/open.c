/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Opens images: checks all that is in them, once. */

#include <string.h>

#include "../slot/format.h"
#include "program.h"

#define MAX_RANK 8u

const uint8_t tinyml_player_sizes[] = {
	[TINYML_FLOAT32] = 4, [TINYML_FLOAT64] = 8, [TINYML_INT8] = 1,  [TINYML_UINT8] = 1,
	[TINYML_INT16] = 2,   [TINYML_UINT16] = 2,  [TINYML_INT32] = 4, [TINYML_UINT32] = 4,
	[TINYML_INT64] = 8,   [TINYML_UINT64] = 8,  [TINYML_BOOL] = 1,
};

struct open_image {
	const uint8_t *start;
	uint32_t bytes; /* header and payload */
	const struct descriptor *descriptor;
};

static bool open_inside(const struct open_image *image, uint32_t position, uint32_t bytes)
{
	return position >= sizeof(struct container_header) && position <= image->bytes &&
	       bytes <= image->bytes - position;
}

static bool open_is_text(const struct open_image *image, uint32_t position)
{
	return open_inside(image, position, 1) &&
	       memchr(image->start + position, 0, image->bytes - position) != NULL;
}

static int open_find(struct open_image *image, const void *start, uint32_t bytes)
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
static bool open_has_shape(const struct open_image *image, const struct tensor_record *record)
{
	const int32_t *shape = (const void *)(image->start + record->shape);
	uint32_t bytes = tinyml_player_sizes[record->type];

	/* Processors load eight bytes from addresses that are multiples of four. */
	if (record->rank > MAX_RANK || record->shape % 4u != 0u ||
	    !open_inside(image, record->shape, 4u * record->rank) ||
	    (record->offset & (bytes - 1u) & 3u) != 0u) {
		return false;
	}
	for (uint32_t i = 0; i < record->rank; i++) {
		bytes = tinyml_check_times(bytes, (uint32_t)shape[i]);
	}
	return bytes == record->bytes;
}

static int open_take_tensor(struct tinyml_player *player, const struct open_image *image,
			    const struct tensor_record *record, struct tinyml_tensor *tensor)
{
	const bool in_state = record->in_state != 0u;
	const uint32_t room =
		in_state ? image->descriptor->state_bytes : image->descriptor->arena_bytes;

	if (!open_is_text(image, record->name) || record->type > TINYML_BOOL ||
	    !open_has_shape(image, record) || record->offset > room ||
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

static int open_take_tensors(struct tinyml_player *player, const struct open_image *image)
{
	const struct descriptor *descriptor = image->descriptor;
	const uint32_t count = (uint32_t)descriptor->inputs + descriptor->outputs;
	const struct tensor_record *records = (const void *)(image->start + descriptor->tensors);
	int error = 0;

	if (count > player->tensor_count) {
		return TINYML_SLOT_TOO_MANY;
	}
	if (descriptor->tensors % 4u != 0u ||
	    !open_inside(image, descriptor->tensors, count * (uint32_t)sizeof(*records)) ||
	    !open_is_text(image, descriptor->name)) {
		return TINYML_SLOT_POINTER;
	}
	for (uint32_t i = 0; i < count && error == 0; i++) {
		error = open_take_tensor(player, image, &records[i],
					 player->tensors != NULL ? &player->tensors[i] : NULL);
	}
	return error;
}

static int open_find_program(struct tinyml_player *player, const struct open_image *image)
{
	const uint32_t position = image->descriptor->run;
	const struct tinyml_program *program = (const void *)(image->start + position);
	const uint8_t *const payload = image->start + sizeof(struct container_header);
	uint32_t sum;

	if (position % 4u != 0u || !open_inside(image, position, (uint32_t)sizeof(*program))) {
		return TINYML_SLOT_POINTER;
	}
	if (program->format == 0u || program->format > PROGRAM_FORMAT_LOOPS ||
	    program->layouts > TINYML_PLAY_LAYOUTS) {
		return TINYML_SLOT_FORMAT_NEW;
	}
	sum = tinyml_word_sum(0, payload, image->start + position);
	sum = tinyml_word_sum(sum, image->start + position + 4, image->start + image->bytes);
	if (sum != program->sum) {
		return TINYML_SLOT_DAMAGED;
	}
	player->program = program;
	return 0;
}

/* The self-test, if there is one: what is expected of each output is inside. */
static int open_check_test(const struct open_image *image, const struct tinyml_program *program)
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
	    !open_inside(image, descriptor->test,
			 (uint32_t)(descriptor->inputs * sizeof(struct test_input) +
				    descriptor->outputs * sizeof(struct test_output)))) {
		return TINYML_SLOT_POINTER;
	}
	for (uint32_t i = 0; i < descriptor->outputs; i++) {
		const uint32_t size = tinyml_player_sizes[outputs[i].type];
		const uint32_t count = outputs[i].bytes / size;
		const uint32_t compared =
			count == 0u ? 0u : (count - 1u) / tinyml_program_test_step(program) + 1u;

		if (tests[i].expected % 8u != 0u ||
		    !open_inside(image, tests[i].expected, compared * size)) {
			return TINYML_SLOT_POINTER;
		}
	}
	return 0;
}

static int open_check(struct tinyml_player *player, const struct open_image *image)
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
	player->model.arena_bytes = descriptor->arena_bytes;
	if (descriptor->arena_bytes > player->arena_bytes) {
		return TINYML_SLOT_ARENA;
	}
	if (descriptor->state_bytes > player->state_bytes) {
		return TINYML_SLOT_STATE;
	}
	error = open_find_program(player, image);
	if (error != 0) {
		return error;
	}
	player->memory[TINYML_PLAYER_IMAGE] = (uint8_t *)(uintptr_t)image->start;
	error = open_take_tensors(player, image);
	error = error != 0 ? error : open_check_test(image, player->program);
	return error != 0 ? error : tinyml_program_check(player, image->bytes);
}

int tinyml_player_check(const struct tinyml_player *player, const void *start, uint32_t bytes)
{
	struct tinyml_player trial = *player;
	struct open_image image;
	int error = tinyml_pack_choose(&start, &bytes);

	error = error != 0 ? error : open_find(&image, start, bytes);
	trial.tensors = NULL; /* those of the player are in use */
	return error != 0 ? error : open_check(&trial, &image);
}

int tinyml_player_open(struct tinyml_player *player, const void *start, uint32_t bytes)
{
	struct tinyml_model *const model = &player->model;
	struct open_image image;
	int error;

	tinyml_player_close(player);
	error = tinyml_pack_choose(&start, &bytes);
	error = error != 0 ? error : open_find(&image, start, bytes);
	error = error != 0 ? error : open_check(player, &image);
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
