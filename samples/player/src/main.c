/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Firmware without a model: it has kernels, and models are data.
 *
 * By default, two packs are arrays, as if they had been downloaded. With fs.conf they are kept as
 * files of littlefs. With slots.conf they are kept in two partitions of the flash; with host.conf,
 * too, they come over the console: `tinyml deploy digits_1.tmodel
 * --serial PORT`, and with smp.conf over MCUmgr: `tinyml deploy digits_1.tmodel --smp ADDRESS`.
 * With hawkbit.conf they come from a hawkBit server. With watch.conf, too, the firmware decides by
 * itself whether it keeps a new model.
 */

#include <stdio.h>
#include <string.h>

#include <zephyr/sys/util.h>

#include <tinyml/player.h>

#include "advertise.h"
#include "decide.h"
#include "digits.h"
#include "fetch.h"
#include "files.h"
#include "update.h"

#if defined(CONFIG_TINYML_HOST) || defined(CONFIG_TINYML_SMP) || defined(CONFIG_TINYML_HAWKBIT)

#include <tinyml/claim.h>
#include <tinyml/device_slots.h>

int main(void)
{
	int error;

	/* The thread that receives packs opens models, too. */
	tinyml_claim(&tinyml_slot_model.model, K_FOREVER);
	error = tinyml_slots_open(&tinyml_device_slots, &tinyml_slot_model);
	printf("model: %s\n",
	       error == 0 ? tinyml_slot_model.model.name : tinyml_slot_error_text(error));
	tinyml_release(&tinyml_slot_model.model);
	if (IS_ENABLED(CONFIG_MCUMGR_TRANSPORT_BT)) {
		advertise_mcumgr();
	}
	if (IS_ENABLED(CONFIG_TINYML_HAWKBIT)) {
		fetch_from_hawkbit();
	}
	if (IS_ENABLED(CONFIG_TINYML_SLOTS_WATCH)) {
		decide_by_watch();
	}
	return 0;
}

#else

#define ARENA_BYTES 4096
#define LARGEST     8192

static const uint8_t digits_1[] __aligned(TINYML_PLAYER_ALIGNMENT) = {
#include "digits_1.inc"
};
static const uint8_t digits_2[] __aligned(TINYML_PLAYER_ALIGNMENT) = {
#include "digits_2.inc"
};

TINYML_PLAYER_DEFINE(player, ARENA_BYTES, 0);
TINYML_PLAYER_DEFINE(small_player, 256, 0);

static int wrong;

static void expect(const char *what, int found, int expected)
{
	printf("%s: %s\n", what, tinyml_slot_error_text(found));
	if (found != expected) {
		printf("FAIL: expected: %s\n", tinyml_slot_error_text(expected));
		wrong++;
	}
}

static int play(const char *what, const uint8_t *pack, size_t bytes)
{
	int right;

	expect(what, tinyml_player_open(&player, pack, bytes), 0);
	expect("its self-test", tinyml_player_self_test(&player), 0);
	right = digits_right(&player.model);
	printf("%s: %s with an arena of %u bytes, %d of 40 images right\n", what, player.model.name,
	       (unsigned int)player.model.arena_bytes, right);
	return right;
}

/* The image for this core in RAM, of which one bit has changed. */
static int open_damaged(void)
{
	static uint8_t copy[LARGEST] __aligned(TINYML_PLAYER_ALIGNMENT);
	const void *image = digits_1;
	uint32_t bytes = sizeof(digits_1);
	int error = tinyml_pack_choose(&image, &bytes);

	if (error != 0 || bytes > sizeof(copy)) {
		return error;
	}
	memcpy(copy, image, bytes);
	copy[bytes / 2u] ^= 4u;
	return tinyml_player_open(&player, copy, bytes);
}

int main(void)
{
	int first, second;

	expect("no model", player.model.run(), TINYML_SLOT_NONE);
	first = play("version 1", digits_1, sizeof(digits_1));
	second = play("version 2", digits_2, sizeof(digits_2));
	wrong += second <= first;
	expect("half of a pack", tinyml_player_open(&player, digits_2, sizeof(digits_2) / 2),
	       TINYML_SLOT_BOUNDS);
	expect("a damaged pack", open_damaged(), TINYML_SLOT_DAMAGED);
	expect("a player with less memory",
	       tinyml_player_open(&small_player, digits_2, sizeof(digits_2)), TINYML_SLOT_ARENA);
	if (IS_ENABLED(CONFIG_TINYML_SLOTS)) {
		wrong += tell_update((struct pack){digits_1, sizeof(digits_1)},
				     (struct pack){digits_2, sizeof(digits_2)});
	}
	if (IS_ENABLED(CONFIG_FILE_SYSTEM_LITTLEFS)) {
		wrong += tell_files((struct pack){digits_1, sizeof(digits_1)},
				    (struct pack){digits_2, sizeof(digits_2)});
	}
	printf("%s\n", wrong == 0 ? "PASS" : "FAIL");
	return 0;
}

#endif
