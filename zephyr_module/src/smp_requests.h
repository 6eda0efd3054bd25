/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Models in slots over MCUmgr's protocol (SMP): requests and answers are CBOR maps. docs/smp.md
 * describes them. Needs zcbor, and nothing else of Zephyr.
 */

#ifndef TINYML_SMP_REQUESTS_H_
#define TINYML_SMP_REQUESTS_H_

#include <tinyml/slot_receiver.h>
#include <zcbor_common.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tinyml_smp_command {
	TINYML_SMP_STATE,   /* read; the others write */
	TINYML_SMP_UPLOAD,  /* "len" begins or resumes; "off" and "data" go on */
	TINYML_SMP_TEST,    /* check the image, and try the model */
	TINYML_SMP_CONFIRM, /* keep it */
	TINYML_SMP_REJECT,  /* go back */
	TINYML_SMP_ERASE,   /* the slot that is free */
	TINYML_SMP_COMMANDS,
};

/** What is no error of slots: the request cannot be read, or the answer has no room. */
#define TINYML_SMP_MALFORMED 1
#define TINYML_SMP_TOO_LONG  2

/**
 * Execute a request. @a out is inside the map of the answer.
 *
 * @return 0, one of the above, or one of tinyml_slot_error; then nothing was written to @a out.
 */
int tinyml_smp_request(struct tinyml_receiver *receiver, enum tinyml_smp_command command,
		       zcbor_state_t *in, zcbor_state_t *out);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_SMP_REQUESTS_H_ */
