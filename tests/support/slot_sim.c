/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A device on the host: two slots in simulated NOR flash, on which power fails when asked to.
 *
 *	slot_sim check                    images from standard input, one verdict for each
 *	slot_sim cuts UNIT OLD NEW BAD    an update, with power failing at every write and erase
 *	slot_sim stages UNIT OLD NEW BAD  the same without failures, step by step
 *	slot_sim marks UNIT OLD NEW BAD   marks of which power failure left any part
 *	slot_sim order UNIT OLD NEW       what an update from one to the other returns
 *	slot_sim serve UNIT BYTES         a device with slots of so many bytes, behind a line
 *
 * Nothing from an image is executed. Instead of code an image has two bytes at each entry: a
 * letter, and what the function "computes". */

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tinyml/slot_receiver.h>
#include <tinyml/slots.h>

#include "marks.h" /* of runtime/slot */

#define SECTOR  256u
#define ADDRESS 0x60000u
#define TEARS   5

static int executed; /* functions of images that were "called" */
static jmp_buf power_failure;
static bool hangs; /* the self-test of a model that never returns */

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

TINYML_SLOT_DEFINE(model, 256, 64);

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
		uint8_t *memory = aligned_alloc(TINYML_SLOT_ALIGNMENT, header[0]);
		struct tinyml_slot_region region = {memory, header[1], header[0], NULL};
		int error;

		if (memory == NULL || !read_exactly(memory, header[0])) {
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
		free(memory);
	}
	return 0;
}

/* --- flash ----------------------------------------------------------------------------------- */

static uint8_t *memory;
static uint32_t slot_bytes;
static struct tinyml_flash flash[2];
static struct tinyml_slots slots;
static long operation, cut_at;
static int tear;
static uint32_t noise = 1;

static uint8_t random_byte(void)
{
	noise ^= noise << 13;
	noise ^= noise >> 17;
	noise ^= noise << 5;
	return (uint8_t)(noise >> 24);
}

/* What an operation that power failure ends has done to a byte: nothing, half, all, or any of its
 * bits. */
static uint8_t torn(uint8_t before, uint8_t after, uint32_t position, uint32_t bytes)
{
	switch (tear) {
	case 0:
		return before;
	case 1:
		return position < bytes / 2 ? after : before;
	case 2:
		return position < bytes / 2 ? before : after;
	case 3:
		return after;
	default:
		return (uint8_t)(before ^ ((before ^ after) & random_byte()));
	}
}

static void change(uint32_t start, const uint8_t *after, uint32_t bytes)
{
	bool cut = ++operation == cut_at;

	for (uint32_t i = 0; i < bytes; i++) {
		uint8_t value = after == NULL ? 0xff : after[i];

		memory[start + i] = cut ? torn(memory[start + i], value, i, bytes) : value;
	}
	if (cut) {
		longjmp(power_failure, 1);
	}
}

static void demand(bool fine, const char *what)
{
	if (!fine) {
		fprintf(stderr, "cut %ld, tear %d: %s\n", cut_at, tear, what);
		abort();
	}
}

static int erase_flash(void *context, uint32_t offset, uint32_t bytes)
{
	demand(offset % SECTOR == 0 && bytes == SECTOR && offset < slot_bytes, "erase outside");
	change((uint32_t)(uintptr_t)context + offset, NULL, bytes);
	return 0;
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
	change(start, data, bytes);
	return 0;
}

/* A device whose slots are as large as they need to be for an image, so that marks share its last
 * sector. */
static void make_device(uint32_t image_bytes, uint32_t unit)
{
	slot_bytes = (image_bytes + 8u * 32u + SECTOR - 1u) / SECTOR * SECTOR;
	memory = aligned_alloc(SECTOR, 2u * slot_bytes);
	for (uint32_t i = 0; i < 2; i++) {
		flash[i] = (struct tinyml_flash){erase_flash, write_flash,
						 (void *)(uintptr_t)(i * slot_bytes), SECTOR, unit};
	}
}

static void power_on(void)
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

struct file {
	uint8_t *content[2]; /* for each slot */
	uint32_t bytes;
	uint8_t value; /* what the model computes */
};

static struct file load(const char *path)
{
	struct file file = {{NULL, NULL}, 0, 0};
	FILE *stream = fopen(path, "rb");
	uint32_t header[2];

