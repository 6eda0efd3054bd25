/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* One update after the other with images that have a run of 0xff or 0x00 at each boundary of the
 * flash. Power fails in every operation, in every way, and the update is resumed. */

#include <stdlib.h>
#include <string.h>

#include "format.h" /* of runtime/slot */
#include "slot_model.h"

static unsigned long images, failures;
static struct world kept; /* flash with the old model confirmed */

static struct file copy_of(const struct file *file)
{
	struct file copy = *file;

	for (int i = 0; i < 2; i++) {
		copy.content[i] = malloc(file->bytes);
		memcpy(copy.content[i], file->content[i], file->bytes);
	}
	return copy;
}

/* Code, weights and records may have any content; the checksum is computed again. */
static void put_run(const struct file *original, uint32_t from, uint32_t to, uint8_t value)
{
	for (int i = 0; i < 2; i++) {
		uint8_t *content = files[1].content[i];
		struct container_header header;
		struct descriptor descriptor;
		uint32_t end, crc;

		memcpy(content, original->content[i], original->bytes);
		memcpy(&header, content, sizeof(header));
		memcpy(&descriptor, content + sizeof(header), sizeof(descriptor));
		end = (uint32_t)sizeof(header) + header.payload_bytes;
		for (uint32_t at = from; at < to; at++) {
			if (at >= descriptor.test + 2u &&
			    (at < end || at >= end + sizeof(struct checksum))) {
				content[at] = value;
			}
		}
		crc = tinyml_slot_crc32(0, content, end);
		memcpy(content + end + offsetof(struct checksum, crc32), &crc, sizeof(crc));
	}
}

static void update(void)
{
	begin(0, 1, true);
	while (world.clients[0].update.done < files[1].bytes) {
		part(0);
	}
	finish(0);
	open_again();
	confirm();
}

static void restore(const struct world *from)
{
	memcpy(&world, from, sizeof(world));
	mirror_flash();
}

/* With power failing in each operation of the update; then again in each of the next one. */
static void fail_everywhere(bool again)
{
	static struct world failed;
	volatile bool finished = false;

	for (volatile long cut = 1; !finished; cut++) {
		for (volatile int way = 0; way < TEARS && !finished; way++) {
			volatile bool recovered = false;

			restore(&kept);
			operation = 0;
			cut_at = cut;
			tear = way;
			if (setjmp(power_failure) == 0) {
				update();
				finished = true;
				break;
			}
			failures++;
			memcpy(&failed, &world, sizeof(world));
			for (volatile long second = 1; again && !recovered; second++) {
				restore(&failed);
				operation = 0;
				cut_at = second;
				if (setjmp(power_failure) == 0) {
					start();
					if (file_in_use() != 1) {
						update();
					}
					recovered = true;
				} else {
					failures++;
					recover(1, true);
				}
			}
			restore(&failed);
			recover(1, true);
		}
	}
	cut_at = 0;
}

void sweep(bool again, uint32_t distance)
{
	const uint8_t values[] = {0xff, 0x00};
	const uint32_t unit = kind->write_bytes;
	const uint32_t lengths[] = {1, unit - 1u, unit, unit + 1u, 2u * unit, 256u + unit};
	struct file original = copy_of(&files[1]);

	recover(0, true);
	memcpy(&kept, &world, sizeof(world));
	for (uint32_t boundary = 0; boundary <= original.bytes; boundary += distance) {
		for (unsigned int i = 0; i < 4u * sizeof(lengths) / sizeof(lengths[0]); i++) {
			const uint32_t length = lengths[i / 4u];
			const uint32_t from = i / 2u % 2u == 0u ? boundary : boundary - length;
			const uint32_t to = from + length;

			if (from > boundary || from >= original.bytes) {
				continue;
			}
			put_run(&original, from, to < original.bytes ? to : original.bytes,
				values[i % 2u]);
			images++;
			fail_everywhere(again);
		}
	}
	printf("%lu images, %lu failures, %lu resumed\n", images, failures, resumed);
}
