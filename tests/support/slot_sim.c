/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A device on the host: two slots in simulated NOR flash, on which power fails when asked to.
 *
 *	slot_sim check                    images from standard input, one verdict for each
 *	slot_sim cuts UNIT OLD NEW BAD    an update, with power failing at every write and erase
 *	slot_sim stages UNIT OLD NEW BAD  the same without failures, step by step
 *	slot_sim marks UNIT OLD NEW BAD   marks of which power failure left any part
 *	slot_sim faults UNIT OLD NEW BAD  every write and erase fails once; flash that is described
 *                                   wrongly
 *	slot_sim order UNIT OLD NEW       what an update from one to the other returns
 *	slot_sim serve UNIT BYTES         a device with slots of so many bytes, behind a line
 *	slot_sim fuzz UNIT OLD NEW BAD NEWEST HANGS SEED COUNT   so many requests of any kind
 *
 * UNIT is the number of bytes that the flash writes at once; UNIT+BUFFER: images are written by a
 * stream with a buffer, and power can fail anywhere in it.
 *
 * Nothing from an image is executed. Instead of code an image has two bytes at each entry: a
 * letter, and what the function "computes". */

#include "slot_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tinyml/host.h>
#include <tinyml/player.h>
#include <tinyml/slot_receiver.h>

#include "torn.h"

#define SECTOR  256u
#define ADDRESS 0x60000u

int executed; /* functions of images that were "called" */
jmp_buf power_failure;
bool hangs; /* the self-test of a model that never returns */

static int fake_call(struct tinyml_slot *slot, tinyml_slot_entry entry)
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)entry;

	executed++;
	if (code[0] == 'R') {
		slot->arena[0] = code[1];
		return 0;
	}
	if (code[0] == 'H' && hangs) {
		longjmp(power_failure, 1);
	}
	return code[1];
}

/* Images without code are played. */
static int counted_run(struct tinyml_slot *slot)
{
	executed++;
	return tinyml_slot_player_run(slot);
}

static int counted_test(struct tinyml_slot *slot)
{
	executed++;
	return tinyml_slot_player_test(slot);
}

static struct tinyml_player played;
static const struct tinyml_slot_player player = {
	.check = tinyml_slot_player_check,
	.open = tinyml_slot_player_open,
	.run = counted_run,
	.reset = tinyml_slot_player_reset,
	.test = counted_test,
	.player = &played,
	.kernels = tinyml_play_index,
	.kernel_count = &tinyml_play_index_count,
};

TINYML_SLOT_DEFINE_WITH(model, 256, 64, &player);

/* --- images from standard input ------------------------------------------------------------- */

#ifdef VERIFY /* an adapter of <tinyml/slot_trust.h> */
#include <tinyml/slot_trust.h>

static uint8_t key[32];
static struct tinyml_slot_trust trust = {.verify = VERIFY, .public_key = key};
#endif

static bool read_exactly(void *data, size_t bytes)
{
	return fread(data, 1, bytes, stdin) == bytes;
}

static int check(bool signed_only)
{
	const struct tinyml_slot_trust *trusted = NULL;
	uint32_t header[4]; /* bytes, address, arena, state */

#ifdef VERIFY
	if (signed_only) {
		trusted = &trust;
		if (!read_exactly(key, sizeof(key))) {
			return 1;
		}
	}
#else
	(void)signed_only;
#endif
	while (read_exactly(header, sizeof(header))) {
		/* Exactly as large as the slot, so that the sanitizer sees a byte too many. */
		uint8_t *content = aligned_alloc(TINYML_SLOT_ALIGNMENT, header[0]);
		struct tinyml_slot_region region = {content, header[1], header[0], NULL};
		int error;

		if (content == NULL || !read_exactly(content, header[0])) {
			return 1;
		}
		executed = 0;
		model.arena_bytes = header[2];
		model.state_bytes = header[3];
		error = tinyml_slot_open(&model, &region, trusted);
		printf("%d %d", error, executed);
		if (error == 0) {
			int status = model.model.run();

			printf(" %u %u %d %u", (unsigned int)strlen(model.model.name),
			       model.arena[0], status, (unsigned int)model.model.outputs[0].bytes);
		}
		printf("\n");
		free(content);
	}
	return 0;
}

/* --- flash ----------------------------------------------------------------------------------- */

uint8_t *memory;
uint32_t slot_bytes;
struct tinyml_flash flash[2];
struct tinyml_slots slots;
long operation, cut_at, fails_at;
int tear;
static uint32_t noise = 1;

void make_noise(uint32_t seed)
{
	noise = seed * 2654435761u + 1u;
}

uint8_t random_byte(void)
{
	noise ^= noise << 13;
	noise ^= noise >> 17;
	noise ^= noise << 5;
	return (uint8_t)(noise >> 24);
}

