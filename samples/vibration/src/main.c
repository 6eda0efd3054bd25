/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Notices when a motor vibrates in another way than the healthy one that the model was trained on.
 */

#include <stdio.h>

#include <accelerometer.h>

#include <tinyml/decision.h>

#include <vibration.h>

#define SENSOR_NODE DT_ALIAS(accel0)
#define SILENCE     K_SECONDS(2) /* without a sample: the sensor has stopped */

BUILD_ASSERT(VIBRATION_AXES == 3, "the model takes other samples than x, y and z");
BUILD_ASSERT(DT_PROP_OR(SENSOR_NODE, sampling_frequency, VIBRATION_RATE_HZ) == VIBRATION_RATE_HZ,
	     "the model was trained with another sampling rate than the sensor has");

TINYML_DECISION(anomaly, 1, 3); /* one score, averaged over three windows */

static void print_time(uint32_t samples)
{
	printf("%u.%02u s: ", samples / VIBRATION_RATE_HZ,
	       samples % VIBRATION_RATE_HZ * 100 / VIBRATION_RATE_HZ);
}

int main(void)
{
	uint32_t samples = 0;
	uint32_t runs = 0;
	uint32_t lost = 0;
	struct acceleration sample;

	/* The model's output is 0.5 at the threshold that it has learned. */
	anomaly.on = TINYML_SCORE(0.5);
	anomaly.off = TINYML_SCORE(0.4);

	if (accelerometer_start(DEVICE_DT_GET(SENSOR_NODE), VIBRATION_RATE_HZ) != 0) {
		return 1;
	}
	printf("vibration: %d samples a second, a run every %d\n", VIBRATION_RATE_HZ,
	       VIBRATION_RUN_SAMPLES);
	while (accelerometer_read(&sample, SILENCE)) {
		const bool was_active = anomaly.active >= 0;

		samples++;
		if (accelerometer_lost() != lost) {
			printf("too slow: %u samples lost\n", accelerometer_lost() - lost);
			lost = accelerometer_lost();
		}
		if (vibration_feed(sample.xyz, 1, NULL) <= 0) {
			continue;
		}
		runs++;
		(void)tinyml_decide(&anomaly, &vibration_model.outputs[0]);
		if (was_active != (anomaly.active >= 0)) {
			print_time(samples);
			printf("%s\n", was_active ? "as usual again" : "vibrates in another way");
		}
	}
	printf("the sensor has stopped: %u samples, %u runs, %u lost\n", samples, runs, lost);
	return 0;
}
