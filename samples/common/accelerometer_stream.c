/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The samples of an accelerometer whose driver streams them from its FIFO. A thread waits for
 * batches and decodes them, so that the core sleeps while a batch fills up. */

#include "accelerometer_stream.h"

#include <stdio.h>

#include <zephyr/drivers/sensor.h>
#include <zephyr/rtio/rtio.h>

#define SENSOR_NODE DT_ALIAS(accel0)
#define BLOCK_BYTES 64
#define BLOCKS      16

SENSOR_DT_STREAM_IODEV(stream, SENSOR_NODE,
		       {SENSOR_TRIG_FIFO_WATERMARK, SENSOR_STREAM_DATA_INCLUDE});
RTIO_DEFINE_WITH_MEMPOOL(context, 2, 4, BLOCKS, BLOCK_BYTES, sizeof(void *));

static uint32_t period_ns;
static uint64_t next_ns; /* when the next sample is measured if none is lost */
static uint32_t lost;

/* Samples that are missing before this one, because the driver had no buffer for them. */
static void count_lost(uint64_t measured_ns)
{
	if (next_ns != 0 && measured_ns > next_ns) {
		lost += (uint32_t)((measured_ns - next_ns + period_ns / 2) / period_ns);
	}
	next_ns = measured_ns + period_ns;
}

static void take_batch(const struct sensor_decoder_api *decoder, const uint8_t *buffer)
{
	const struct sensor_chan_spec channel = {SENSOR_CHAN_ACCEL_XYZ, 0};
	struct sensor_three_axis_data data;
	struct acceleration sample;
	uint32_t at = 0;

	while (decoder->decode(buffer, channel, &at, 1, &data) > 0) {
		for (size_t i = 0; i < ARRAY_SIZE(sample.xyz); i++) {
			sample.xyz[i] =
				(float)data.readings[0].values[i] / (float)BIT64(31 - data.shift);
		}
		count_lost(data.header.base_timestamp_ns + data.readings[0].timestamp_delta);
		accelerometer_put(&sample);
	}
}

static void take_batches(void *sensor, void *unused, void *also_unused)
{
	const struct sensor_decoder_api *decoder;
	struct rtio_sqe *handle;

	ARG_UNUSED(unused);
	ARG_UNUSED(also_unused);
	if (sensor_get_decoder(sensor, &decoder) != 0 ||
	    sensor_stream(&stream, &context, NULL, &handle) != 0) {
		printf("the sensor's driver cannot stream\n");
		return;
	}
	for (;;) {
		struct rtio_cqe *done = rtio_cqe_consume_block(&context);
		const int result = done->result;
		uint8_t *buffer = NULL;
		uint32_t bytes = 0;
		const int status = rtio_cqe_get_mempool_buffer(&context, done, &buffer, &bytes);

		rtio_cqe_release(&context, done);
		if (result < 0 || status != 0) {
			printf("the sensor's stream has ended (%d)\n", result);
			return;
		}
		take_batch(decoder, buffer);
		rtio_release_buffer(&context, buffer, bytes);
	}
}

static K_THREAD_STACK_DEFINE(stack, 2048);
static struct k_thread thread;

void accelerometer_stream_start(const struct device *sensor, int rate)
{
	period_ns = NSEC_PER_SEC / (uint32_t)rate;
	(void)k_thread_create(&thread, stack, K_THREAD_STACK_SIZEOF(stack), take_batches,
			      (void *)sensor, NULL, NULL, K_PRIO_COOP(1), 0, K_NO_WAIT);
}

uint32_t accelerometer_stream_lost(void)
{
	return lost;
}
