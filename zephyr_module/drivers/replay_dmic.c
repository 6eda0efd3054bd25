/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A digital microphone that replays a recording, block by block, in real time. */

#define DT_DRV_COMPAT tinyml_replay_dmic

#include <errno.h>
#include <string.h>

#include <zephyr/audio/dmic.h>
#include <zephyr/device.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/util.h>

#include "replay_adpcm.h"

#define MOST_BLOCKS 8 /* that wait to be read */

struct replay_dmic_config {
	const int16_t *recording;
	const uint32_t *samples;
	const uint32_t *block_samples; /* of IMA ADPCM; 0: samples as they are */
	uint32_t rate;
};

struct replay_dmic_data {
	const struct device *dev;
	struct k_timer timer;
	struct k_msgq blocks; /* of pointers */
	void *waiting[MOST_BLOCKS];
	struct k_mem_slab *slab;
	uint32_t block_samples;
	uint32_t played; /* samples */
	struct replay_adpcm adpcm;
	enum dmic_state state;
};

/* The next block of samples; NULL: it is lost. */
static void replay_dmic_play(struct replay_dmic_data *data, int16_t *block)
{
	const struct replay_dmic_config *config = data->dev->config;

	if (*config->block_samples != 0) {
		for (uint32_t i = 0; i < data->block_samples; i++) {
			const int16_t sample = replay_adpcm_next(&data->adpcm);

			if (block != NULL) {
				block[i] = sample;
			}
		}
	} else if (block != NULL) {
		memcpy(block, &config->recording[data->played],
		       data->block_samples * sizeof(int16_t));
	}
	data->played += data->block_samples;
}

static void replay_dmic_recorded(struct k_timer *timer)
{
	struct replay_dmic_data *data = CONTAINER_OF(timer, struct replay_dmic_data, timer);
	const struct replay_dmic_config *config = data->dev->config;
	void *block;

	if (*config->samples - data->played < data->block_samples) {
		k_timer_stop(timer);
		return;
	}
	if (k_mem_slab_alloc(data->slab, &block, K_NO_WAIT) != 0) {
		replay_dmic_play(data, NULL); /* as with a real microphone */
		data->state = DMIC_STATE_ERROR;
		k_timer_stop(timer);
		return;
	}
	replay_dmic_play(data, block);
	if (k_msgq_put(&data->blocks, &block, K_NO_WAIT) != 0) {
		k_mem_slab_free(data->slab, block);
		data->state = DMIC_STATE_ERROR;
		k_timer_stop(timer);
	}
}

static int replay_dmic_configure(const struct device *dev, struct dmic_cfg *wanted)
{
	const struct replay_dmic_config *config = dev->config;
	const struct pcm_stream_cfg *stream = &wanted->streams[0];
	struct replay_dmic_data *data = dev->data;

	if (data->state == DMIC_STATE_ACTIVE) {
		return -EBUSY;
	}
	if (wanted->channel.req_num_streams != 1 || wanted->channel.req_num_chan != 1 ||
	    stream->pcm_rate != config->rate || stream->pcm_width != 16 ||
	    stream->block_size < sizeof(int16_t) || stream->mem_slab == NULL) {
		return -EINVAL;
	}
	wanted->channel.act_num_streams = 1;
	wanted->channel.act_num_chan = 1;
	wanted->channel.act_chan_map_lo = wanted->channel.req_chan_map_lo;
	wanted->channel.act_chan_map_hi = 0;
	data->slab = stream->mem_slab;
	data->block_samples = stream->block_size / sizeof(int16_t);
	data->state = DMIC_STATE_CONFIGURED;
	return 0;
}

static void replay_dmic_forget(struct replay_dmic_data *data)
{
	void *block;

	while (k_msgq_get(&data->blocks, &block, K_NO_WAIT) == 0) {
		k_mem_slab_free(data->slab, block);
	}
}

