/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Slots in partitions of Zephyr's flash map. */

#include <zephyr/app_memory/app_memdomain.h>
#include <zephyr/cache.h>
#include <zephyr/devicetree.h>
#include <zephyr/drivers/flash.h>
#include <zephyr/init.h>
#include <zephyr/logging/log.h>
#include <zephyr/storage/flash_map.h>

#ifdef CONFIG_USERSPACE
/* A thread in user mode needs arena and state; what the firmware knows about the model, functions
 * among it, it may only read. */
#define TINYML_ARENA_SECTION(slot_name)      K_APP_BMEM(tinyml_partition)
#define TINYML_SLOT_STATE_SECTION(slot_name) K_APP_BMEM(tinyml_partition)
#define TINYML_SLOT_SECTION(slot_name)       K_APP_DMEM(tinyml_slot_partition)
#define TINYML_PLAYER_SECTION(player_name)   K_APP_DMEM(tinyml_slot_partition)
#endif
#include <tinyml/device_slots.h>
#include <tinyml_arenas.h>

#include "slots_stream.h"

#ifdef CONFIG_TINYML_PLAYER
#include <tinyml/player.h>
#endif

#ifdef CONFIG_TINYML_REGISTRY
#include <tinyml/registry.h>
#endif
#ifdef CONFIG_TINYML_SLOTS_WATCH
#include <tinyml/device_watch.h>
#endif
#ifdef CONFIG_ARCH_POSIX
#include <zephyr/drivers/flash/flash_simulator.h>
#endif
#if defined(CONFIG_TINYML_SLOTS_MONOCYPHER) || defined(CONFIG_TINYML_SLOTS_PSA)
#include <tinyml/slot_trust.h>
#include <tinyml_slot_key.h>
#define SIGNED 1
#endif

LOG_MODULE_DECLARE(tinyml, CONFIG_TINYML_LOG_LEVEL);

#if !DT_HAS_CHOSEN(tinyml_slot_a) || !DT_HAS_CHOSEN(tinyml_slot_b)
#error "CONFIG_TINYML_SLOTS: the devicetree must choose two partitions, tinyml,slot-a and tinyml,slot-b"
#endif

#define SLOT_A    DT_CHOSEN(tinyml_slot_a)
#define SLOT_B    DT_CHOSEN(tinyml_slot_b)
#define FLASH(id) DT_MEM_FROM_FIXED_PARTITION(id)

/* Where the core sees a flash: at its address, or in the RAM that emulates it. */
#define PLAYED(id) DT_PARENT(FLASH(id))
#define FLASH_START(id)                                                                            \
	COND_CODE_1(DT_NODE_HAS_PROP(PLAYED(id), memory_region),                                   \
		    (DT_REG_ADDR(DT_PHANDLE(PLAYED(id), memory_region))),                          \
		    (DT_REG_ADDR(FLASH(id))))
#define SLOT_START(id) (FLASH_START(id) + DT_REG_ADDR(id))

BUILD_ASSERT(DT_PROP_OR(FLASH(SLOT_A), write_block_size, 1) <= TINYML_FLASH_WRITE_MAX &&
		     DT_PROP_OR(FLASH(SLOT_B), write_block_size, 1) <= TINYML_FLASH_WRITE_MAX,
	     "the flash of a slot is written in larger units than CONFIG_TINYML_SLOTS_WRITE_BYTES");

/* Flash that faults when the core reads it erased: the driver looks before it reads. */
#if defined(CONFIG_CHECK_BEFORE_READING) || defined(CONFIG_FLASH_RENESAS_RA_HP_CHECK_BEFORE_READING)
#define READS_FAULT 1
#endif

#ifdef CONFIG_USERSPACE
K_APPMEM_PARTITION_DEFINE(tinyml_slot_partition);
#endif

#ifdef CONFIG_TINYML_PLAYER
TINYML_SLOT_PLAYER_DEFINE(tinyml_slot_model, CONFIG_TINYML_SLOTS_ARENA_BYTES,
			  CONFIG_TINYML_SLOTS_STATE_BYTES);
#else
TINYML_SLOT_DEFINE(tinyml_slot_model, CONFIG_TINYML_SLOTS_ARENA_BYTES,
		   CONFIG_TINYML_SLOTS_STATE_BYTES);
#endif

#ifdef CONFIG_TINYML_REGISTRY
const STRUCT_SECTION_ITERABLE(tinyml_entry,
			      tinyml_slot_entry_of_registry) = {.model = &tinyml_slot_model.model};
#endif

#ifdef CONFIG_TINYML_SLOTS_WATCH
TINYML_SLOT_WATCH_DEFINE(tinyml_slot_seen, tinyml_slot_model);
const STRUCT_SECTION_ITERABLE(tinyml_watch_entry,
			      tinyml_slot_entry_of_watch) = {.watch = &tinyml_slot_seen.watch};
