/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "files.h"

#include <stdio.h>

#include <tinyml/player_file.h>
#include <zephyr/fs/fs.h>
#include <zephyr/fs/littlefs.h>
#include <zephyr/storage/flash_map.h>

#include "digits.h"

#define ARENA_BYTES 4096
#define IMAGE_BYTES 8192 /* of one core: a file has images for all */
#define MODEL       "/lfs/digits.tmodel"
#define PART        "/lfs/digits.part"

FS_LITTLEFS_DECLARE_DEFAULT_CONFIG(packs);
static struct fs_mount_t mount = {
	.type = FS_LITTLEFS,
	.fs_data = &packs,
	.storage_dev = (void *)FIXED_PARTITION_ID(pack_partition),
	.mnt_point = "/lfs",
};

TINYML_PLAYER_DEFINE(file_player, ARENA_BYTES, 0);
static uint8_t image[IMAGE_BYTES] __aligned(TINYML_PLAYER_ALIGNMENT);
static int wrong;

static void expect(const char *what, int found, int expected)
{
	printf("%s: %s\n", what, tinyml_slot_error_text(found));
	if (found != expected) {
		printf("FAIL: expected: %s\n", tinyml_slot_error_text(expected));
		wrong++;
	}
}

/* A download: to another name first, so that there is a whole model whenever power fails. */
static int keep(struct pack pack)
{
	struct fs_file_t file;
	int error;

	fs_file_t_init(&file);
	error = fs_open(&file, PART, FS_O_CREATE | FS_O_WRITE | FS_O_TRUNC);
	if (error == 0) {
		error = fs_write(&file, pack.data, pack.bytes) == (ssize_t)pack.bytes ? 0 : -1;
		error = fs_close(&file) != 0 ? -1 : error;
	}
	return error == 0 ? fs_rename(PART, MODEL) : error;
}

static int play(void)
{
	return tinyml_player_open_file(&file_player, MODEL, image, sizeof(image));
}

int tell_files(struct pack first, struct pack second)
{
	int before, after;

	wrong += fs_mount(&mount) != 0;
	expect("no file", play(), TINYML_SLOT_EMPTY);
	wrong += keep(first) != 0;
	expect("a file", play(), 0);
	before = digits_right(&file_player.model);
	printf("%s from a file: %d of 40 images right\n", file_player.model.name, before);
	wrong += keep(second) != 0;
	wrong += digits_right(&file_player.model) != before; /* it is in RAM */
	expect("another file", play(), 0);
	after = digits_right(&file_player.model);
	printf("%s from a file: %d of 40 images right\n", file_player.model.name, after);
	wrong += after <= before;
	second.bytes /= 2u;
	wrong += keep(second) != 0;
	expect("half of a file", play(), TINYML_SLOT_BOUNDS);
	expect("and no model", file_player.model.run(), TINYML_SLOT_NONE);
	wrong += keep(first) != 0;
	expect("too little RAM", tinyml_player_open_file(&file_player, MODEL, image, 1024),
	       TINYML_SLOT_REGION);
	wrong += fs_unmount(&mount) != 0;
	return wrong;
}
