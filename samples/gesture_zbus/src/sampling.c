/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sensor to blocks: the driver's trigger fills one of two buffers while the inference thread reads
 * the other. A message on power_channel suspends the sensor for a while.
 */

#include <stdio.h>

#include <zephyr/device.h>
#include <zephyr/drivers/sensor.h>
#include <zephyr/kernel.h>
#include <zephyr/pm/device.h>
#include <zephyr/pm/device_runtime.h>

#include "channels.h"

#define SENSOR_NODE DT_ALIAS(accel0)

BUILD_ASSERT(GESTURE_AXES == 3, "the model takes other samples than x, y and z");
BUILD_ASSERT(DT_PROP_OR(SENSOR_NODE, sampling_frequency, GESTURE_RATE_HZ) == GESTURE_RATE_HZ,
	     "the model was trained with another sampling rate than the sensor has");

static const struct device *const sensor = DEVICE_DT_GET(SENSOR_NODE);
static float buffers[2][BLOCK_SAMPLES][GESTURE_AXES];
static atomic_t in_use[2];   /* by the inference thread */
static atomic_t resting;     /* samples that still arrive are dropped */
static unsigned int filling; /* the buffer of the trigger */
static unsigned int filled;  /* samples in it */
static uint32_t taken;
static atomic_t lost;
static uint32_t rests;

static void publish(void)
{
	const struct block_message message = {.samples = buffers[filling], .end = taken};

	(void)atomic_set(&in_use[filling], 1);
	if (zbus_chan_pub(&block_channel, &message, K_NO_WAIT) != 0) {
		(void)atomic_set(&in_use[filling], 0);
		(void)atomic_add(&lost, BLOCK_SAMPLES);
		return;
	}
	filling = 1 - filling;
}

/* The driver calls this for every sample, from one thread. */
static void take_sample(const struct device *dev, const struct sensor_trigger *trigger)
{
	struct sensor_value values[GESTURE_AXES];

	ARG_UNUSED(trigger);
	if (sensor_sample_fetch(dev) != 0 ||
	    sensor_channel_get(dev, SENSOR_CHAN_ACCEL_XYZ, values) != 0) {
		return;
	}
	if (atomic_get(&resting) != 0) {
		filled = 0; /* samples before and after a rest do not belong together */
		return;
	}
	taken++;
	if (filled == 0 && atomic_get(&in_use[filling]) != 0) {
		(void)atomic_inc(&lost); /* the thread still reads it */
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		buffers[filling][filled][i] = sensor_value_to_float(&values[i]);
	}
	if (++filled == BLOCK_SAMPLES) {
		filled = 0;
		publish();
	}
}

void sampling_release(const struct block_message *block)
{
	(void)atomic_set(&in_use[block->samples == buffers[1] ? 1 : 0], 0);
}

uint32_t sampling_lost(void)
{
	return (uint32_t)atomic_get(&lost);
}

uint32_t sampling_rests(void)
{
	return rests;
}

static void wake(struct k_work *work)
{
	ARG_UNUSED(work);
	filled = 0;
	(void)atomic_set(&resting, 0);
	if (pm_device_runtime_get(sensor) != 0) {
		printf("%s does not resume\n", sensor->name);
	}
}

static K_WORK_DELAYABLE_DEFINE(wake_work, wake);

/* A listener of power_channel: runs in the thread that publishes. */
static void rest(const struct zbus_channel *channel)
{
	const struct power_message *message = zbus_chan_const_msg(channel);
	enum pm_device_state state;

	(void)atomic_set(&resting, 1);
	if (pm_device_runtime_put(sensor) != 0) {
		printf("%s does not suspend\n", sensor->name);
	}
	if (pm_device_state_get(sensor, &state) == 0 && state == PM_DEVICE_STATE_SUSPENDED) {
		rests++;
	}
	(void)k_work_schedule(&wake_work, K_MSEC(message->rest_ms));
}

ZBUS_LISTENER_DEFINE(sensor_power, rest);
ZBUS_CHAN_DEFINE(power_channel, struct power_message, NULL, NULL, ZBUS_OBSERVERS(sensor_power),
		 ZBUS_MSG_INIT(0));

int sampling_start(void)
{
	static const struct sensor_trigger ready = {
		.type = SENSOR_TRIG_DATA_READY,
		.chan = SENSOR_CHAN_ACCEL_XYZ,
	};
	const struct sensor_value frequency = {.val1 = GESTURE_RATE_HZ};

	if (!device_is_ready(sensor)) {
		printf("%s is not ready\n", sensor->name);
		return -ENODEV;
	}
	if (pm_device_runtime_enable(sensor) != 0) {
		printf("%s stays on: its driver cannot suspend it\n", sensor->name);
	}
	int status = pm_device_runtime_get(sensor);

	if (status == 0) {
		status = sensor_attr_set(sensor, SENSOR_CHAN_ACCEL_XYZ,
					 SENSOR_ATTR_SAMPLING_FREQUENCY, &frequency);
	}
	if (status == 0 || status == -ENOSYS || status == -ENOTSUP) {
		status = sensor_trigger_set(sensor, &ready, take_sample);
	}
	if (status != 0) {
		printf("%s cannot announce %d samples a second (%d)\n", sensor->name,
		       GESTURE_RATE_HZ, status);
	}
	return status;
}
