/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/watch.h>

void tinyml_watch_part(const struct tinyml_watch *watch, const void *data, uint32_t first,
		       uint32_t count)
{
	const struct tinyml_watch_totals *const totals = watch->totals;
	struct tinyml_watch_values part = watch->inputs[0];

	if (part.stride == 0u || totals->runs + totals->errors >= watch->most_runs) {
		return;
	}
	part.elements = count;
	/* The elements of the whole whose number has the remainder of the run. */
	tinyml_watch_count(&part, data,
			   totals->runs % part.stride + part.stride - first % part.stride);
}