/* Draws a byte only where it is used. */
static uint8_t torn_byte(uint8_t before, uint8_t after, uint32_t position, uint32_t bytes)
{
	return torn(tear, before, after, position, bytes, tear > 3 ? random_byte() : 0);
}

static int change(uint32_t start, const uint8_t *after, uint32_t bytes)
{
	bool cut = ++operation == cut_at;

	if (operation == fails_at) {
		return -5; /* the controller reports an error, and nothing has changed */
	}

	for (uint32_t i = 0; i < bytes; i++) {
		uint8_t value = after == NULL ? 0xff : after[i];

		memory[start + i] = cut ? torn_byte(memory[start + i], value, i, bytes) : value;
	}
	if (cut) {
		longjmp(power_failure, 1);
	}
	return 0;
}

void demand(bool fine, const char *what)
{
	if (!fine) {
		fprintf(stderr, "cut %ld, tear %d: %s\n", cut_at, tear, what);
		abort();
	}
}

static int erase_flash(void *context, uint32_t offset, uint32_t bytes)
{
	demand(offset % SECTOR == 0 && bytes == SECTOR && offset < slot_bytes, "erase outside");
	return change((uint32_t)(uintptr_t)context + offset, NULL, bytes);
}

static int write_flash(void *context, uint32_t offset, const void *data, uint32_t bytes)
{
	uint32_t start = (uint32_t)(uintptr_t)context + offset;

	demand(offset % flash[0].write_bytes == 0 && bytes % flash[0].write_bytes == 0,
	       "unaligned write");
	demand(offset + bytes <= slot_bytes, "write outside");
	for (uint32_t i = 0; i < bytes; i++) {
		demand(memory[start + i] == 0xff, "write without erase");
	}
	return change(start, data, bytes);
}

/* --- a stream: the data of a whole buffer are one operation ----------------------------------- */

static struct tinyml_flash_stream stream;
static uint8_t waiting[SECTOR];
static uint32_t waiting_at, waiting_bytes;

static int begin_stream(void *context, uint32_t offset)
{
	(void)context;
	demand(offset % SECTOR == 0, "a stream starts within a sector");
	memset(waiting, 0xaa, sizeof(waiting)); /* what power failure left in RAM is of no use */
	waiting_at = offset;
	waiting_bytes = 0;
	return 0;
}

static int append_to_stream(void *context, const void *data, uint32_t bytes, bool flush)
{
	uint32_t unit = flash[0].write_bytes;
	uint32_t at = waiting_at, whole;

	demand(waiting_bytes + bytes <= stream.bytes, "more than the buffer holds");
	memcpy(waiting + waiting_bytes, data, bytes);
	waiting_bytes += bytes;
	if (!flush) {
		return 0;
	}
	whole = (waiting_bytes + unit - 1u) / unit * unit;
	memset(waiting + waiting_bytes, 0xff, whole - waiting_bytes);
	waiting_at += whole;
	waiting_bytes = 0;
	return write_flash(context, at, waiting, whole);
}

/* A device whose slots are as large as they need to be for an image, so that marks share its last
 * sector. */
static void make_device(uint32_t image_bytes, const char *written)
{
	char *more;
	uint32_t unit = (uint32_t)strtoul(written, &more, 10);

	stream = (struct tinyml_flash_stream){begin_stream, append_to_stream,
					      *more == '+' ? (uint32_t)atoi(more + 1) : 0u};
	slot_bytes = (image_bytes + 8u * 32u + SECTOR - 1u) / SECTOR * SECTOR;
	memory = aligned_alloc(SECTOR, 2u * slot_bytes);
	for (uint32_t i = 0; i < 2; i++) {
		flash[i] = (struct tinyml_flash){
			.erase = erase_flash,
			.write = write_flash,
			.context = (void *)(uintptr_t)(i * slot_bytes),
			.erase_bytes = SECTOR,
			.write_bytes = unit,
			.stream = stream.bytes != 0u ? &stream : NULL,
		};
	}
}

void power_on(void)
{
	slots = (struct tinyml_slots){0};
	for (uint32_t i = 0; i < 2; i++) {
		slots.region[i] = (struct tinyml_slot_region){
			memory + i * slot_bytes, ADDRESS + i * slot_bytes, slot_bytes, &flash[i]};
	}
	model.arena_bytes = 256;
	model.state_bytes = 64;
}

/* --- updates --------------------------------------------------------------------------------- */

static struct file load(const char *path)
{
	struct file file = {{NULL, NULL}, 0, 0};
	FILE *opened = fopen(path, "rb");
	uint32_t header[2];

	demand(opened != NULL && fread(header, sizeof(header), 1, opened) == 1, path);
	file.bytes = header[0];
	file.value = (uint8_t)header[1];
	for (int i = 0; i < 2; i++) {
		file.content[i] = malloc(file.bytes);
		demand(fread(file.content[i], file.bytes, 1, opened) == 1, path);
	}
	fclose(opened);
	return file;
}

