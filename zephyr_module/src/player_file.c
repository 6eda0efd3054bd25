/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/player_file.h>
#include <zephyr/fs/fs.h>

static int read_file(void *context, uint32_t position, void *data, uint32_t bytes)
{
	int error = fs_seek(context, (off_t)position, FS_SEEK_SET);

	return error == 0 && fs_read(context, data, bytes) == (ssize_t)bytes ? 0 : -1;
}

int tinyml_player_open_file(struct tinyml_player *player, const char *path, void *memory,
			    uint32_t room)
{
	struct tinyml_pack_file file = {.read = read_file};
	struct fs_dirent facts;
	struct fs_file_t handle;
	int error;

	tinyml_player_close(player);
	if (fs_stat(path, &facts) != 0 || facts.type != FS_DIR_ENTRY_FILE) {
		return TINYML_SLOT_EMPTY;
	}
	fs_file_t_init(&handle);
	if (facts.size > UINT32_MAX || fs_open(&handle, path, FS_O_READ) != 0) {
		return TINYML_SLOT_FLASH;
	}
	file.context = &handle;
	file.bytes = (uint32_t)facts.size;
	error = tinyml_player_load(player, &file, memory, room);
	(void)fs_close(&handle);
	return error;
}
