/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A camera that replays pictures, in real time. A picture without a buffer is lost. */

#define DT_DRV_COMPAT tinyml_replay_camera

#include <errno.h>
#include <string.h>

#include <zephyr/device.h>
#include <zephyr/drivers/video.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/util.h>

struct replay_camera_config {
	const uint8_t *recording;
	const uint32_t *pictures;
	struct video_format_cap formats[2]; /* the second one ends the list */
	uint32_t rate;                      /* pictures a second */
};

struct replay_camera_data {
	const struct device *dev;
	struct k_timer timer;
	struct k_work work;
	struct k_fifo empty;
	struct k_fifo full;
	uint32_t due;    /* pictures that the lens has seen */
	uint32_t played; /* of these, given away or lost */
};

static size_t replay_camera_bytes(const struct device *dev)
{
	const struct replay_camera_config *config = dev->config;

	return (size_t)config->formats[0].width_min * config->formats[0].height_min;
}

static void replay_camera_work(struct k_work *work)
{
	struct replay_camera_data *data = CONTAINER_OF(work, struct replay_camera_data, work);
	const struct replay_camera_config *config = data->dev->config;
	const size_t bytes = replay_camera_bytes(data->dev);

	for (; data->played < data->due; data->played++) {
		struct video_buffer *buffer = k_fifo_get(&data->empty, K_NO_WAIT);

		if (buffer == NULL) {
			continue;
		}
		memcpy(buffer->buffer, config->recording + data->played * bytes, bytes);
		buffer->bytesused = bytes;
		buffer->timestamp = k_uptime_get_32();
		buffer->line_offset = 0;
		k_fifo_put(&data->full, buffer);
	}
}

static void replay_camera_exposed(struct k_timer *timer)
{
	struct replay_camera_data *data = CONTAINER_OF(timer, struct replay_camera_data, timer);
	const struct replay_camera_config *config = data->dev->config;

	if (++data->due == *config->pictures) {
		k_timer_stop(timer);
	}
	(void)k_work_submit(&data->work);
}

static int replay_camera_get_format(const struct device *dev, struct video_format *format)
{
	const struct replay_camera_config *config = dev->config;

	format->pixelformat = config->formats[0].pixelformat;
	format->width = config->formats[0].width_min;
	format->height = config->formats[0].height_min;
	format->pitch = config->formats[0].width_min;
	format->size = replay_camera_bytes(dev);
	return 0;
}

static int replay_camera_set_format(const struct device *dev, struct video_format *format)
{
	const struct replay_camera_config *config = dev->config;

	if (format->pixelformat != config->formats[0].pixelformat ||
	    format->width != config->formats[0].width_min ||
	    format->height != config->formats[0].height_min) {
		return -ENOTSUP;
	}
	return replay_camera_get_format(dev, format);
}

static int replay_camera_get_caps(const struct device *dev, struct video_caps *caps)
{
	const struct replay_camera_config *config = dev->config;

	caps->format_caps = config->formats;
	caps->min_vbuf_count = 1;
	return 0;
}

static int replay_camera_get_frmival(const struct device *dev, struct video_frmival *interval)
{
	const struct replay_camera_config *config = dev->config;

	interval->numerator = 1;
	interval->denominator = config->rate;
	return 0;
}

static int replay_camera_set_frmival(const struct device *dev, struct video_frmival *interval)
{
	/* As cameras do: the nearest interval, which is the only one. */
	return replay_camera_get_frmival(dev, interval);
}

static int replay_camera_set_stream(const struct device *dev, bool enable, enum video_buf_type type)
{
	const struct replay_camera_config *config = dev->config;
	struct replay_camera_data *data = dev->data;
	const k_timeout_t period = K_USEC(USEC_PER_SEC / config->rate);

	ARG_UNUSED(type);
	if (!enable) {
		k_timer_stop(&data->timer);
	} else if (data->due < *config->pictures) {
		k_timer_start(&data->timer, period, period);
	}
	return 0;
}

static int replay_camera_enqueue(const struct device *dev, struct video_buffer *buffer)
{
	struct replay_camera_data *data = dev->data;

	if (buffer->size < replay_camera_bytes(dev)) {
		return -EINVAL;
	}
	k_fifo_put(&data->empty, buffer);
	return 0;
}

static int replay_camera_dequeue(const struct device *dev, struct video_buffer **buffer,
				 k_timeout_t timeout)
{
	struct replay_camera_data *data = dev->data;

	*buffer = k_fifo_get(&data->full, timeout);
	return *buffer == NULL ? -EAGAIN : 0;
}

static int replay_camera_flush(const struct device *dev, bool cancel)
{
	struct replay_camera_data *data = dev->data;
	struct video_buffer *buffer;

	if (!cancel) {
		return -ENOTSUP; /* it would wait for ever after the last picture */
	}
	while ((buffer = k_fifo_get(&data->empty, K_NO_WAIT)) != NULL) {
		buffer->bytesused = 0;
		k_fifo_put(&data->full, buffer);
	}
	return 0;
}

static DEVICE_API(video, replay_camera_api) = {
	.set_format = replay_camera_set_format,
	.get_format = replay_camera_get_format,
	.set_stream = replay_camera_set_stream,
	.get_caps = replay_camera_get_caps,
	.enqueue = replay_camera_enqueue,
	.dequeue = replay_camera_dequeue,
	.flush = replay_camera_flush,
	.set_frmival = replay_camera_set_frmival,
	.get_frmival = replay_camera_get_frmival,
};

static int replay_camera_init(const struct device *dev)
{
	struct replay_camera_data *data = dev->data;

	data->dev = dev;
	k_timer_init(&data->timer, replay_camera_exposed, NULL);
	k_work_init(&data->work, replay_camera_work);
	k_fifo_init(&data->empty);
	k_fifo_init(&data->full);
	return 0;
}

#define RECORDING(inst)         UTIL_CAT(tinyml_recording_, DT_NODE_FULL_NAME_TOKEN(DT_DRV_INST(inst)))
#define RECORDING_SAMPLES(inst) UTIL_CAT(RECORDING(inst), _samples)

#define REPLAY_CAMERA(inst)                                                                        \
	extern const uint8_t RECORDING(inst)[];                                                    \
	extern const uint32_t RECORDING_SAMPLES(inst);                                             \
	static struct replay_camera_data replay_camera_data_##inst;                                \
	static const struct replay_camera_config replay_camera_config_##inst = {                   \
		.recording = RECORDING(inst),                                                      \
		.pictures = &RECORDING_SAMPLES(inst),                                              \
		.formats = {{                                                                      \
			.pixelformat = VIDEO_PIX_FMT_GREY,                                         \
			.width_min = DT_INST_PROP(inst, width),                                    \
			.width_max = DT_INST_PROP(inst, width),                                    \
			.height_min = DT_INST_PROP(inst, height),                                  \
			.height_max = DT_INST_PROP(inst, height),                                  \
		}},                                                                                \
		.rate = DT_INST_PROP(inst, frame_rate),                                            \
	};                                                                                         \
	DEVICE_DT_INST_DEFINE(inst, replay_camera_init, NULL, &replay_camera_data_##inst,          \
			      &replay_camera_config_##inst, POST_KERNEL,                           \
			      CONFIG_VIDEO_INIT_PRIORITY, &replay_camera_api);

DT_INST_FOREACH_STATUS_OKAY(REPLAY_CAMERA)
