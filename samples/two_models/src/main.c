/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A cheap model wakes an expensive one. The main thread feeds the trigger with every sample; only
 * when something moves does it give the last window to the classifier, in a thread of its own. Both
 * models share one arena. Between samples, the CPU sleeps.
 */

#include <stdio.h>
#include <string.h>

#include <accelerometer.h>

#include <tinyml/claim.h>
#include <tinyml/stream.h>

#include <gesture.h>
#include <trigger.h>

#define SENSOR_NODE DT_ALIAS(accel0)
#define SILENCE     K_SECONDS(2) /* without a sample: the sensor has stopped */
#define PATIENCE    K_MSEC(1000) /* for the other thread's model */
#define WINDOW      GESTURE_RUN_SAMPLES
#define MOVES       0.5f
#define SURE        0.8f

BUILD_ASSERT(TRIGGER_AXES == 3 && GESTURE_AXES == 3,
	     "the models take other samples than x, y and z");
BUILD_ASSERT(TRIGGER_RATE_HZ == GESTURE_RATE_HZ, "the models were trained with different rates");
BUILD_ASSERT(DT_PROP_OR(SENSOR_NODE, sampling_frequency, GESTURE_RATE_HZ) == GESTURE_RATE_HZ,
	     "the models were trained with another sampling rate than the sensor has");

enum {
	CIRCLE,
	IDLE,
	SHAKE,
	WAVE,
	CLASSES,
};

static const char *const names[] = GESTURE_LABELS;

BUILD_ASSERT(CLASSES == GESTURE_CLASSES, "the model has other classes");

/* The last samples, for the classifier. */
static struct acceleration memory[WINDOW];
static struct tinyml_sliding history = {
	.data = memory,
	.frame_bytes = sizeof(struct acceleration),
	.frames = WINDOW,
	.step = TRIGGER_RUN_SAMPLES,
};

/* A window for the classifier: the main thread writes it when `free` can be taken. */
static struct acceleration window[WINDOW];
static uint32_t window_end; /* samples since the start */
static K_SEM_DEFINE(window_free, 1, 1);
static K_SEM_DEFINE(window_full, 0, 1);
static int previous = IDLE; /* what the classifier found last */
static int reported = IDLE;
static uint32_t classified;

static void classify(void *first, void *second, void *third)
{
	ARG_UNUSED(first);
	ARG_UNUSED(second);
	ARG_UNUSED(third);
	while (k_sem_take(&window_full, K_FOREVER) == 0) { /* sleeps until something moves */
		float scores[CLASSES] = {0};
		int best = 0;

		if (tinyml_claim(&gesture_model, PATIENCE) == 0) {
			gesture_feed_reset();
			if (gesture_feed(window[0].xyz, WINDOW, NULL) == 1) {
				memcpy(scores, gesture_output(), sizeof(scores));
				classified++;
			}
			tinyml_release(&gesture_model);
		}
		for (int i = 1; i < CLASSES; i++) {
			best = scores[i] > scores[best] ? i : best;
		}
		if (scores[best] < SURE) {
			best = IDLE;
		}
		if (best != IDLE && best != reported && best == previous) { /* twice in a row */
			reported = best;
			printf("%u.%02u s: %s (%d %%)\n", window_end / GESTURE_RATE_HZ,
			       window_end % GESTURE_RATE_HZ * 100 / GESTURE_RATE_HZ, names[best],
			       (int)(scores[best] * 100.0f));
		}
		previous = best;
		k_sem_give(&window_free);
	}
}

/* Below the priority of the main thread, so that no sample waits for it. */
K_THREAD_DEFINE(classifier, 2048, classify, NULL, NULL, NULL, 5, 0, 0);

/* Whether something moved in the samples that complete a run of the trigger. */
static bool triggered(const struct acceleration *sample, uint32_t *runs)
{
	bool moves = false;

	if (tinyml_claim(&trigger_model, PATIENCE) != 0) {
		return false;
	}
	if (trigger_feed(sample->xyz, 1, NULL) == 1) {
		moves = trigger_output()[1] >= MOVES;
		if (!moves) {
			reported = IDLE;
			previous = IDLE;
		}
		(*runs)++;
	}
	tinyml_release(&trigger_model);
	return moves;
}

static void print_sleep(void)
{
	k_thread_runtime_stats_t stats;

	if (k_thread_runtime_stats_all_get(&stats) == 0 && stats.execution_cycles > 0) {
		const uint32_t tenths =
			(uint32_t)(stats.idle_cycles * 1000 / stats.execution_cycles); /* of 1 % */

		printf("the CPU slept %u.%u %% of %u ms\n", tenths / 10, tenths % 10,
		       (uint32_t)k_uptime_get());
	}
}

int main(void)
{
	uint32_t samples = 0;
	uint32_t runs = 0;
	uint32_t skipped = 0;
	struct acceleration sample;

	if (accelerometer_start(DEVICE_DT_GET(SENSOR_NODE), GESTURE_RATE_HZ) != 0) {
		return 1;
	}
	printf("two_models: the trigger takes %d samples, the classifier %d\n", TRIGGER_RUN_SAMPLES,
	       WINDOW);
	while (accelerometer_read(&sample, SILENCE)) {
		samples++;
		(void)tinyml_sliding_push(&history, &sample, 1);

		const bool full = tinyml_sliding_full(&history);

		if (triggered(&sample, &runs) && full) {
			if (k_sem_take(&window_free, K_NO_WAIT) == 0) {
				tinyml_sliding_copy(&history, window);
				window_end = samples;
				k_sem_give(&window_full);
			} else {
				skipped++;
			}
		}
		if (full) {
			tinyml_sliding_advance(&history);
		}
	}
	printf("the sensor has stopped: %u samples, %u lost\n", samples, accelerometer_lost());
	printf("trigger: %u runs; classifier: %u runs, %u skipped\n", runs, classified, skipped);
	print_sleep();
	return 0;
}
