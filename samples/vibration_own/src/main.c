/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Learns how this motor vibrates when it is healthy, and then notices when it does not: the model
 * was trained with other motors, whose threshold does not fit.
 */

#include <stdio.h>

#include <accelerometer.h>

#include <vibration.h>

#define SENSOR_NODE   DT_ALIAS(accel0)
#define SILENCE       K_SECONDS(2) /* without a sample: the sensor has stopped */
#define LEARN_SAMPLES (4 * VIBRATION_RATE_HZ)
#define IN_A_ROW      2    /* runs that are needed for a decision */
#define TRAINED       0.5f /* the threshold of the training */

BUILD_ASSERT(VIBRATION_AXES == 3, "the model takes other samples than x, y and z");

/* Whether the state has changed. */
static bool changes(bool *unusual, bool found)
{
	static uint32_t count;

	count = found != *unusual ? count + 1 : 0;
	if (count < IN_A_ROW) {
		return false;
	}
	count = 0;
	*unusual = !*unusual;
	return true;
}

int main(void)
{
	uint32_t samples = 0, runs = 0, learnt = 0, alarms = 0;
	bool unusual = false;
	struct acceleration sample;

	if (accelerometer_start(DEVICE_DT_GET(SENSOR_NODE), VIBRATION_RATE_HZ) != 0) {
		return 1;
	}
	printf("vibration: %d samples a second, a run every %d\n", VIBRATION_RATE_HZ,
	       VIBRATION_RUN_SAMPLES);
	while (accelerometer_read(&sample, SILENCE)) {
		if (samples++ == LEARN_SAMPLES) {
			printf("learnt from %u runs of this motor; the threshold of the training "
			       "calls %u of them unusual\n",
			       learnt, alarms);
		}
		if (vibration_feed(sample.xyz, 1, NULL) <= 0) {
			continue;
		}
		runs++;
		if (samples <= LEARN_SAMPLES) {
			alarms += *vibration_output() > TRAINED ? 1 : 0;
			learnt += vibration_learn() == 0 ? 1 : 0;
		} else if (changes(&unusual, vibration_unusual(NULL) == 1)) {
			printf("%u.%02u s: %s\n", samples / VIBRATION_RATE_HZ,
			       samples % VIBRATION_RATE_HZ * 100 / VIBRATION_RATE_HZ,
			       unusual ? "vibrates in another way" : "as usual again");
		}
	}
	printf("the sensor has stopped: %u samples, %u runs, %u lost\n", samples, runs,
	       accelerometer_lost());
	return 0;
}
