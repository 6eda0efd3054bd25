/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "smp_requests.h"

#include <string.h>

#include <zcbor_decode.h>
#include <zcbor_encode.h>

#ifdef __ZEPHYR__
#include <zephyr/sys/printk.h>
#define PRINT snprintk
#else
#include <stdio.h>
#define PRINT snprintf
#endif

#define KERNEL_BYTES  64 /* 512 kernels */
#define VERSION_BYTES 32
#define TEXT_BYTES    64 /* longer names of models are cut off */

enum argument {
	ARGUMENT_OFFSET = 1,
	ARGUMENT_LENGTH = 2,
	ARGUMENT_DATA = 4,
};

struct smp_arguments {
	uint32_t offset;
	uint32_t length;
	struct zcbor_string data;
	bool resume;
	unsigned int given; /* bits of enum argument */
};

static bool smp_is(const struct zcbor_string *key, const char *name)
{
	return key->len == strlen(name) && memcmp(key->value, name, key->len) == 0;
}

/* A key that is not known. zcbor calls itself for everything in a list or a map, and a request can
 * nest them deeper than there is stack: those are refused. */
static bool smp_skip(zcbor_state_t *in)
{
	return in->payload < in->payload_end &&
	       ZCBOR_MAJOR_TYPE(*in->payload) != ZCBOR_MAJOR_TYPE_LIST &&
	       ZCBOR_MAJOR_TYPE(*in->payload) != ZCBOR_MAJOR_TYPE_MAP &&
	       ZCBOR_MAJOR_TYPE(*in->payload) != ZCBOR_MAJOR_TYPE_TAG && zcbor_any_skip(in, NULL);
}

static bool smp_read_arguments(zcbor_state_t *in, struct smp_arguments *found)
{
	struct zcbor_string key;
	bool fine = zcbor_map_start_decode(in);

	while (fine && !zcbor_array_at_end(in)) {
		fine = zcbor_tstr_decode(in, &key);
		if (!fine) {
			break;
		}
		if (smp_is(&key, "off")) {
			fine = zcbor_uint32_decode(in, &found->offset);
			found->given |= ARGUMENT_OFFSET;
		} else if (smp_is(&key, "len")) {
			fine = zcbor_uint32_decode(in, &found->length);
			found->given |= ARGUMENT_LENGTH;
		} else if (smp_is(&key, "data")) {
			fine = zcbor_bstr_decode(in, &found->data);
			found->given |= ARGUMENT_DATA;
		} else if (smp_is(&key, "resume")) {
			fine = zcbor_bool_decode(in, &found->resume);
		} else {
			fine = smp_skip(in);
		}
	}
	return fine && zcbor_map_end_decode(in);
}

static bool smp_put_key(zcbor_state_t *out, const char *key)
{
	return zcbor_tstr_put_term(out, key, TEXT_BYTES);
}

static bool smp_put_number(zcbor_state_t *out, const char *key, uint32_t value)
{
	return smp_put_key(out, key) && zcbor_uint32_put(out, value);
}

static bool smp_put_slot(const struct tinyml_slots *slots, int index, zcbor_state_t *out)
{
	char text[VERSION_BYTES];
	uint32_t version[2];
	const enum tinyml_region_state state = tinyml_slots_state(slots, index, version);
	bool fine = zcbor_map_start_encode(out, 2) && smp_put_number(out, "state", (uint32_t)state);

	if (fine && state != TINYML_REGION_FREE) {
		(void)PRINT(text, sizeof(text), "%u.%u.%u+%u", (unsigned int)(version[0] & 0xffu),
			    (unsigned int)(version[0] >> 8 & 0xffu),
			    (unsigned int)(version[0] >> 16), (unsigned int)version[1]);
		fine = smp_put_key(out, "version") && smp_put_key(out, text);
	}
	return fine && zcbor_map_end_encode(out, 2);
}

static bool smp_put_player(const struct tinyml_slot_player *player, zcbor_state_t *out)
{
	uint8_t bits[KERNEL_BYTES];
	const size_t bytes = tinyml_receiver_kernels(player, bits, sizeof(bits));

	return smp_put_number(out, "core", player->core) && smp_put_key(out, "kernels") &&
	       zcbor_bstr_encode_ptr(out, (const char *)bits, bytes);
}

