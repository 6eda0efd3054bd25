/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/slot.h>

const char *tinyml_slot_error_text(int error)
{
	static const char *const texts[] = {
		[-TINYML_SLOT_OK] = "ok",
		[-TINYML_SLOT_EMPTY] = "the slot is empty",
		[-TINYML_SLOT_REGION] =
			"the slot is misaligned or too small, or its flash is not supported",
		[-TINYML_SLOT_MAGIC] = "not a model",
		[-TINYML_SLOT_BOUNDS] = "longer than the slot, or cut off",
		[-TINYML_SLOT_ADDRESS] = "linked for another address",
		[-TINYML_SLOT_DAMAGED] = "damaged: wrong checksum",
		[-TINYML_SLOT_HASH] = "damaged: wrong digest",
		[-TINYML_SLOT_UNSIGNED] = "not signed",
		[-TINYML_SLOT_SIGNATURE] = "signed with another key, or forged",
		[-TINYML_SLOT_FORMAT_NEW] =
			"another format: this firmware is older than the pack, or newer",
		[-TINYML_SLOT_ABI] = "made for another interface",
		[-TINYML_SLOT_CORE_TOO_SMALL] = "needs instructions that this core lacks",
		[-TINYML_SLOT_ARENA] = "needs a larger arena",
		[-TINYML_SLOT_STATE] = "needs more memory for its state",
		[-TINYML_SLOT_POINTER] = "points outside of itself",
		[-TINYML_SLOT_TOO_MANY] = "too many inputs and outputs",
		[-TINYML_SLOT_VERSION] = "not newer than the model in use",
		[-TINYML_SLOT_SELF_TEST] = "failed its self-test",
		[-TINYML_SLOT_REJECTED] = "rejected before",
		[-TINYML_SLOT_NONE] = "no model that may be used",
		[-TINYML_SLOT_FLASH] = "cannot write the flash",
		[-TINYML_SLOT_BUSY] = "the model in use is on trial: confirm or reject it first",
		[-TINYML_SLOT_ORDER] = "out of order",
		[-TINYML_SLOT_NO_CODE] = "this machine cannot run models from slots",
		[-TINYML_SLOT_OVERTAKEN] = "another update has begun since",
		[-TINYML_SLOT_KERNEL] = "needs a kernel that this firmware lacks",
		[-TINYML_SLOT_CALL] = "a call would leave its memory",
		[-TINYML_SLOT_WORK] = "more work than allowed",
		[-TINYML_SLOT_OLD] = "made for older kernels: pack the model again",
	};
	unsigned int index = error <= 0 ? (unsigned int)-error : sizeof(texts);

	return index < sizeof(texts) / sizeof(texts[0]) ? texts[index] : "unknown error";
}
