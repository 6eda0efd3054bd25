/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* CONFIG_TINYML_HAWKBIT: what a hawkBit server says about packs, and what it is told. */

#include <errno.h>
#include <string.h>

#include <tinyml/claim.h>
#include <tinyml/device_slots.h>
#include <tinyml/hawkbit.h>
#include <tinyml/slot_offer.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>
#include <zephyr/sys/util.h>

#include "hawkbit_http.h"
#include "hawkbit_json.h"

LOG_MODULE_DECLARE(tinyml, CONFIG_TINYML_LOG_LEVEL);

#define CLAIM_TIMEOUT K_SECONDS(5)
#define WINDOW_BYTES  256 /* of the start of a file, which is read in small parts */
#define BODY_BYTES    256

static struct hawkbit_answer answer;
static struct hawkbit_json json;
static struct tinyml_update update;
static char url[HAWKBIT_URL + sizeof("/feedback")];
static char body[BODY_BYTES];
static char where[HAWKBIT_URL]; /* the address of the action */
static char trial[HAWKBIT_ID];  /* the action whose model is on trial, if it is known */
static int refused;             /* why: an error of slots; others are those of the network */

static int claim(void)
{
	return tinyml_claim(&tinyml_slot_model.model, CLAIM_TIMEOUT) == 0 ? 0 : -EBUSY;
}

static void release(void)
{
	tinyml_release(&tinyml_slot_model.model);
}

static int take_json(void *context, uint32_t position, const char *data, size_t bytes)
{
	ARG_UNUSED(context);
	ARG_UNUSED(position);
	return hawkbit_json_take(&json, data, bytes) ? 0 : -EPROTO;
}

static int ask(const struct tinyml_hawkbit *server, const char *from)
{
	const struct hawkbit_request request = {
		.server = server, .method = HTTP_GET, .url = from, .take = take_json};
	int error;

	hawkbit_json_start(&json, &answer, server->part);
	error = hawkbit_send(&request);
	return error != 0 ? error : hawkbit_json_is_complete(&json) ? 0 : -EPROTO;
}

static int tell(const struct tinyml_hawkbit *server, const char *execution, const char *finished,
		const char *details)
{
	const struct hawkbit_request request = {
		.server = server, .method = HTTP_POST, .url = url, .body = body};
	const int length = (int)strcspn(where, "?");

	(void)snprintk(url, sizeof(url), "%.*s/feedback", length, where);
	(void)snprintk(body, sizeof(body),
		       "{\"id\":\"%s\",\"status\":{\"execution\":\"%s\",\"result\":"
		       "{\"finished\":\"%s\"},\"details\":[\"%s\"]}}",
		       answer.id, execution, finished, details);
	return hawkbit_send(&request);
}

/* What the server may want to choose devices by. */
static int tell_attributes(const struct tinyml_hawkbit *server)
{
	const struct hawkbit_request request = {
		.server = server, .method = HTTP_PUT, .url = answer.attributes, .body = body};
	const bool has_model = tinyml_device_slots.active >= 0;
	const uint32_t *version = tinyml_slot_model.version;
	int error = claim();

	if (error != 0) {
		return error;
	}
	(void)snprintk(body, sizeof(body),
		       "{\"mode\":\"merge\",\"data\":{\"model\":\"%s\",\"model_version\":"
		       "\"%u.%u.%u+%u\",\"slot_bytes\":\"%u\",\"arena_bytes\":\"%u\"}}",
		       has_model ? tinyml_slot_model.model.name : "",
		       has_model ? (unsigned int)(version[0] & 0xffu) : 0u,
		       has_model ? (unsigned int)(version[0] >> 8 & 0xffu) : 0u,
		       has_model ? (unsigned int)(version[0] >> 16) : 0u,
		       has_model ? (unsigned int)version[1] : 0u,
		       (unsigned int)tinyml_device_slots.region[0].bytes,
		       (unsigned int)CONFIG_TINYML_SLOTS_ARENA_BYTES);
	release();
	return hawkbit_send(&request);
}

/* A part of the file, of which small parts are read. */
struct window {
	const struct tinyml_hawkbit *server;
	uint32_t position;
	uint32_t bytes;
	uint32_t filled;
	int error; /* of the network */
	uint8_t data[WINDOW_BYTES];
};

static int fill(void *context, uint32_t position, const char *data, size_t bytes)
{
	struct window *window = context;

	for (size_t i = 0; i < bytes; i++) {
		const uint32_t at = position + (uint32_t)i;

		if (at >= window->position && at - window->position < window->bytes) {
			window->data[at - window->position] = (uint8_t)data[i];
			window->filled++;
		}
	}
	return window->filled == window->bytes ? HAWKBIT_ENOUGH : 0;
}