	demand(stream != NULL && fread(header, sizeof(header), 1, stream) == 1, path);
	file.bytes = header[0];
	file.value = (uint8_t)header[1];
	for (int i = 0; i < 2; i++) {
		file.content[i] = malloc(file.bytes);
		demand(fread(file.content[i], file.bytes, 1, stream) == 1, path);
	}
	fclose(stream);
	return file;
}

static int resumed; /* updates that went on where another one had stopped */

/* What a host does: ask what is there, go on with it if that is the start of this image. */
static int send(const struct file *file, bool resume)
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

static uint8_t answer(void)
{
	demand(model.model.run() == 0, "the model does not run");
	return model.arena[0];
}

/* From whatever state to a confirmed model. */
static void bring(const struct file *file, bool resume)
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

static uint8_t *after_old; /* flash with the old model confirmed */

static void cuts(const struct file *old, const struct file *new, const struct file *bad)
{
	long count[3] = {0, 0, 0};

	memset(memory, 0xff, 2u * slot_bytes);
	after_old = malloc(2u * slot_bytes);
	cut_at = 0;
	power_on();
	demand(tinyml_slots_open(&slots, &model) == TINYML_SLOT_NONE, "a model in erased flash");
	bring(old, false);
	memcpy(after_old, memory, 2u * slot_bytes);
	for (tear = 0; tear < TEARS; tear++) {
		/* 0: an update; 1: an update over an older model; 2: one that fails its self-test
		 */
		for (int kind = 0; kind < 3; kind++) {
			volatile bool finished = false;

			for (cut_at = 1; !finished; cut_at++) {
				volatile long second;

				memcpy(memory, after_old, 2u * slot_bytes);
				power_on();
				demand(tinyml_slots_open(&slots, &model) == 0,
				       "the old model is gone");
				if (kind ==
				    1) { /* both slots full: old and new; then old's successor */
					long wanted = cut_at;

					cut_at = 0;
					bring(new, false);
					cut_at = wanted;
				}
				operation = 0;
				if (setjmp(power_failure) == 0) {
					if (kind == 2) {
						demand(send(bad, true) == 0, "the update fails");
						demand(tinyml_slots_open(&slots, &model) == 0 &&
							       answer() == old->value &&
							       !slots.on_trial,
						       "no way back from a model that fails");
					} else {
						bring(kind == 1 ? bad + 1 : new, true);
					}
					finished = true;
					count[kind] += operation;
				}
				/* The next start fails, too, at one of its first operations. */
				second = cut_at;
				cut_at = tear == 4 ? operation + 1 + random_byte() % 4 : 0;
				power_on();
				if (setjmp(power_failure) == 0) {
					demand(tinyml_slots_open(&slots, &model) == 0,
					       "no model after a power failure");
					demand(answer() != bad->value, "a bad model runs");
					demand(kind != 1 || answer() != old->value,
					       "an old model is back");
					if (slots.on_trial) {
						demand(tinyml_slots_confirm(&slots) == 0,
						       "cannot confirm");
					}
				}
				cut_at = 0;
				power_on();
				demand(tinyml_slots_open(&slots, &model) == 0,
				       "no model after two failures");
				bring(kind == 1 ? bad + 1 : new, true);
				power_on();
				demand(tinyml_slots_open(&slots, &model) == 0 && !slots.on_trial &&
					       answer() == (kind == 1 ? bad[1].value : new->value),
				       "not the newest model in the end");
				cut_at = second;
			}
		}
	}
	printf("operations %ld %ld %ld resumed %d\n", count[0], count[1], count[2], resumed);
}

