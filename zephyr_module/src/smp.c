/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* CONFIG_TINYML_SMP: the slots of this image as a management group of MCUmgr. */

#include <tinyml/claim.h>
#include <tinyml/device_slots.h>
#include <zephyr/mgmt/mcumgr/mgmt/handlers.h>
#include <zephyr/mgmt/mcumgr/mgmt/mgmt.h>
#include <zephyr/mgmt/mcumgr/smp/smp.h>

#include "smp_requests.h"

/* The application may run the model for so long before a request is told that it is busy. */
#define CLAIM_TIMEOUT K_MSEC(500)

static int handle(struct smp_streamer *context, enum tinyml_smp_command command)
{
	static struct tinyml_receiver receiver;
	zcbor_state_t *out = context->writer->zs;
	int error;

	if (tinyml_claim(&tinyml_slot_model.model, CLAIM_TIMEOUT) != 0) {
		return MGMT_ERR_EBUSY;
	}
	receiver.slots = &tinyml_device_slots;
	receiver.slot = &tinyml_slot_model;
	error = tinyml_smp_request(&receiver, command, context->reader->zs, out);
	tinyml_release(&tinyml_slot_model.model);
	if (error > 0) {
		return error == TINYML_SMP_MALFORMED ? MGMT_ERR_EINVAL : MGMT_ERR_EMSGSIZE;
	}
	if (error < 0 &&
	    !smp_add_cmd_err(out, CONFIG_TINYML_SMP_GROUP_ID, (uint16_t)(unsigned int)-error)) {
		return MGMT_ERR_EMSGSIZE;
	}
	return MGMT_ERR_EOK;
}

static int read_state(struct smp_streamer *context)
{
	return handle(context, TINYML_SMP_STATE);
}

static int upload(struct smp_streamer *context)
{
	return handle(context, TINYML_SMP_UPLOAD);
}

static int try_model(struct smp_streamer *context)
{
	return handle(context, TINYML_SMP_TEST);
}

static int confirm(struct smp_streamer *context)
{
	return handle(context, TINYML_SMP_CONFIRM);
}

static int reject(struct smp_streamer *context)
{
	return handle(context, TINYML_SMP_REJECT);
}

static int erase(struct smp_streamer *context)
{
	return handle(context, TINYML_SMP_ERASE);
}

static const struct mgmt_handler handlers[TINYML_SMP_COMMANDS] = {
	[TINYML_SMP_STATE] = {.mh_read = read_state}, [TINYML_SMP_UPLOAD] = {.mh_write = upload},
	[TINYML_SMP_TEST] = {.mh_write = try_model},  [TINYML_SMP_CONFIRM] = {.mh_write = confirm},
	[TINYML_SMP_REJECT] = {.mh_write = reject},   [TINYML_SMP_ERASE] = {.mh_write = erase},
};

#ifdef CONFIG_MCUMGR_SMP_SUPPORT_ORIGINAL_PROTOCOL
/* Clients of the first version of the protocol learn no more. */
static int translate(uint16_t error)
{
	ARG_UNUSED(error);
	return MGMT_ERR_EUNKNOWN;
}
#endif

static struct mgmt_group group = {
	.mg_handlers = handlers,
	.mg_handlers_count = ARRAY_SIZE(handlers),
	.mg_group_id = CONFIG_TINYML_SMP_GROUP_ID,
#ifdef CONFIG_MCUMGR_SMP_SUPPORT_ORIGINAL_PROTOCOL
	.mg_translate_error = translate,
#endif
#ifdef CONFIG_MCUMGR_GRP_ENUM_DETAILS_NAME
	.mg_group_name = "tinyml slots",
#endif
};

static void register_group(void)
{
	mgmt_register_group(&group);
}

MCUMGR_HANDLER_DEFINE(tinyml_slots, register_group);
