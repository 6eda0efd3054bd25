/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Threads that use, describe and replace the model at the same time: a computer that deploys, the
 * shell, an application that runs the model and one that sends updates of its own. Each interrupts
 * the others wherever they are. */

#include <string.h>

#include <tinyml/claim.h>
#include <tinyml/slot_receiver.h>
#include <zephyr/shell/shell.h>
#include <zephyr/shell/shell_dummy.h>
#include <zephyr/ztest.h>

#include "device.h"

#define DEPLOYMENTS 12
#define STACK_BYTES 4096

static struct tinyml_slots *const slots = &tinyml_device_slots;
static volatile bool stop;
static volatile unsigned int runs, commands, own_updates, overtaken;

K_THREAD_STACK_DEFINE(user_stack, STACK_BYTES);
K_THREAD_STACK_DEFINE(shell_stack, STACK_BYTES);
K_THREAD_STACK_DEFINE(own_stack, STACK_BYTES);
static struct k_thread user, commander, own;

static void use_model(void *a, void *b, void *c)
{
	ARG_UNUSED(a);
	ARG_UNUSED(b);
	ARG_UNUSED(c);
	while (!stop) {
		if (tinyml_claim(&tinyml_slot_model.model, K_MSEC(500)) == 0) {
			if (slots->active >= 0) {
				zassert_true(computes(), "a model computes something else");
				runs++;
			}
			tinyml_release(&tinyml_slot_model.model);
		}
		k_usleep(1300);
	}
}

static void use_shell(void *a, void *b, void *c)
{
	static const char *const lines[] = {"tinyml list", "tinyml slot info", "tinyml info stream",
					    "tinyml slot open", "tinyml slot confirm"};
	const struct shell *sh = shell_backend_dummy_get_ptr();

	ARG_UNUSED(a);
	ARG_UNUSED(b);
	ARG_UNUSED(c);
	while (!stop) {
		shell_backend_dummy_clear_output(sh);
		(void)shell_execute_cmd(sh, lines[commands++ % ARRAY_SIZE(lines)]);
		k_usleep(2100);
	}
}

/* Begins, sends a part, and goes on if nobody has begun since. */
static void send_own(void *a, void *b, void *c)
{
	static struct tinyml_update update;

	ARG_UNUSED(a);
	ARG_UNUSED(b);
	ARG_UNUSED(c);
	while (!stop) {
		struct arriving image;
		int error;

		tinyml_claim(&tinyml_slot_model.model, K_FOREVER);
		error = tinyml_slots_free(slots);
		image = image_of(V3, error < 0 ? 0 : error);
		error = error < 0 ? error : tinyml_update_begin(&update, slots, image.bytes, false);
		tinyml_release(&tinyml_slot_model.model);
		for (int i = 0; error == 0 && i < 3; i++) {
			k_usleep(700);
			tinyml_claim(&tinyml_slot_model.model, K_FOREVER);
			error = tinyml_update_write(&update, image.content + update.done, 100);
			tinyml_release(&tinyml_slot_model.model);
		}
		own_updates++;
		overtaken += error == TINYML_SLOT_OVERTAKEN;
		k_msleep(40);
	}
}

static uint8_t ask(struct tinyml_receiver *receiver, const uint8_t *request, size_t bytes)
{
	uint8_t answer[TINYML_RECEIVER_ROOM] = {0};

	tinyml_claim(&tinyml_slot_model.model, K_FOREVER);
	(void)tinyml_receiver_request(receiver, request, bytes, answer, sizeof(answer));
	tinyml_release(&tinyml_slot_model.model);
	return answer[0];
}

/* As `tinyml deploy` does, but for the answers: one request after the other, with breaks. */
static bool deploy(struct tinyml_receiver *receiver, enum pack pack)
{
	int slot = tinyml_slots_free(slots);
	struct arriving image = image_of(pack, slot < 0 ? 0 : slot);
	uint8_t request[5 + 100] = {TINYML_RECEIVER_BEGIN};

	memcpy(&request[1], &image.bytes, 4);
	request[5] = 0;
	if (slot < 0 || ask(receiver, request, 6) != 0) {
		return false;
	}
	for (uint32_t done = 0; done < image.bytes; done += MIN(100u, image.bytes - done)) {
		uint32_t count = MIN(100u, image.bytes - done);

		request[0] = TINYML_RECEIVER_DATA;
		memcpy(&request[1], &done, 4);
		memcpy(&request[5], image.content + done, count);
		if (ask(receiver, request, 5u + count) != 0) {
			return false;
		}
		if (done % 800u == 0u) {
			k_usleep(300);
		}
	}
	return ask(receiver, (uint8_t[]){TINYML_RECEIVER_FINISH}, 1) == 0 &&
	       ask(receiver, (uint8_t[]){TINYML_RECEIVER_OPEN}, 1) == 0 &&
	       ask(receiver, (uint8_t[]){TINYML_RECEIVER_CONFIRM}, 1) == 0;
}

ZTEST(tinyml_slots_races, test_everybody_at_once)
{
	static struct tinyml_receiver receiver = {.slots = &tinyml_device_slots,
						  .slot = &tinyml_slot_model};
	unsigned int deployed = 0;

	if (IS_ENABLED(CONFIG_ARCH_POSIX)) {
		ztest_test_skip(); /* threads there are not interrupted while they compute */
	}
	WAIT_FOR(shell_ready(shell_backend_dummy_get_ptr()), 1000000, k_msleep(1));
	fresh_device();
	k_thread_create(&user, user_stack, STACK_BYTES, use_model, NULL, NULL, NULL, 1, 0,
			K_NO_WAIT);
	k_thread_create(&commander, shell_stack, STACK_BYTES, use_shell, NULL, NULL, NULL, 2, 0,
			K_NO_WAIT);
	k_thread_create(&own, own_stack, STACK_BYTES, send_own, NULL, NULL, NULL, 3, 0, K_NO_WAIT);
	k_thread_priority_set(k_current_get(), 4);
	for (int i = 0; i < DEPLOYMENTS; i++) {
		if (i % 3 == 0) { /* versions only rise: a new device */
			tinyml_claim(&tinyml_slot_model.model, K_FOREVER);
			fresh_device();
			tinyml_release(&tinyml_slot_model.model);
		}
		for (int attempt = 0; attempt < 20; attempt++) {
			if (deploy(&receiver, i % 3 == 0 ? V1 : V2)) {
				deployed++;
				break;
			}
			k_msleep(5);
		}
	}
	stop = true;
	k_thread_join(&user, K_FOREVER);
	k_thread_join(&commander, K_FOREVER);
	k_thread_join(&own, K_FOREVER);
	printk("%u deployed, %u runs, %u commands, %u updates of its own, %u overtaken\n", deployed,
	       runs, commands, own_updates, overtaken);
	zassert_true(deployed >= DEPLOYMENTS / 3 && runs > 20 && commands > 20 && own_updates > 2);
	zassert_true(overtaken > 0, "no update was overtaken");
	zassert_ok(start());
	zassert_true(computes());
}

ZTEST_SUITE(tinyml_slots_races, NULL, NULL, NULL, NULL, NULL);