#endif

TINYML_DEFINE_LOCK(tinyml_slot_lock);

#ifdef SIGNED
static const struct tinyml_slot_trust trust = {
#ifdef CONFIG_TINYML_SLOTS_MONOCYPHER
	.verify = tinyml_slot_verify_monocypher,
#else
	.verify = tinyml_slot_verify_psa,
#endif
	.public_key = tinyml_slot_public_key,
};
#endif

static int erase_area(void *context, uint32_t offset, uint32_t bytes)
{
	return flash_area_erase(context, (off_t)offset, bytes);
}

static int write_area(void *context, uint32_t offset, const void *data, uint32_t bytes)
{
	return flash_area_write(context, (off_t)offset, data, bytes);
}

/* Where it starts, an erase unit of its own size: they differ on STM32F4, F7 and others. */
static uint32_t unit_at(void *context, uint32_t offset)
{
	const struct flash_area *area = context;
	struct flash_pages_info page;
	off_t start = area->fa_off + (off_t)offset;
	int error = flash_get_page_info_by_offs(flash_area_get_device(area), start, &page);

	return error == 0 && page.start_offset == start ? page.size : 0u; /* 0: not supported */
}

#ifdef READS_FAULT
static int read_area(void *context, uint32_t offset, void *data, uint32_t bytes)
{
	return flash_area_read(context, (off_t)offset, data, bytes);
}
#endif

#ifdef CONFIG_CACHE_MANAGEMENT
/* Also caches outside of the core, which have a driver. */
static void sync_caches(const void *start, uint32_t bytes)
{
	(void)sys_cache_data_flush_and_invd_range((void *)start, bytes);
	if (sys_cache_instr_invd_range((void *)start, bytes) != 0) {
		(void)sys_cache_instr_invd_all(); /* all that Cortex-M and others offer */
	}
	tinyml_slot_sync(start, bytes);
}
#endif

static struct tinyml_flash flash[2];
#ifdef CONFIG_TINYML_SLOTS_STREAM_FLASH
static struct tinyml_flash_stream streams[2];
#endif

struct tinyml_slots tinyml_device_slots = {
	.region =
		{
			{(const void *)SLOT_START(SLOT_A), SLOT_START(SLOT_A), DT_REG_SIZE(SLOT_A),
			 &flash[0]},
			{(const void *)SLOT_START(SLOT_B), SLOT_START(SLOT_B), DT_REG_SIZE(SLOT_B),
			 &flash[1]},
		},
#ifdef SIGNED
	.trust = &trust,
#endif
	.active = -1,
};

void tinyml_device_slots_restart(void)
{
	tinyml_slot_close(&tinyml_slot_model);
	tinyml_device_slots.slot = NULL;
	tinyml_device_slots.active = -1;
	tinyml_device_slots.on_trial = false;
}

static int open_area(int index, uint8_t id)
{
	const struct flash_area *area;
	struct flash_pages_info page;
	const struct device *device;
	int error = flash_area_open(id, &area);

	if (error == 0) {
		device = flash_area_get_device(area);
		error = flash_get_page_info_by_offs(device, area->fa_off, &page);
	}
	if (error != 0) {
		LOG_ERR("slot %d: its partition has no flash device (%d)", index, error);
		tinyml_device_slots.region[index].flash = NULL; /* TINYML_SLOT_REGION */
		return error;
	}
	flash[index] = (struct tinyml_flash){
		.erase = erase_area,
		.write = write_area,
		.context = (void *)area,
		.erase_bytes = page.size,
		.write_bytes = flash_get_write_block_size(device),
		.unit = unit_at,
#ifdef READS_FAULT
		.read = read_area,
#endif
	};
#ifdef CONFIG_TINYML_SLOTS_STREAM_FLASH
	streams[index] = tinyml_stream_for(page.size);
	flash[index].stream = &streams[index];
#endif
#ifdef CONFIG_ARCH_POSIX
	size_t bytes;
	const uint8_t *memory = flash_simulator_get_memory(device, &bytes);

	tinyml_device_slots.region[index].memory = memory + area->fa_off;
#endif
	return 0;
}

static int prepare(void)
{
	int error = open_area(0, DT_FIXED_PARTITION_ID(SLOT_A));

	tinyml_slot_model.model.lock = (void *)&tinyml_slot_lock;
#ifdef CONFIG_CACHE_MANAGEMENT
	tinyml_slot_model.sync = sync_caches;
#endif
#ifdef CONFIG_USERSPACE
	tinyml_slot_partition.attr = K_MEM_PARTITION_P_RW_U_RO;
#endif
	return error != 0 ? error : open_area(1, DT_FIXED_PARTITION_ID(SLOT_B));
}

SYS_INIT(prepare, APPLICATION, CONFIG_APPLICATION_INIT_PRIORITY);
