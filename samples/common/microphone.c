/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "microphone.h"

#include <stdio.h>

#include <zephyr/audio/dmic.h>

int microphone_start(const struct device *microphone, int rate, size_t block_bytes,
		     struct k_mem_slab *slab)
{
	struct pcm_stream_cfg stream = {
		.pcm_rate = (uint32_t)rate,
		.pcm_width = 16,
		.block_size = (uint16_t)block_bytes,
		.mem_slab = slab,
	};
	struct dmic_cfg config = {
		.io =
			{
				.min_pdm_clk_freq = 1000000,
				.max_pdm_clk_freq = 3500000,
				.min_pdm_clk_dc = 40,
				.max_pdm_clk_dc = 60,
			},
		.streams = &stream,
		.channel =
			{
				.req_num_streams = 1,
				.req_num_chan = 1,
				.req_chan_map_lo = dmic_build_channel_map(0, 0, PDM_CHAN_LEFT),
			},
	};
	int status;

	if (!device_is_ready(microphone)) {
		printf("%s is not ready\n", microphone->name);
		return -ENODEV;
	}
	status = dmic_configure(microphone, &config);
	if (status != 0 || config.channel.act_num_chan != 1) {
		printf("%s cannot take one channel of %d samples a second, which the model was "
		       "trained with (%d)\n",
		       microphone->name, rate, status);
		return status != 0 ? status : -EINVAL;
	}
	return dmic_trigger(microphone, DMIC_TRIGGER_START);
}
