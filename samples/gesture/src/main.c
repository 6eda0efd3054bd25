/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Recognises gestures of a hand that holds an accelerometer. ../common/accelerometer.c brings
 * samples to the main thread, which feeds the model and decides.
 */

#include <stdio.h>
#include <stdlib.h>

#include <accelerometer.h>

#include <tinyml/decision.h>

#include <gesture.h>

#define SENSOR_NODE DT_ALIAS(accel0)
#define SILENCE     K_SECONDS(2) /* without a sample: the sensor has stopped */

BUILD_ASSERT(GESTURE_AXES == 3, "the model takes other samples than x, y and z");
BUILD_ASSERT(DT_PROP_OR(SENSOR_NODE, sampling_frequency, GESTURE_RATE_HZ) == GESTURE_RATE_HZ,
	     "the model was trained with another sampling rate than the sensor has");

enum {
	CIRCLE,
	IDLE,
	SHAKE,
	WAVE,
	CLASSES,
};

static const char *const names[] = GESTURE_LABELS;

BUILD_ASSERT(CLASSES == GESTURE_CLASSES, "the model has other classes");

TINYML_DECISION(decision, CLASSES, 3); /* averaged over three runs */

/* A line of a CSV file, in m/s^2. */
static void print_sample(const struct acceleration *sample)
{
	for (size_t i = 0; i < GESTURE_AXES; i++) {
		const float value = sample->xyz[i];
		const int thousandths = (int)(value * 1000.0f + (value < 0.0f ? -0.5f : 0.5f));

		printf("%s%d.%03d%c", thousandths < 0 ? "-" : "", abs(thousandths) / 1000,
		       abs(thousandths) % 1000, i + 1 < GESTURE_AXES ? ',' : '\n');
	}
}

int main(void)
{
	uint32_t samples = 0;
	uint32_t runs = 0;
	uint32_t lost = 0;
	struct acceleration sample;

	decision.on = TINYML_SCORE(0.8);
	decision.off = TINYML_SCORE(0.5);
	decision.ignored = BIT(IDLE);

	if (accelerometer_start(DEVICE_DT_GET(SENSOR_NODE), GESTURE_RATE_HZ) != 0) {
		return 1;
	}
	printf("gesture: %d samples a second, a run every %d\n", GESTURE_RATE_HZ,
	       GESTURE_RUN_SAMPLES);
	while (accelerometer_read(&sample, SILENCE)) {
		samples++;
		if (IS_ENABLED(CONFIG_GESTURE_RECORD)) {
			print_sample(&sample);
			continue;
		}
		if (accelerometer_lost() != lost) {
			printf("too slow: %u samples lost\n", accelerometer_lost() - lost);
			lost = accelerometer_lost();
		}
		if (gesture_feed(sample.xyz, 1, NULL) <= 0) {
			continue;
		}
		runs++;

		const int found = tinyml_decide(&decision, &gesture_model.outputs[0]);

		if (found != TINYML_UNDECIDED) {
			printf("%u.%02u s: %s (%d %%)\n", samples / GESTURE_RATE_HZ,
			       samples % GESTURE_RATE_HZ * 100 / GESTURE_RATE_HZ, names[found],
			       (int)(tinyml_decision_average(&decision, (uint16_t)found) * 100 /
				     32768));
		}
	}
	printf("the sensor has stopped: %u samples, %u runs, %u lost\n", samples, runs, lost);
	return 0;
}
