/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** What the parts of the application tell each other. None of them calls another. */

#ifndef GESTURE_ZBUS_CHANNELS_H_
#define GESTURE_ZBUS_CHANNELS_H_

#include <stdbool.h>
#include <stdint.h>

#include <zephyr/zbus/zbus.h>

#include <gesture.h>

#define BLOCK_SAMPLES GESTURE_RUN_SAMPLES /* one block, one run */

/** A block of samples, x, y and z in m/s^2. It stays as it is until sampling_release(). */
struct block_message {
	const float (*samples)[GESTURE_AXES];
	uint32_t end; /* samples up to and with its last one */
};

/** A gesture that was recognised, or the end. */
struct gesture_message {
	uint32_t samples; /* up to the last one that was used */
	uint32_t runs;
	int16_t index; /* of the class, or -1: the sensor has stopped */
	uint8_t percent;
};

/** Something that the sensor is asked to do. */
struct power_message {
	uint32_t rest_ms;
};

ZBUS_CHAN_DECLARE(block_channel, gesture_channel, power_channel);

/** Give a block back: its buffer is filled again. */
void sampling_release(const struct block_message *block);

/** Samples that were lost, because both buffers were full. */
uint32_t sampling_lost(void);

/** How often the sensor was suspended. */
uint32_t sampling_rests(void);

/** Begin. Returns 0, or a negative number after saying why not. */
int sampling_start(void);

#endif /* GESTURE_ZBUS_CHANNELS_H_ */