static void stages(const struct file *old, const struct file *new, const struct file *bad)
{
	struct tinyml_update update = {0};

	memset(memory, 0xff, 2u * slot_bytes);
	power_on();
	demand(tinyml_slots_free(&slots) == TINYML_SLOT_ORDER, "free before open");
	demand(tinyml_slots_open(&slots, &model) == TINYML_SLOT_NONE, "a model in erased flash");
	demand(tinyml_slots_confirm(&slots) == TINYML_SLOT_NONE, "nothing to confirm");
	demand(model.model.run() == TINYML_SLOT_NONE, "an empty slot runs");
	bring(old, false);
	demand(send(old, true) == TINYML_SLOT_VERSION, "the same version again");
	bring(new, false);
	demand(send(old, false) == TINYML_SLOT_VERSION, "an older version");
	power_on();
	demand(tinyml_slots_open(&slots, &model) == 0 && answer() == new->value,
	       "the new one is not kept");
	/* A model that fails its self-test is not tried twice. */
	demand(send(bad, false) == 0, "the update fails");
	executed = 0;
	demand(tinyml_slots_open(&slots, &model) == 0 && answer() == new->value, "no way back");
	demand(executed > 1, "no self-test");
	executed = 0;
	power_on();
	demand(tinyml_slots_open(&slots, &model) == 0 && answer() == new->value, "no way back");
	demand(executed == 1, "a rejected model is tried again");
	/* One that never returns is tried three times. */
	hangs = true;
	demand(send(bad + 2, false) == 0, "the update fails");
	volatile int starts = 0;
	for (volatile int i = 0; i < 10; i++) {
		power_on();
		if (setjmp(power_failure) == 0) {
			demand(tinyml_slots_open(&slots, &model) == 0 && answer() == new->value,
			       "no way back");
		} else {
			starts++;
		}
	}
	demand(starts == TINYML_SLOT_TRIALS, "tried more or less often than three times");
	hangs = false;
	/* A trial that nobody confirms ends as well. */
	demand(send(bad + 1, false) == 0, "the update fails");
	for (int i = 0; i < TINYML_SLOT_TRIALS; i++) {
		power_on();
		demand(tinyml_slots_open(&slots, &model) == 0 && answer() == bad[1].value,
		       "no trial");
		demand(tinyml_slots_free(&slots) == TINYML_SLOT_BUSY, "not busy on trial");
	}
	power_on();
	demand(tinyml_slots_open(&slots, &model) == 0 && answer() == new->value,
	       "never confirmed, yet kept");
	/* The application does not like it. */
	demand(send(bad + 1, false) == 0 && tinyml_slots_open(&slots, &model) == 0, "no trial");
	demand(answer() == bad[1].value && tinyml_slots_reject(&slots) == 0, "cannot reject");
	demand(tinyml_slots_open(&slots, &model) == 0 && answer() == new->value,
	       "rejected, yet used");
	/* Out of order, too much, too little. */
	demand(tinyml_update_write(&update, "x", 1) == TINYML_SLOT_ORDER, "write before begin");
	demand(tinyml_update_begin(&update, &slots, slot_bytes, false) == TINYML_SLOT_BOUNDS,
	       "too long");
	demand(tinyml_update_begin(&update, &slots, 10, false) == 0, "begin");
	demand(tinyml_update_write(&update, "12345678901", 11) == TINYML_SLOT_BOUNDS,
	       "more than announced");
	demand(tinyml_update_finish(&update) == TINYML_SLOT_ORDER, "finished before the end");
	demand(tinyml_update_write(&update, "1234567890", 10) == 0, "write");
	demand(tinyml_update_finish(&update) == TINYML_SLOT_REGION, "ten bytes are no image");
	printf("fine\n");
}

/* --- marks ----------------------------------------------------------------------------------- */

#define MARK_BYTES 16u

static uint8_t *mark_at(int slot, unsigned int mark)
{
	uint32_t stride = marks_bytes(&slots.region[slot]) / MARK_COUNT;

	return memory + (uint32_t)slot * slot_bytes + slot_bytes - (MARK_COUNT - mark) * stride;
}

#define WAYS (2u * MARK_BYTES + 8u * MARK_BYTES)

/* The flash as it was, but for a mark that power failure left with only its first bytes, only its
 * last bytes, or one bit wrong. Way 0 and way MARK_BYTES leave nothing of it. */
static void leave_part(const uint8_t *before, int slot, unsigned int mark, unsigned int way)
{
	unsigned int part = way % MARK_BYTES;
	uint8_t *found = mark_at(slot, mark);

	memcpy(memory, before, 2u * slot_bytes);
	if (way < MARK_BYTES) {
		memset(found + part, 0xff, MARK_BYTES - part);
	} else if (way < 2u * MARK_BYTES) {
		memset(found, 0xff, MARK_BYTES - part);
	} else {
		unsigned int bit = way - 2u * MARK_BYTES;

		found[bit / 8u] ^= (uint8_t)(1u << bit % 8u);
	}
}

/* The model that a start finds, and whether it is on trial. */
static uint8_t started(bool *on_trial)
{
	power_on();
	demand(tinyml_slots_open(&slots, &model) == 0, "no model");
	*on_trial = slots.on_trial;
	return answer();
}