static bool smp_put_state(const struct tinyml_receiver *receiver, zcbor_state_t *out)
{
	const struct tinyml_slots *slots = receiver->slots;
	const int unused = tinyml_slots_free(slots);
	bool fine = smp_put_key(out, "slots") && zcbor_list_start_encode(out, 2) &&
		    smp_put_slot(slots, 0, out) && smp_put_slot(slots, 1, out) &&
		    zcbor_list_end_encode(out, 2);

	if (fine && slots->active >= 0) {
		fine = smp_put_number(out, "active", (uint32_t)slots->active) &&
		       smp_put_key(out, "trial") && zcbor_bool_put(out, slots->on_trial) &&
		       smp_put_key(out, "name") && smp_put_key(out, receiver->slot->model.name);
	}
	if (fine && unused >= 0) {
		fine = smp_put_number(out, "free", (uint32_t)unused) &&
		       smp_put_number(out, "address", slots->region[unused].address) &&
		       smp_put_number(out, "bytes", slots->region[unused].bytes);
	}
	if (fine && receiver->slot->player != NULL) {
		fine = smp_put_player(receiver->slot->player, out);
	}
	return fine;
}

static int smp_upload(struct tinyml_receiver *receiver, const struct smp_arguments *arguments)
{
	if (arguments->given == ARGUMENT_LENGTH) {
		return tinyml_update_begin(&receiver->update, receiver->slots, arguments->length,
					   arguments->resume);
	}
	if (arguments->given != (ARGUMENT_OFFSET | ARGUMENT_DATA) ||
	    arguments->data.len > UINT32_MAX) {
		return TINYML_SMP_MALFORMED;
	}
	return tinyml_receiver_take(receiver, arguments->offset, arguments->data.value,
				    (uint32_t)arguments->data.len);
}

/* A second request, because the answer to the first was lost, finds the model on trial. */
static int smp_test(struct tinyml_receiver *receiver)
{
	int error = 0;

	if (!receiver->slots->on_trial) {
		error = tinyml_update_finish(&receiver->update);
		error = error != 0 ? error : tinyml_slots_open(receiver->slots, receiver->slot);
	}
	return error;
}

static int smp_erase(struct tinyml_receiver *receiver)
{
	const int error = tinyml_update_begin(&receiver->update, receiver->slots, 1, false);

	receiver->update.region = NULL; /* nothing is on its way */
	return error;
}

int tinyml_smp_request(struct tinyml_receiver *receiver, enum tinyml_smp_command command,
		       zcbor_state_t *in, zcbor_state_t *out)
{
	struct smp_arguments arguments = {.resume = true};
	int error = 0;
	bool fine = true;

	if (!smp_read_arguments(in, &arguments)) {
		return TINYML_SMP_MALFORMED;
	}
	switch (command) {
	case TINYML_SMP_STATE:
		break;
	case TINYML_SMP_UPLOAD:
		error = smp_upload(receiver, &arguments);
		break;
	case TINYML_SMP_TEST:
		error = smp_test(receiver);
		break;
	case TINYML_SMP_CONFIRM:
		error = tinyml_slots_confirm(receiver->slots);
		break;
	case TINYML_SMP_REJECT:
		error = tinyml_slots_reject(receiver->slots);
		break;
	case TINYML_SMP_ERASE:
		error = smp_erase(receiver);
		break;
	default:
		return TINYML_SMP_MALFORMED;
	}
	if (error != 0) {
		return error;
	}
	if (command == TINYML_SMP_STATE || command == TINYML_SMP_TEST) {
		fine = smp_put_state(receiver, out);
	} else if (command == TINYML_SMP_UPLOAD) {
		fine = smp_put_number(out, "off", receiver->update.done);
		if (fine && arguments.given == ARGUMENT_LENGTH) {
			fine = smp_put_number(out, "crc", tinyml_update_crc32(&receiver->update));
		}
	}
	return fine ? 0 : TINYML_SMP_TOO_LONG;
}