static int replay_dmic_trigger(const struct device *dev, enum dmic_trigger command)
{
	const struct replay_dmic_config *config = dev->config;
	struct replay_dmic_data *data = dev->data;

	if (data->slab == NULL) {
		return -EIO; /* not configured */
	}
	switch (command) {
	case DMIC_TRIGGER_START:
	case DMIC_TRIGGER_RELEASE: {
		const k_timeout_t period =
			K_USEC((uint64_t)data->block_samples * USEC_PER_SEC / config->rate);

		if (data->state != DMIC_STATE_ACTIVE) {
			data->state = DMIC_STATE_ACTIVE;
			k_timer_start(&data->timer, period, period);
		}
		return 0;
	}
	case DMIC_TRIGGER_STOP:
	case DMIC_TRIGGER_PAUSE:
	case DMIC_TRIGGER_RESET:
		k_timer_stop(&data->timer);
		if (command != DMIC_TRIGGER_PAUSE) {
			replay_dmic_forget(data);
		}
		data->state = DMIC_STATE_CONFIGURED;
		return 0;
	default:
		return -EINVAL;
	}
}

static int replay_dmic_read(const struct device *dev, uint8_t stream, void **buffer, size_t *size,
			    int32_t timeout)
{
	struct replay_dmic_data *data = dev->data;

	if (stream != 0 || data->slab == NULL) {
		return -EINVAL;
	}
	if (data->state == DMIC_STATE_ERROR && k_msgq_num_used_get(&data->blocks) == 0) {
		return -EIO;
	}
	*size = data->block_samples * sizeof(int16_t);

	const int status = k_msgq_get(&data->blocks, buffer, SYS_TIMEOUT_MS(timeout));

	return status == -ENOMSG ? -EAGAIN : status;
}

static const struct _dmic_ops replay_dmic_api = {
	.configure = replay_dmic_configure,
	.trigger = replay_dmic_trigger,
	.read = replay_dmic_read,
};

static int replay_dmic_init(const struct device *dev)
{
	const struct replay_dmic_config *config = dev->config;
	struct replay_dmic_data *data = dev->data;

	data->dev = dev;
	data->adpcm.words = config->recording;
	data->adpcm.codes = *config->block_samples;
	data->state = DMIC_STATE_INITIALIZED;
	k_timer_init(&data->timer, replay_dmic_recorded, NULL);
	k_msgq_init(&data->blocks, (char *)data->waiting, sizeof(void *), MOST_BLOCKS);
	return 0;
}

#define RECORDING(inst)         UTIL_CAT(tinyml_recording_, DT_NODE_FULL_NAME_TOKEN(DT_DRV_INST(inst)))
#define RECORDING_SAMPLES(inst) UTIL_CAT(RECORDING(inst), _samples)
#define RECORDING_BLOCK(inst)   UTIL_CAT(RECORDING(inst), _block_samples)

#define REPLAY_DMIC(inst)                                                                          \
	extern const int16_t RECORDING(inst)[];                                                    \
	extern const uint32_t RECORDING_SAMPLES(inst);                                             \
	extern const uint32_t RECORDING_BLOCK(inst);                                               \
	static struct replay_dmic_data replay_dmic_data_##inst;                                    \
	static const struct replay_dmic_config replay_dmic_config_##inst = {                       \
		.recording = RECORDING(inst),                                                      \
		.samples = &RECORDING_SAMPLES(inst),                                               \
		.block_samples = &RECORDING_BLOCK(inst),                                           \
		.rate = DT_INST_PROP(inst, sampling_frequency),                                    \
	};                                                                                         \
	DEVICE_DT_INST_DEFINE(inst, replay_dmic_init, NULL, &replay_dmic_data_##inst,              \
			      &replay_dmic_config_##inst, POST_KERNEL,                             \
			      CONFIG_AUDIO_DMIC_INIT_PRIORITY, &replay_dmic_api);

DT_INST_FOREACH_STATUS_OKAY(REPLAY_DMIC)
