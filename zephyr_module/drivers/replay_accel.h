/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The two ways to read the accelerometer that replays a recording: sample by sample
 * (replay_accel.c), and from its FIFO (replay_accel_stream.c). */

#ifndef TINYML_REPLAY_ACCEL_H_
#define TINYML_REPLAY_ACCEL_H_

#include <zephyr/device.h>
#include <zephyr/drivers/sensor.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/util.h>

#define REPLAY_ACCEL_AXES 3

struct replay_accel_config {
	const int16_t *recording; /* x, y, z in mm/s^2 */
	const uint32_t *samples;
	uint32_t rate; /* a second */
};

struct replay_accel_data {
	const struct device *dev;
	struct k_timer timer;
	struct k_work work;
	sensor_trigger_handler_t handler;
	const struct sensor_trigger *trigger;
	struct rtio_iodev_sqe *request; /* of a stream, for the next batch */
	uint32_t due;                   /* samples that have been measured */
	uint32_t played;                /* samples of these that have been announced */
	int16_t fetched[REPLAY_ACCEL_AXES];
	bool started;
};

/** Begin to replay, if it has not begun. */
void replay_accel_start(const struct device *dev);

/** Give the samples that are due to the stream, if there is one. */
void replay_accel_stream(struct replay_accel_data *data);

void replay_accel_submit(const struct device *dev, struct rtio_iodev_sqe *request);
int replay_accel_get_decoder(const struct device *dev, const struct sensor_decoder_api **decoder);

#endif /* TINYML_REPLAY_ACCEL_H_ */