int resumed; /* updates that went on where another one had stopped */

#ifndef SLOT_SIM_SMP /* smp_sim.c does the same with requests of MCUmgr */
/* What a host does: ask what is there, go on with it if that is the start of this image. */
int send(const struct file *file, bool resume)
{
	struct tinyml_update update = {0};
	int index = tinyml_slots_free(&slots);
	const uint8_t *content;
	int error;

	demand(index >= 0, "no slot is free");
	content = file->content[index];
	error = tinyml_update_begin(&update, &slots, file->bytes, resume);
	if (error == 0 && update.done > 0u) {
		if (tinyml_update_crc32(&update) == tinyml_slot_crc32(0, content, update.done)) {
			resumed++;
		} else {
			error = tinyml_update_begin(&update, &slots, file->bytes, false);
		}
	}
	while (error == 0 && update.done < file->bytes) {
		uint32_t left = file->bytes - update.done;

		error = tinyml_update_write(&update, content + update.done,
					    left < 100u ? left : 100u);
	}
	return error != 0 ? error : tinyml_update_finish(&update);
}
#endif

uint8_t answer(void)
{
	demand(model.model.run() == 0, "the model does not run");
	return model.arena[0];
}

/* From whatever state to a confirmed model. */
void bring(const struct file *file, bool resume)
{
	if (slots.active >= 0 && slots.on_trial) {
		demand(tinyml_slots_confirm(&slots) == 0, "cannot confirm");
	}
	if (slots.active >= 0 && answer() == file->value) {
		return;
	}
	demand(send(file, resume) == 0, "the update fails");
	demand(tinyml_slots_open(&slots, &model) == 0, "nothing to open after an update");
	demand(answer() == file->value && slots.on_trial, "not the new model");
	demand(tinyml_slots_confirm(&slots) == 0, "cannot confirm");
}

static size_t receive(const uint8_t *request, size_t bytes, uint8_t *reply, size_t room)
{
	static struct tinyml_receiver receiver = {.slots = &slots, .slot = &model};

	return tinyml_receiver_request(&receiver, request, bytes, reply, room);
}

static const struct tinyml_model *model_at(size_t index)
{
	return index == 0u ? &model.model : NULL;
}

static void send_bytes(const uint8_t *data, size_t bytes)
{
	fwrite(data, 1, bytes, stdout);
}

/* Every 20th part arrives damaged: the sender must cope. */
static int serve(void)
{
	static const struct tinyml_host_port port = {
		.model = model_at, .send = send_bytes, .slot = receive};
	static struct tinyml_host host = {.port = &port};
	uint8_t data[256];
	ssize_t count;
	long parts = 0;

	memset(memory, 0xff, 2u * slot_bytes);
	power_on();
	tinyml_slots_open(&slots, &model);
	while ((count = read(0, data, sizeof(data))) > 0) {
		if (count == 6 && memcmp(data, "power\n", 6) == 0) {
			power_on();
			tinyml_slots_open(&slots, &model);
			continue;
		}
		if (++parts % 20 == 0) {
			data[count / 2] ^= 1;
		}
		tinyml_host_receive(&host, data, (size_t)count);
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	model.call = fake_call;
	if (argc == 4 && strcmp(argv[1], "serve") == 0) {
		make_device((uint32_t)atoi(argv[3]) - 8u * 32u, argv[2]);
		return serve();
	}
	if (argc == 2 && strncmp(argv[1], "check", 5) == 0) {
		return check(strcmp(argv[1], "check-signed") == 0);
	}
	if (argc == 5 && strcmp(argv[1], "order") == 0) {
		struct file old = load(argv[3]), new = load(argv[4]);

		make_device(old.bytes, argv[2]);
		memset(memory, 0xff, 2u * slot_bytes);
		power_on();
		(void)tinyml_slots_open(&slots, &model);
		bring(&old, false);
		printf("%d\n", send(&new, false));
		return 0;
	}
	if (argc < 6) {
		return 2;
	}

	struct file files[5];

	for (int i = 0; i < 5; i++) { /* OLD NEW BAD NEWEST HANGS */
		files[i] = load(argv[3 + i]);
	}
	make_device(files[0].bytes, argv[2]);
	if (strcmp(argv[1], "cuts") == 0) {
		cuts(&files[0], &files[1], &files[2]);
	} else if (strcmp(argv[1], "faults") == 0) {
		faults(&files[0], &files[1]);
	} else if (strcmp(argv[1], "fuzz") == 0 && argc == 10) {
		make_noise((uint32_t)strtoul(argv[8], NULL, 0));
		fuzz(files, 2, strtoul(argv[9], NULL, 0));
	} else if (strcmp(argv[1], "marks") == 0) {
		marks(&files[0], &files[1]);
	} else {
		stages(&files[0], &files[1], &files[2]);
	}
	return 0;
}
