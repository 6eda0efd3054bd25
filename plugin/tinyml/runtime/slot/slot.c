/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* One slot: every check before anything of it is used. */

#include <string.h>

#include <tinyml/slot.h>

#include "format.h"

#define MAX_RANK 8

/* An image whose container was found to be inside its slot. */
struct image {
	const uint8_t *start;
	uint32_t bytes; /* header and payload: what positions may point into */
	const struct container_header *header;
	const struct descriptor *descriptor;
	const struct checksum *checksum;
	const uint8_t *records;
	uint32_t records_room; /* from there to the end of the slot */
};

/* Whether there is no code in an image, but a program for the player. */
static bool slot_is_played(const struct image *image)
{
	return image->descriptor->interface == TINYML_PLAYER_INTERFACE;
}

/* The header and the records after the payload, all inside the slot. */
static int slot_find_container(struct image *image, const struct tinyml_slot_region *region)
{
	const struct container_header *header = region->memory;
	uint32_t fixed = (uint32_t)(sizeof(*header) + sizeof(struct descriptor));
	uint32_t behind = (uint32_t)(sizeof(struct checksum) + sizeof(struct record));

	if (region->address % TINYML_SLOT_ALIGNMENT != 0u || (uintptr_t)region->memory % 4u != 0u ||
	    region->bytes < fixed + behind) {
		return TINYML_SLOT_REGION;
	}
	if (header->magic != MCUBOOT_MAGIC) {
		return header->magic == ERASED ? TINYML_SLOT_EMPTY : TINYML_SLOT_MAGIC;
	}
	if (header->header_bytes != sizeof(*header) ||
	    header->protected_bytes != sizeof(struct checksum) ||
	    header->payload_bytes % 4u != 0u || header->payload_bytes < sizeof(struct descriptor) ||
	    header->payload_bytes > region->bytes - sizeof(*header) - behind) {
		return TINYML_SLOT_BOUNDS;
	}
	image->start = region->memory;
	image->header = header;
	image->bytes = (uint32_t)sizeof(*header) + header->payload_bytes;
	image->descriptor = (const void *)(image->start + sizeof(*header));
	image->checksum = (const void *)(image->start + image->bytes);
	image->records = image->start + image->bytes + sizeof(struct checksum);
	image->records_room = region->bytes - image->bytes - (uint32_t)sizeof(struct checksum);
	/* an image without code can be anywhere */
	return header->address == region->address || slot_is_played(image) ? 0
									   : TINYML_SLOT_ADDRESS;
}

static int slot_check_integrity(const struct image *image)
{
	const struct checksum *found = image->checksum;

	if (found->area.kind != PROTECTED_MAGIC || found->area.bytes != sizeof(*found) ||
	    found->record.kind != RECORD_CRC32 || found->record.bytes != sizeof(found->crc32) ||
	    found->crc32 != tinyml_slot_crc32(0, image->start, image->bytes)) {
		return TINYML_SLOT_DAMAGED;
	}
	return 0;
}

/* The 64 bytes of a digest or signature, or NULL. */
static const uint8_t *slot_find_record(const struct image *image, uint16_t kind)
{
	struct record record;
	uint32_t at = (uint32_t)sizeof(record);
	uint32_t end;

	memcpy(&record, image->records, sizeof(record));
	end = record.bytes;
	if (record.kind != RECORDS_MAGIC || end > image->records_room) {
		return NULL;
	}
	while (at + sizeof(record) <= end) {
		memcpy(&record, image->records + at, sizeof(record));
		at += (uint32_t)sizeof(record);
		if (record.bytes > end - at) {
			return NULL;
		}
		if (record.kind == kind && record.bytes == 64u) {
			return image->records + at;
		}
		at += record.bytes;
	}
	return NULL;
}

static int slot_check_trust(const struct image *image, const struct tinyml_slot_trust *trust)
{
	const uint8_t *digest, *signature;

	if (trust == NULL) {
		return 0;
	}
	digest = slot_find_record(image, RECORD_SHA512);
	signature = slot_find_record(image, RECORD_ED25519);
	if (digest == NULL || signature == NULL) {
		return TINYML_SLOT_UNSIGNED;
	}
	return trust->verify(trust, image->start, image->bytes + (uint32_t)sizeof(struct checksum),
			     digest, signature);
}

