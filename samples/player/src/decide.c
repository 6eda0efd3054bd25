/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "decide.h"

#include <stdio.h>

#include <tinyml/claim.h>
#include <tinyml/device_slots.h>

#include "digits.h"

/* Two rounds of the images. The first digit must be ahead of the second by 0.3 on average: usual
 * models reach 0.8 and more. */
static const struct tinyml_slot_limits limits = {.runs = 80, .margin = 77};

void decide_by_watch(void)
{
	const struct tinyml_model *model = &tinyml_slot_model.model;
	const struct tinyml_watch_scores *scores = &tinyml_slot_seen.counters.scores;

	for (unsigned int image = 0;; image = (image + 1u) % DIGITS) {
		uint32_t runs, margin;
		int verdict;

		/* The thread that receives packs opens models, too. */
		if (tinyml_claim(model, K_SECONDS(1)) != 0) {
			continue;
		}
		verdict = tinyml_slots_confirm_by_watch(&tinyml_device_slots, &tinyml_slot_seen,
							&limits);
		if (model->input_count > 0) {
			digits_show(model, image);
			(void)model->run();
		}
		runs = tinyml_slot_seen.counters.totals.runs;
		margin = runs > 0u ? scores->margin / runs : 0u;
		if (verdict == TINYML_SLOT_CONFIRMED) {
			printf("confirmed %s: margin %u of 256\n", model->name,
			       (unsigned int)margin);
		} else if (verdict == TINYML_SLOT_GIVEN_UP) {
			printf("gave up a model that was not sure enough; back to %s\n",
			       model->input_count > 0 ? model->name : "none");
		}
		tinyml_release(model);
		k_msleep(5);
	}
}
