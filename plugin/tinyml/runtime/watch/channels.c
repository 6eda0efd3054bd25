/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Counts the channels of an input, each with edges and a reference of its own. */

#include <tinyml/watch.h>

void tinyml_watch_channels(const struct tinyml_watch *watch, const void *data, uint32_t first,
			   uint32_t count)
{
	const struct tinyml_watch_values *const channels = &watch->inputs[watch->input_count];
	const struct tinyml_watch_totals *const totals = watch->totals;
	const uint32_t stride = channels->stride;

	if (totals->runs + totals->errors >= watch->most_runs) {
		return;
	}
	/* The elements of the whole whose number has the remainder of the run. */
	for (uint32_t i = (totals->runs % stride + stride - first % stride) % stride; i < count;
	     i += stride) {
		const struct tinyml_watch_values *const channel =
			&channels[(first + i) % watch->channel_count];
		const int32_t key = tinyml_watch_key(data, i, channel->type);
		uint32_t bin = 0;

		while (bin < TINYML_WATCH_BINS - 1u && key >= channel->edges[bin]) {
			bin++;
		}
		channel->bins[bin]++;
	}
}