/* Whether this many bytes are inside the image, after its header. */
static bool slot_inside(const struct image *image, uint32_t position, uint32_t bytes)
{
	return position >= sizeof(struct container_header) && position <= image->bytes &&
	       bytes <= image->bytes - position;
}

static bool slot_is_text(const struct image *image, uint32_t position)
{
	return slot_inside(image, position, 1) &&
	       memchr(image->start + position, 0, image->bytes - position) != NULL;
}

static bool slot_is_code(const struct image *image, uint32_t position)
{
#ifdef __arm__
	if ((position & 1u) == 0u) {
		return false;
	}
#endif
	return slot_inside(image, position & ~1u, 2);
}

static bool slot_is_tensor(const struct image *image, const struct tensor_record *tensor)
{
	const struct descriptor *descriptor = image->descriptor;
	uint32_t room = tensor->in_state != 0u ? descriptor->state_bytes : descriptor->arena_bytes;

	return slot_is_text(image, tensor->name) && tensor->type <= TINYML_BOOL &&
	       tensor->rank <= MAX_RANK && tensor->shape % 4u == 0u &&
	       slot_inside(image, tensor->shape, 4u * tensor->rank) && tensor->offset <= room &&
	       tensor->bytes <= room - tensor->offset;
}

static int slot_check_descriptor(const struct image *image, const struct tinyml_slot *slot)
{
	const struct descriptor *descriptor = image->descriptor;
	uint32_t count = (uint32_t)descriptor->inputs + descriptor->outputs;

	if (descriptor->magic != SLOT_MAGIC || descriptor->format != TINYML_SLOT_FORMAT) {
		return TINYML_SLOT_FORMAT_NEW;
	}
	if (slot_is_played(image) && slot->player != NULL) {
		return slot->player->check(slot, image->start, image->bytes);
	}
	if (descriptor->interface != TINYML_SLOT_INTERFACE) {
		return TINYML_SLOT_ABI;
	}
	if ((descriptor->core & ~TINYML_SLOT_CORE) != 0u) {
		return TINYML_SLOT_CORE_TOO_SMALL;
	}
	if (descriptor->arena_bytes > slot->arena_bytes || descriptor->arena_alignment == 0u ||
	    (uintptr_t)slot->arena % descriptor->arena_alignment != 0u) {
		return TINYML_SLOT_ARENA;
	}
	if (descriptor->state_bytes > slot->state_bytes || descriptor->state_alignment == 0u ||
	    (uintptr_t)slot->state % descriptor->state_alignment != 0u) {
		return TINYML_SLOT_STATE;
	}
	if (!slot_is_code(image, descriptor->run) || !slot_is_code(image, descriptor->test) ||
	    (descriptor->reset != 0u && !slot_is_code(image, descriptor->reset)) ||
	    !slot_is_text(image, descriptor->name) || descriptor->tensors % 4u != 0u ||
	    !slot_inside(image, descriptor->tensors,
			 count * (uint32_t)sizeof(struct tensor_record))) {
		return TINYML_SLOT_POINTER;
	}
	if (count > TINYML_SLOT_TENSORS) {
		return TINYML_SLOT_TOO_MANY;
	}
	for (uint32_t i = 0; i < count; i++) {
		const void *record = image->start + descriptor->tensors;

		if (!slot_is_tensor(image, (const struct tensor_record *)record + i)) {
			return TINYML_SLOT_POINTER;
		}
	}
	return 0;
}

static int slot_check(struct image *image, const struct tinyml_slot *slot,
		      const struct tinyml_slot_region *region,
		      const struct tinyml_slot_trust *trust)
{
	int error;

	if (slot->sync != NULL) {
		slot->sync(region->memory, region->bytes);
	} else {
		tinyml_slot_sync(region->memory, region->bytes);
	}
	error = slot_find_container(image, region);
	error = error != 0 ? error : slot_check_integrity(image);
	error = error != 0 ? error : slot_check_trust(image, trust);
	return error != 0 ? error : slot_check_descriptor(image, slot);
}

int tinyml_slot_check(const struct tinyml_slot *slot, const struct tinyml_slot_region *region,
		      const struct tinyml_slot_trust *trust)
{
	struct image image;

	return slot_check(&image, slot, region, trust);
}

