/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Average pools: their structure has no pointers, so records are this structure. */

#include <tinyml/play_records.h>
#include <tinyml/pool.h>

#include "window.h"

void tinyml_play_average_pool_s8(const struct tinyml_play *play)
{
	tinyml_average_pool_s8(play->record, play->operand[0], play->operand[1]);
}

uint32_t tinyml_check_average_pool_s8(struct tinyml_check *check)
{
	const struct tinyml_pool_s8 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t outputs = tinyml_check_window_s8(check, w);

	if (check->wrong) {
		return 0;
	}
	/* taps outside of the input are left out */
	tinyml_check_that(check, w->in_c == w->out_c && w->in_c % 8 == 0 &&
					 tinyml_check_taps(w) <= 255u && r->shift >= 0 &&
					 r->shift < 32);
	return tinyml_check_times(outputs, tinyml_check_taps(w) + 1u);
}
