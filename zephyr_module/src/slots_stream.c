/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The images of updates go to flash through Zephyr's stream flash. The slot was erased before: what
 * is in flash, and no record elsewhere, shows how far an update has come. */

#include "slots_stream.h"

#include <zephyr/drivers/flash.h>
#include <zephyr/storage/flash_map.h>
#include <zephyr/storage/stream_flash.h>
#include <zephyr/sys/util.h>

#define BUFFER_BYTES CONFIG_TINYML_SLOTS_STREAM_BUFFER

BUILD_ASSERT(IS_POWER_OF_TWO(BUFFER_BYTES) && BUFFER_BYTES >= TINYML_FLASH_WRITE_MAX,
	     "CONFIG_TINYML_SLOTS_STREAM_BUFFER must be a power of two, and at least "
	     "CONFIG_TINYML_SLOTS_WRITE_BYTES");

/* One for both slots: only the slot that is not in use is written. */
static uint8_t buffer[BUFFER_BYTES] __aligned(4);
static struct stream_flash_ctx stream;

/* As much of the buffer as an erase unit is a multiple of. */
static uint32_t usable_bytes(uint32_t erase_bytes)
{
	uint32_t bytes = BUFFER_BYTES;

	while (erase_bytes % bytes != 0u) {
		bytes /= 2u;
	}
	return bytes;
}

static int begin(void *context, uint32_t offset)
{
	const struct flash_area *area = context;
	const struct device *device = flash_area_get_device(area);
	struct flash_pages_info page;
	int error = flash_get_page_info_by_offs(device, area->fa_off, &page);

	return error != 0 ? error
			  : stream_flash_init(&stream, device, buffer, usable_bytes(page.size),
					      (size_t)area->fa_off + offset, area->fa_size - offset,
					      NULL);
}

static int append(void *context, const void *data, uint32_t bytes, bool flush)
{
	ARG_UNUSED(context);
	return stream_flash_buffered_write(&stream, data, bytes, flush);
}

struct tinyml_flash_stream tinyml_stream_for(uint32_t erase_bytes)
{
	return (struct tinyml_flash_stream){begin, append, usable_bytes(erase_bytes)};
}