static tinyml_slot_entry slot_entry(const struct image *image, uint32_t position)
{
	return position == 0u ? NULL : (tinyml_slot_entry)(uintptr_t)(image->start + position);
}

static void slot_take_tensor(struct tinyml_slot *slot, struct tinyml_tensor *tensor,
			     const struct image *image, const struct tensor_record *record)
{
	tensor->name = (const char *)(image->start + record->name);
	tensor->data = (record->in_state != 0u ? slot->state : slot->arena) + record->offset;
	tensor->shape = (const void *)(image->start + record->shape);
	tensor->bytes = record->bytes;
	tensor->scale = record->scale;
	tensor->zero_point = record->zero_point;
	tensor->type = record->type;
	tensor->rank = record->rank;
}

static void slot_take(struct tinyml_slot *slot, const struct image *image)
{
	const struct descriptor *descriptor = image->descriptor;
	const void *records = image->start + descriptor->tensors;
	struct tinyml_model *model = &slot->model;

	for (uint32_t i = 0; i < (uint32_t)descriptor->inputs + descriptor->outputs; i++) {
		slot_take_tensor(slot, &slot->tensors[i], image,
				 (const struct tensor_record *)records + i);
	}
	model->name = (const char *)(image->start + descriptor->name);
	model->inputs = slot->tensors;
	model->outputs = slot->tensors + descriptor->inputs;
	model->input_count = descriptor->inputs;
	model->output_count = descriptor->outputs;
	model->arena_bytes = descriptor->arena_bytes;
	model->run = slot->run_model;
	model->reset = descriptor->reset != 0u ? slot->reset_model : NULL;
	memcpy(model->sha256, descriptor->sha256, sizeof(model->sha256));
	memcpy(slot->version, image->header->version, sizeof(slot->version));
	slot->run = slot_entry(image, descriptor->run);
	slot->reset = slot_entry(image, descriptor->reset);
	slot->test = slot_entry(image, descriptor->test);
}

int tinyml_slot_open(struct tinyml_slot *slot, const struct tinyml_slot_region *region,
		     const struct tinyml_slot_trust *trust)
{
	struct image image;
	int error;

	tinyml_slot_close(slot);
	error = slot_check(&image, slot, region, trust);
	if (error == 0 && slot_is_played(&image)) {
		error = slot->player->open(slot, image.start, image.bytes);
		slot->played = error == 0;
		memcpy(slot->version, image.header->version, sizeof(slot->version));
	} else if (error == 0) {
		slot_take(slot, &image);
		tinyml_slot_reset(slot);
	}
	return error;
}

void tinyml_slot_close(struct tinyml_slot *slot)
{
	slot->model.name = "";
	slot->model.input_count = 0;
	slot->model.output_count = 0;
	slot->model.reset = NULL;
	slot->run = NULL;
	slot->reset = NULL;
	slot->test = NULL;
	slot->played = false;
}

static int slot_call(struct tinyml_slot *slot, tinyml_slot_entry function)
{
	if (function == NULL) {
		return TINYML_SLOT_NONE;
	}
	if (slot->call != NULL) {
		return slot->call(slot, function);
	}
#ifdef TINYML_SLOT_PLAYS_DEVICE
	return TINYML_SLOT_NO_CODE;
#else
	return function(slot->arena, slot->state);
#endif
}

int tinyml_slot_run(struct tinyml_slot *slot)
{
	if (slot->played) {
		return slot->player->run(slot);
	}
	return slot_call(slot, slot->run);
}

void tinyml_slot_reset(struct tinyml_slot *slot)
{
	if (slot->played) {
		slot->player->reset(slot);
		return;
	}
	(void)slot_call(slot, slot->reset);
}

int tinyml_slot_self_test(struct tinyml_slot *slot)
{
	if (slot->played) {
		return slot->player->test(slot);
	}
	if (slot->test == NULL) {
		return TINYML_SLOT_NONE;
	}
#ifdef TINYML_SLOT_PLAYS_DEVICE
	if (slot->call == NULL) {
		return TINYML_SLOT_NO_CODE;
	}
#endif
	return slot_call(slot, slot->test) == 0 ? 0 : TINYML_SLOT_SELF_TEST;
}