static int move_window(struct window *window, uint32_t position)
{
	const struct hawkbit_request request = {
		.server = window->server,
		.method = HTTP_GET,
		.url = answer.download,
		.position = position,
		.bytes = MIN(sizeof(window->data), answer.bytes - position),
		.take = fill,
		.context = window,
	};
	int error;

	window->position = position;
	window->bytes = request.bytes;
	window->filled = 0;
	error = hawkbit_send(&request);
	return error != 0 ? error : window->filled == request.bytes ? 0 : -EPROTO;
}

/* The model is not claimed while the network is slow. */
static int read_file(void *context, uint32_t position, void *data, uint32_t bytes)
{
	struct window *const windows = context; /* one for the table, one for the rest */
	struct window *const window = &windows[position + bytes <= WINDOW_BYTES ? 0 : 1];
	const uint32_t end = window->position + window->filled;

	if (position < window->position || position > end || bytes > end - position) {
		release();
		window->error = move_window(window, window == windows ? 0u : position);
		(void)tinyml_claim(&tinyml_slot_model.model, K_FOREVER);
		if (window->error != 0 || position - window->position + bytes > window->filled) {
			window->filled = 0;
			return -1;
		}
	}
	memcpy(data, window->data + (position - window->position), bytes);
	return 0;
}

static int look(const struct tinyml_hawkbit *server, struct tinyml_offer *offer)
{
	struct window windows[2] = {{.server = server}, {.server = server}};
	const struct tinyml_pack_file file = {read_file, windows, answer.bytes};
	int error = claim();

	if (error == 0) {
		refused =
			tinyml_slots_offer(&tinyml_device_slots, &tinyml_slot_model, &file, offer);
		release();
		error = windows[0].error != 0 ? windows[0].error : windows[1].error;
	}
	return error;
}

/* The context is the position of the image in the file. */
static int take_image(void *context, uint32_t position, const char *data, size_t bytes)
{
	const uint32_t *image = context;
	const uint32_t next = *image + update.done;
	uint32_t skipped;
	int error;

	if (position > next) {
		return -EPROTO;
	}
	skipped = MIN(next - position, (uint32_t)bytes); /* the server sends all of the file */
	bytes = MIN(bytes - skipped, update.bytes - update.done);
	if (bytes == 0u) {
		return 0;
	}
	error = claim();
	if (error == 0) {
		refused = tinyml_update_write(&update, data + skipped, (uint32_t)bytes);
		release();
		error = refused != 0 ? -EIO : update.done == update.bytes ? HAWKBIT_ENOUGH : 0;
	}
	return error;
}

static int receive(const struct tinyml_hawkbit *server, const struct tinyml_offer *offer)
{
	uint32_t image = offer->position;
	const struct hawkbit_request request = {
		.server = server,
		.method = HTTP_GET,
		.url = answer.download,
		.position = image + update.done,
		.bytes = update.bytes - update.done,
		.take = take_image,
		.context = &image,
	};
	int error = request.bytes > 0u ? hawkbit_send(&request) : 0;

	if (refused != 0) {
		return 0;
	}
	return error != 0 ? error : update.done == update.bytes ? 0 : -EPROTO;
}

/* Receive an image and check it; go on with what is there only if @a resume. */
static int fetch(const struct tinyml_hawkbit *server, const struct tinyml_offer *offer, bool resume,
		 bool *resumed)
{
	int error = claim();

	if (error != 0) {
		return error;
	}
	refused = resume ? tinyml_offer_begin(offer, &tinyml_device_slots, &update)
			 : tinyml_update_begin(&update, &tinyml_device_slots, offer->bytes, false);
	release();
	*resumed = refused == 0 && update.done > 0u;
	if (*resumed) {
		LOG_INF("hawkBit: %u of %u bytes were there", (unsigned int)update.done,
			(unsigned int)update.bytes);
	}
	error = refused == 0 ? receive(server, offer) : 0;
	if (error == 0 && refused == 0) {
		error = claim();
		if (error == 0) {
			refused = tinyml_update_finish(&update);
			release();
		}
	}
	return error;
}

/* Use what was received. */
static int try_model(void)
{
	int error = claim();

	if (error == 0) {
		refused = tinyml_slots_open(&tinyml_device_slots, &tinyml_slot_model);
		if (refused == 0 && !tinyml_device_slots.on_trial) {
			refused = TINYML_SLOT_SELF_TEST; /* and the model before is in use */
		}
		release();
	}
	return error;
}

