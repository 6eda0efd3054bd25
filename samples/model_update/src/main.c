/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Firmware without a model: it takes one while it runs, then a better one.
 *
 * By default, the firmware acts as both sides, and prints what happens. With host.conf
 * it waits for packs on its console: `tinyml deploy digits_1.tmodel --serial PORT`; with smp.conf
 * of the sample player it waits for them on a transport of MCUmgr.
 */

#include <stdio.h>

#include <tinyml/claim.h>
#include <tinyml/device_slots.h>

#if !defined(CONFIG_TINYML_HOST) && !defined(CONFIG_TINYML_SMP)
#include "story.h"
#endif

int main(void)
{
#if defined(CONFIG_TINYML_HOST) || defined(CONFIG_TINYML_SMP)
	int error;

	/* The thread that receives packs opens models, too. */
	tinyml_claim(&tinyml_slot_model.model, K_FOREVER);
	error = tinyml_slots_open(&tinyml_device_slots, &tinyml_slot_model);
	printf("model: %s\n",
	       error == 0 ? tinyml_slot_model.model.name : tinyml_slot_error_text(error));
	tinyml_release(&tinyml_slot_model.model);
#else
	int wrong = tell_story();

	printf("%s\n", wrong == 0 ? "PASS" : "FAIL");
#endif
	return 0;
}
