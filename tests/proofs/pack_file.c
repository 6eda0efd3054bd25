/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * proves: player/pack_file.c
 * shapes: files of any content and of up to 300 bytes, with up to eight images
 * unwind: 9
 */

#include <tinyml/pack_file.h>

#include "proof.h"
#include "slot/format.h"

#define MOST 300

static int read_file(void *context, uint32_t position, void *data, uint32_t bytes)
{
	(void)context;
	__CPROVER_assert(position <= MOST && bytes <= MOST - position, "inside the largest file");
	__CPROVER_assert(__CPROVER_w_ok(data, bytes), "room for what is read");
	__CPROVER_havoc_slice(data, bytes);
	return nondet_int();
}

void tinyml_player_close(struct tinyml_player *player)
{
	(void)player;
}

int tinyml_player_open(struct tinyml_player *player, const void *image, uint32_t bytes)
{
	(void)player;
	__CPROVER_assert(__CPROVER_r_ok(image, bytes), "an image that was read");
	return nondet_int();
}

int main(void)
{
	const uint32_t room = (uint32_t)between(1, MOST);
	const struct tinyml_pack_file file = {
		.read = read_file,
		.bytes = (uint32_t)between(0, MOST),
	};
	struct tinyml_player player;

	(void)tinyml_player_load(&player, &file, anything(room), room);
	return 0;
}
