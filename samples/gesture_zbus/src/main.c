/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Gestures to text: a listener prints them. Add a listener for each thing that a gesture does. */

#include <stdio.h>

#include <zephyr/kernel.h>

#include "channels.h"

static const char *const names[] = GESTURE_LABELS;

static void print_gesture(const struct zbus_channel *channel)
{
	const struct gesture_message *message = zbus_chan_const_msg(channel);

	if (message->index < 0) {
		printf("the sensor has stopped: %u runs, %u lost, %u rests\n", message->runs,
		       sampling_lost(), sampling_rests());
		return;
	}
	printf("%u.%02u s: %s (%u %%)\n", message->samples / GESTURE_RATE_HZ,
	       message->samples % GESTURE_RATE_HZ * 100 / GESTURE_RATE_HZ, names[message->index],
	       message->percent);
}

ZBUS_LISTENER_DEFINE(printer, print_gesture);
ZBUS_CHAN_DEFINE(gesture_channel, struct gesture_message, NULL, NULL, ZBUS_OBSERVERS(printer),
		 ZBUS_MSG_INIT(0));

int main(void)
{
	printf("gesture_zbus: blocks of %d samples, %d a second\n", BLOCK_SAMPLES, GESTURE_RATE_HZ);
	return sampling_start() == 0 ? 0 : 1;
}