/* A mark counts only when all of its bytes are right; every other content is "not blank". */
static void marks(const struct file *old, const struct file *new)
{
	uint8_t *received = malloc(2u * slot_bytes);
	uint8_t *tried = malloc(2u * slot_bytes);
	uint8_t *rejected = malloc(2u * slot_bytes);
	uint8_t *confirmed = malloc(2u * slot_bytes);
	bool on_trial;
	int slot;

	memset(memory, 0xff, 2u * slot_bytes);
	power_on();
	(void)tinyml_slots_open(&slots, &model);
	bring(old, false);
	slot = tinyml_slots_free(&slots);
	demand(send(new, false) == 0, "the update fails");
	memcpy(received, memory, 2u * slot_bytes);
	demand(tinyml_slots_open(&slots, &model) == 0 && slots.on_trial, "no trial");
	memcpy(tried, memory, 2u * slot_bytes);
	demand(tinyml_slots_confirm(&slots) == 0, "cannot confirm");
	memcpy(confirmed, memory, 2u * slot_bytes);
	memcpy(memory, tried, 2u * slot_bytes);
	demand(started(&on_trial) == new->value && tinyml_slots_reject(&slots) == 0,
	       "cannot reject");
	memcpy(rejected, memory, 2u * slot_bytes);
	for (unsigned int way = 0; way < WAYS; way++) {
		leave_part(received, slot, MARK_COMPLETE, way);
		executed = 0;
		demand(started(&on_trial) == old->value && !on_trial && executed == 1,
		       "half a mark of completeness counts");
	}
	for (unsigned int way = 0; way < WAYS; way++) {
		leave_part(confirmed, slot, MARK_CONFIRMED, way);
		demand(started(&on_trial) == new->value && on_trial,
		       "half a mark of confirmation counts");
		demand(tinyml_slots_confirm(&slots) == 0, "cannot confirm beside half a mark");
		demand(started(&on_trial) == new->value && !on_trial, "confirmed, yet on trial");
	}
	for (unsigned int way = 1; way < WAYS; way++) {
		if (way == MARK_BYTES) {
			continue;
		}
		/* Half a trial is one, or a model that crashes the device would be tried for ever.
		 */
		leave_part(tried, slot, MARK_TRIED, way);
		for (int i = 1; i < TINYML_SLOT_TRIALS; i++) {
			demand(started(&on_trial) == new->value && on_trial, "too few trials");
		}
		demand(started(&on_trial) == old->value && !on_trial, "half a trial is none");
		/* Half a rejection is one: the model has failed already. */
		leave_part(rejected, slot, MARK_REJECTED, way);
		demand(started(&on_trial) == old->value && !on_trial, "half a rejection is none");
	}
	printf("fine\n");
}

/* Every 20th line of data arrives damaged: the sender must cope. */
static int serve(void)
{
	static struct tinyml_receiver receiver = {.slots = &slots, .slot = &model};
	char line[2 * TINYML_RECEIVER_DATA + 41];
	char answer[TINYML_RECEIVER_ANSWER];
	long lines = 0;

	memset(memory, 0xff, 2u * slot_bytes);
	power_on();
	tinyml_slots_open(&slots, &model);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\r\n")] = '\0';
		if (strcmp(line, "power") == 0) {
			power_on();
			tinyml_slots_open(&slots, &model);
			continue;
		}
		if (++lines % 20 == 0 && strncmp(line, "data", 4) == 0) {
			line[20] ^= 1;
		}
		tinyml_receiver_line(&receiver, line, answer);
		printf("uart:~$ %s\r\n%s\r\n", line, answer);
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	model.call = fake_call;
	if (argc == 4 && strcmp(argv[1], "serve") == 0) {
		make_device((uint32_t)atoi(argv[3]) - 8u * 32u, (uint32_t)atoi(argv[2]));
		return serve();
	}
	if (argc == 2 && strncmp(argv[1], "check", 5) == 0) {
		return check(strcmp(argv[1], "check-signed") == 0);
	}
	if (argc == 5 && strcmp(argv[1], "order") == 0) {
		struct file old = load(argv[3]), new = load(argv[4]);

		make_device(old.bytes, (uint32_t)atoi(argv[2]));
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
	make_device(files[0].bytes, (uint32_t)atoi(argv[2]));
	if (strcmp(argv[1], "cuts") == 0) {
		cuts(&files[0], &files[1], &files[2]);
	} else if (strcmp(argv[1], "marks") == 0) {
		marks(&files[0], &files[1]);
	} else {
		stages(&files[0], &files[1], &files[2]);
	}
	return 0;
}