static int tell_trial(const struct tinyml_hawkbit *server)
{
	int error = strcmp(trial, answer.id) == 0
			    ? 0
			    : tell(server, "proceeding", "none", "the new model is on trial");

	if (error == 0) {
		strcpy(trial, answer.id);
	}
	return error;
}

static int install(const struct tinyml_hawkbit *server, const struct tinyml_offer *offer)
{
	bool resumed = false;
	int error = 0;

	if (offer->state == TINYML_OFFER_NEW) {
		error = fetch(server, offer, true, &resumed);
		if (error == 0 && refused != 0 && resumed) { /* what was there was damaged */
			error = fetch(server, offer, false, &resumed);
		}
	}
	return error == 0 && refused == 0 ? try_model() : error;
}

static int deploy(const struct tinyml_hawkbit *server)
{
	struct tinyml_offer offer;
	int error = ask(server, where);
	bool installed;

	if (error != 0 || answer.skip) {
		return error;
	}
	if (answer.bytes == 0u) {
		error = tell(server, "closed", "failure", "no file .tmodel for this device");
		return error != 0 ? error : TINYML_HAWKBIT_FAILED;
	}
	error = look(server, &offer);
	if (error != 0) {
		return error;
	}
	if (refused == TINYML_SLOT_BUSY) {
		return TINYML_HAWKBIT_WAITING; /* a model that came another way is on trial */
	}
	if (refused == 0 && offer.state == TINYML_OFFER_KEPT) {
		error = tell(server, "closed", "success", "the new model was confirmed");
		return error != 0 ? error : TINYML_HAWKBIT_SUCCEEDED;
	}
	if (refused == 0 && offer.state == TINYML_OFFER_REJECTED) {
		refused = TINYML_SLOT_REJECTED;
	}
	installed = refused == 0 && offer.state != TINYML_OFFER_ON_TRIAL;
	if (installed) {
		error = install(server, &offer);
	}
	if (error == 0 && refused == TINYML_SLOT_FLASH) {
		error = -EIO; /* the device's fault: the next call tries it again */
	}
	if (error == 0 && refused != 0) {
		LOG_ERR("hawkBit: the pack was refused: %s", tinyml_slot_error_text(refused));
		error = tell(server, "closed", "failure", tinyml_slot_error_text(refused));
		return error != 0 ? error : TINYML_HAWKBIT_FAILED;
	}
	error = error == 0 ? tell_trial(server) : error;
	return error != 0 ? error : installed ? TINYML_HAWKBIT_INSTALLED : TINYML_HAWKBIT_WAITING;
}

/* A model on trial is given up. One that was decided about stays: the server hears so next time. */
static int cancel(const struct tinyml_hawkbit *server)
{
	int error = ask(server, where);
	bool decided;

	error = error != 0 ? error : claim();
	if (error != 0) {
		return error;
	}
	decided =
		trial[0] != '\0' && strcmp(trial, answer.id) == 0 && !tinyml_device_slots.on_trial;
	if (tinyml_device_slots.on_trial && (trial[0] == '\0' || strcmp(trial, answer.id) == 0)) {
		(void)tinyml_slots_reject(&tinyml_device_slots);
	}
	release();
	error = decided ? tell(server, "rejected", "none", "the new model was decided about")
			: tell(server, "closed", "success", "cancelled");
	return error != 0 ? error : decided ? TINYML_HAWKBIT_WAITING : TINYML_HAWKBIT_CANCELLED;
}

int tinyml_hawkbit_poll(const struct tinyml_hawkbit *server, uint32_t *seconds)
{
	int error;

	refused = 0;
	if (snprintk(where, sizeof(where), "/%s/controller/v1/%s", server->tenant,
		     server->controller) >= (int)sizeof(where)) {
		return -EINVAL;
	}
	error = ask(server, where);
	if (error != 0) {
		return error;
	}
	if (answer.sleep_seconds > 0u) {
		*seconds = answer.sleep_seconds;
	}
	if (answer.attributes[0] != '\0') {
		error = tell_attributes(server);
		if (error != 0) {
			return error;
		}
	}
	strcpy(where, answer.cancel);
	if (where[0] != '\0') {
		return cancel(server);
	}
	strcpy(where, answer.deployment);
	return where[0] != '\0' ? deploy(server) : TINYML_HAWKBIT_NOTHING;
}
