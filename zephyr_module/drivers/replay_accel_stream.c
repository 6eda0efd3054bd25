/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The FIFO of the accelerometer that replays a recording: samples by the batch, as sensor_stream()
 * and its decoder give them. */

#define DT_DRV_COMPAT tinyml_replay_accel

#include "replay_accel.h"

#include <errno.h>
#include <string.h>

#include <zephyr/rtio/rtio.h>

#define BATCH 8 /* samples at which the FIFO announces itself */
#define SHIFT 6 /* values are below 64 m/s^2 */

/* What a buffer has. */
struct batch {
	uint64_t measured_ns; /* its first sample */
	uint32_t period_ns;
	uint16_t count;
	int16_t values[BATCH][REPLAY_ACCEL_AXES]; /* mm/s^2 */
};

void replay_accel_submit(const struct device *dev, struct rtio_iodev_sqe *request)
{
	const struct sensor_read_config *wanted = request->sqe.iodev->data;
	struct replay_accel_data *data = dev->data;

	if (!wanted->is_streaming || wanted->count == 0 ||
	    wanted->triggers[0].trigger != SENSOR_TRIG_FIFO_WATERMARK) {
		rtio_iodev_sqe_err(request, -ENOTSUP);
		return;
	}
	data->request = request;
	replay_accel_start(dev);
}

/* Give away what is in the FIFO. Without a buffer, its samples are lost, as those of a FIFO that
 * nobody reads. */
static void flush(struct replay_accel_data *data, uint16_t count)
{
	const struct replay_accel_config *config = data->dev->config;
	struct rtio_iodev_sqe *request = data->request;
	const uint32_t first = data->played;
	struct batch *batch;
	uint8_t *buffer;
	uint32_t bytes;

	data->played += count;
	if (rtio_sqe_rx_buf(request, sizeof(*batch), sizeof(*batch), &buffer, &bytes) != 0) {
		return;
	}
	batch = (struct batch *)buffer;
	batch->period_ns = NSEC_PER_SEC / config->rate;
	batch->measured_ns = (uint64_t)first * batch->period_ns;
	batch->count = count;
	memcpy(batch->values, &config->recording[first * REPLAY_ACCEL_AXES],
	       count * sizeof(batch->values[0]));
	data->request = NULL; /* the stream asks again, inside this call */
	rtio_iodev_sqe_ok(request, 0);
}

void replay_accel_stream(struct replay_accel_data *data)
{
	const struct replay_accel_config *config = data->dev->config;

	while (data->request != NULL) {
		const uint32_t waiting = data->due - data->played;

		if (waiting == 0 || (waiting < BATCH && data->due < *config->samples)) {
			return;
		}
		flush(data, (uint16_t)MIN(waiting, BATCH));
	}
}

static int frame_count(const uint8_t *buffer, struct sensor_chan_spec channel, uint16_t *count)
{
	if (channel.chan_type != SENSOR_CHAN_ACCEL_XYZ || channel.chan_idx != 0) {
		return -ENOTSUP;
	}
	*count = ((const struct batch *)buffer)->count;
	return 0;
}

static int size_info(struct sensor_chan_spec channel, size_t *base, size_t *frame)
{
	if (channel.chan_type != SENSOR_CHAN_ACCEL_XYZ) {
		return -ENOTSUP;
	}
	*base = sizeof(struct sensor_three_axis_data);
	*frame = sizeof(struct sensor_three_axis_sample_data);
	return 0;
}

static int decode(const uint8_t *buffer, struct sensor_chan_spec channel, uint32_t *at,
		  uint16_t most, void *out)
{
	const struct batch *batch = (const struct batch *)buffer;
	struct sensor_three_axis_data *data = out;
	uint16_t count = 0;

	if (channel.chan_type != SENSOR_CHAN_ACCEL_XYZ || channel.chan_idx != 0) {
		return -ENOTSUP;
	}
	data->header.base_timestamp_ns = batch->measured_ns;
	data->shift = SHIFT;
	for (; count < most && *at < batch->count; count++, (*at)++) {
		data->readings[count].timestamp_delta = *at * batch->period_ns;
		for (size_t i = 0; i < REPLAY_ACCEL_AXES; i++) {
			data->readings[count].values[i] =
				(q31_t)((int64_t)batch->values[*at][i] * BIT(31 - SHIFT) / 1000);
		}
	}
	data->header.reading_count = count;
	return count;
}

static bool has_trigger(const uint8_t *buffer, enum sensor_trigger_type trigger)
{
	ARG_UNUSED(buffer);
	return trigger == SENSOR_TRIG_FIFO_WATERMARK;
}

SENSOR_DECODER_API_DT_DEFINE() = {
	.get_frame_count = frame_count,
	.get_size_info = size_info,
	.decode = decode,
	.has_trigger = has_trigger,
};

int replay_accel_get_decoder(const struct device *dev, const struct sensor_decoder_api **decoder)
{
	ARG_UNUSED(dev);
	*decoder = &SENSOR_DECODER_NAME();
	return 0;
}
