/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Learns a gesture that the model was not trained with from three examples, and then recognises it
 * beside the others. Each class is the mean of embeddings: gesture_enroll(), gesture_nearest().
 */

#include <stdio.h>

#include <accelerometer.h>

#include <gesture.h>

#include "known.h"

#define SENSOR_NODE DT_ALIAS(accel0)
#define SILENCE     K_SECONDS(2) /* without a sample: the sensor has stopped */
#define WINDOW      64           /* samples that a run sees */
#define IN_A_ROW    3            /* runs with the same result */

/* When the person moves, in samples. */
#define FIRST    100
#define LENGTH   150
#define PERIOD   250
#define EXAMPLES 3

enum {
	CIRCLE,
	IDLE,
	SHAKE,
	WAVE,
	OWN,
	CLASSES,
};

static const char *const names[] = {"circle", "idle", "shake", "wave", "your gesture"};

BUILD_ASSERT(ARRAY_SIZE(names) == CLASSES && OWN == GESTURE_CLASSES, "the model has other classes");
BUILD_ASSERT(sizeof(known) == GESTURE_LEARNT_BYTES, "known.h belongs to another model: record.py");
BUILD_ASSERT(GESTURE_AXES == 3, "the model takes other samples than x, y and z");

/* Which example a sample is of, or -1. */
static int example_at(uint32_t sample)
{
	const uint32_t since = sample - FIRST;

	return sample >= FIRST && since / PERIOD < EXAMPLES && since % PERIOD <= LENGTH
		       ? (int)(since / PERIOD)
		       : -1;
}

/* A class that has been the nearest for some runs, once; -1 if there is none. */
static int decide(int nearest)
{
	static int last = -1, announced = IDLE;
	static uint32_t count;

	count = nearest == last ? count + 1 : 1;
	last = nearest;
	if (count < IN_A_ROW || nearest == announced) {
		return -1;
	}
	announced = nearest;
	return nearest == IDLE ? -1 : nearest;
}

int main(void)
{
	uint32_t samples = 0, runs = 0, learnt = 0;
	struct acceleration sample;

	if (gesture_restore(known, sizeof(known)) != 0) {
		printf("known.h belongs to another model: run record.py\n");
		return 1;
	}
	if (accelerometer_start(DEVICE_DT_GET(SENSOR_NODE), GESTURE_RATE_HZ) != 0) {
		return 1;
	}
	printf("gesture: %d samples a second, a run every %d\n", GESTURE_RATE_HZ,
	       GESTURE_RUN_SAMPLES);
	while (accelerometer_read(&sample, SILENCE)) {
		const int example = example_at(++samples);

		if (example >= 0 && (samples - FIRST) % PERIOD == 0) {
			printf("example %d: move now\n", example + 1);
		}
		if (samples == FIRST + EXAMPLES * PERIOD) {
			printf("learnt from %u runs\n", learnt);
		}
		if (gesture_feed(sample.xyz, 1, NULL) <= 0) {
			continue;
		}
		runs++;
		/* An example is what a whole window has seen of it. */
		if (example >= 0 && samples - FIRST >= (uint32_t)example * PERIOD + WINDOW) {
			learnt += gesture_enroll(OWN) == OWN ? 1 : 0;
		} else if (samples > FIRST + EXAMPLES * PERIOD) {
			const int found = decide(gesture_nearest(NULL));

			if (found >= 0) {
				printf("%u.%02u s: %s\n", samples / GESTURE_RATE_HZ,
				       samples % GESTURE_RATE_HZ * 100 / GESTURE_RATE_HZ,
				       names[found]);
			}
		}
	}
	printf("the sensor has stopped: %u samples, %u runs, %u lost\n", samples, runs,
	       accelerometer_lost());
	return 0;
}
