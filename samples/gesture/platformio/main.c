/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Recognises gestures in lines of x,y,z in m/s^2, from replay.csv or the file that is named:
 *
 *	program [FILE]
 *
 * On a board, call gesture_feed() with each sample of your accelerometer library instead.
 */

#include <stdio.h>

#include <tinyml/decision.h>

#include <gesture.h>

enum {
	CIRCLE,
	IDLE,
	SHAKE,
	WAVE,
	CLASSES,
};

static const char *const names[] = GESTURE_LABELS;

_Static_assert(CLASSES == GESTURE_CLASSES, "the model has other classes");

TINYML_DECISION(decision, CLASSES, 3); /* averaged over three runs */

int main(int argc, char **argv)
{
	FILE *samples = fopen(argc > 1 ? argv[1] : "replay.csv", "r");
	unsigned int count = 0;
	unsigned int runs = 0;
	float xyz[GESTURE_AXES];

	decision.on = TINYML_SCORE(0.8);
	decision.off = TINYML_SCORE(0.5);
	decision.ignored = 1u << IDLE;

	if (samples == NULL) {
		printf("no samples\n");
		return 1;
	}
	printf("gesture: %d samples a second, a run every %d\n", GESTURE_RATE_HZ,
	       GESTURE_RUN_SAMPLES);
	while (fscanf(samples, "%f,%f,%f", &xyz[0], &xyz[1], &xyz[2]) == 3) {
		count++;
		if (gesture_feed(xyz, 1, NULL) <= 0) {
			continue;
		}
		runs++;

		const int found = tinyml_decide(&decision, &gesture_model.outputs[0]);

		if (found != TINYML_UNDECIDED) {
			printf("%u.%02u s: %s (%d %%)\n", count / GESTURE_RATE_HZ,
			       count % GESTURE_RATE_HZ * 100 / GESTURE_RATE_HZ, names[found],
			       (int)(tinyml_decision_average(&decision, (uint16_t)found) * 100 /
				     32768));
		}
	}
	printf("the samples have ended: %u samples, %u runs\n", count, runs);
	(void)fclose(samples);
	return 0;
}
