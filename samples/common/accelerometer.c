/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "accelerometer.h"
#include "accelerometer_stream.h"

#include <errno.h>
#include <stdio.h>

#include <zephyr/drivers/sensor.h>

#include <tinyml/stream.h>

static struct acceleration memory[64];
static struct tinyml_ring ring = TINYML_RING(memory);
static const struct device *polled;
static K_SEM_DEFINE(arrived, 0, K_SEM_MAX_LIMIT);

void accelerometer_put(const struct acceleration *sample)
{
	if (tinyml_ring_put(&ring, sample, sizeof(*sample))) {
		k_sem_give(&arrived);
	}
}

/* The driver calls this for every sample. */
static void take_sample(const struct device *sensor, const struct sensor_trigger *trigger)
{
	struct sensor_value values[3];
	struct acceleration sample;

	ARG_UNUSED(trigger);
	if (sensor_sample_fetch(sensor) != 0 ||
	    sensor_channel_get(sensor, SENSOR_CHAN_ACCEL_XYZ, values) != 0) {
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		sample.xyz[i] = sensor_value_to_float(&values[i]);
	}
	accelerometer_put(&sample);
}

static void poll(struct k_work *work)
{
	ARG_UNUSED(work);
	take_sample(polled, NULL);
}

static K_WORK_DEFINE(poll_work, poll);

static void poll_is_due(struct k_timer *timer)
{
	ARG_UNUSED(timer);
	(void)k_work_submit(&poll_work);
}

static K_TIMER_DEFINE(poll_timer, poll_is_due, NULL);

int accelerometer_start(const struct device *sensor, int rate)
{
	static const struct sensor_trigger ready = {
		.type = SENSOR_TRIG_DATA_READY,
		.chan = SENSOR_CHAN_ACCEL_XYZ,
	};
	const struct sensor_value frequency = {.val1 = rate};

	if (!device_is_ready(sensor)) {
		printf("%s is not ready\n", sensor->name);
		return -ENODEV;
	}

	const int status = sensor_attr_set(sensor, SENSOR_CHAN_ACCEL_XYZ,
					   SENSOR_ATTR_SAMPLING_FREQUENCY, &frequency);

	if (status != 0 && status != -ENOSYS && status != -ENOTSUP) {
		printf("%s cannot take %d samples a second, which the model was trained with\n",
		       sensor->name, rate);
		return status;
	}
#ifdef CONFIG_GESTURE_STREAM
	accelerometer_stream_start(sensor, rate);
	return 0;
#endif
	if (sensor_trigger_set(sensor, &ready, take_sample) != 0) {
		const k_timeout_t period = K_USEC(USEC_PER_SEC / rate);

		polled = sensor; /* its driver announces nothing */
		k_timer_start(&poll_timer, period, period);
	}
	return 0;
}

bool accelerometer_read(struct acceleration *sample, k_timeout_t timeout)
{
	return k_sem_take(&arrived, timeout) == 0 &&
	       tinyml_ring_get(&ring, sample, sizeof(*sample)) == sizeof(*sample);
}

uint32_t accelerometer_lost(void)
{
	const uint32_t dropped = tinyml_ring_dropped(&ring) / (uint32_t)sizeof(struct acceleration);

#ifdef CONFIG_GESTURE_STREAM
	return dropped + accelerometer_stream_lost();
#else
	return dropped;
#endif
}
