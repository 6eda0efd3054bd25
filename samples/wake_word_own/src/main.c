/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Learns a word that the model was not trained with: somebody says it three times. Afterwards every
 * word is compared with these examples. A word ends where it becomes quiet; the embedding of the
 * model then covers the last second.
 */

#include <stdio.h>
#include <stdlib.h>

#include <zephyr/audio/dmic.h>
#include <zephyr/device.h>
#include <zephyr/kernel.h>

#include <microphone.h>

#include <wake_word.h>

#define MICROPHONE  DT_NODELABEL(dmic_dev)
#define BLOCK_MS    20
#define BLOCK_BYTES (WAKE_WORD_RATE_HZ / 1000 * BLOCK_MS * (int)sizeof(int16_t))
#define BLOCKS      6
#define SILENCE_MS  1000 /* without a block: the microphone has stopped */

#define EXAMPLES   3
#define LOUDER     3 /* than the noise, */
#define OF_PEAK    6 /* and more than this part of the loudest run: somebody speaks */
#define LEAST_LOUD 6 /* runs of a word */

/* Quiet runs after a word. */
#define FIRST 3 /* from here on it is compared, */
#define LEARN 6 /* here an example is learnt, */
#define LAST  9 /* and here the nearest run decides */

BUILD_ASSERT(WAKE_WORD_AXES == 1, "the model takes more than one channel");
BUILD_ASSERT(DT_PROP_OR(MICROPHONE, sampling_frequency, WAKE_WORD_RATE_HZ) == WAKE_WORD_RATE_HZ,
	     "the model was trained with another sampling rate than the microphone has");

static const struct device *const microphone = DEVICE_DT_GET(MICROPHONE);

K_MEM_SLAB_DEFINE_STATIC(slab, BLOCK_BYTES, BLOCKS, 4);

/* The loudness of a run, which is the mean size of its samples. */
static uint32_t sum, count;

static uint32_t level(void)
{
	const uint32_t mean = sum / count;

	sum = 0;
	count = 0;
	return mean;
}

/* The quiet runs since a word, with this one; 0 if it is not quiet, or if there was no word. */
static uint32_t hear(uint32_t now)
{
	static uint32_t noise = 1u << 30, peak, loud, quiet;

	if (quiet >= LAST || (quiet >= LEARN && loud < LEAST_LOUD)) {
		peak = 0;
		loud = 0;
		quiet = 0;
	}
	noise = now < noise ? now : noise + noise / 64 + 1;
	if (now > MAX(LOUDER * noise, peak / OF_PEAK)) {
		peak = MAX(peak, now);
		loud++;
		quiet = 0;
	} else {
		quiet++;
	}
	return loud >= LEAST_LOUD ? quiet : 0;
}

static void print_time(uint32_t samples)
{
	const uint32_t hundredths = samples / (WAKE_WORD_RATE_HZ / 100);

	printf("%u.%02u s: ", hundredths / 100, hundredths % 100);
}

/* The model has run: learn, or compare. */
static void ran(uint32_t samples)
{
	static uint32_t learnt;
	static bool compares;
	static int decision;
	static float best;
	const uint32_t quiet = hear(level());
	float distance;
	int nearest;

	if (learnt < EXAMPLES) {
		if (quiet == LEARN && wake_word_enroll(0) == 0) {
			print_time(samples);
			printf("example %u\n", ++learnt);
		}
		return;
	}
	if (quiet != FIRST && (quiet < FIRST || !compares)) {
		compares = false; /* somebody goes on speaking */
		return;
	}
	nearest = wake_word_nearest(&distance);
	if (!compares || distance < best) {
		best = distance;
		decision = nearest;
	}
	compares = quiet < LAST;
	if (!compares) {
		const uint32_t tenths = (uint32_t)(best * 10.0f);

		print_time(samples);
		printf("%s, distance %u.%u\n", decision == 0 ? "your word" : "another one",
		       tenths / 10, tenths % 10);
	}
}

int main(void)
{
	uint32_t samples = 0, runs = 0, overruns = 0;
	int status;

	if (microphone_start(microphone, WAKE_WORD_RATE_HZ, BLOCK_BYTES, &slab) != 0) {
		return 1;
	}
	printf("wake_word: %d samples a second, a run every %d\n", WAKE_WORD_RATE_HZ,
	       WAKE_WORD_RUN_SAMPLES);
	printf("say your word %d times\n", EXAMPLES);
	for (;;) {
		void *block;
		size_t bytes;

		status = dmic_read(microphone, 0, &block, &bytes, SILENCE_MS);
		if (status == -EIO) { /* too slow: the driver had no block left */
			overruns++;
			wake_word_feed_reset();
			(void)dmic_trigger(microphone, DMIC_TRIGGER_STOP);
			status = dmic_trigger(microphone, DMIC_TRIGGER_START);
			if (status == 0) {
				continue;
			}
		}
		if (status != 0) {
			break;
		}
		for (size_t used = 0; used < bytes / sizeof(int16_t);) {
			const int16_t *const rest = (const int16_t *)block + used;
			size_t taken;
			const int found =
				wake_word_feed(rest, bytes / sizeof(int16_t) - used, &taken);

			for (size_t i = 0; i < taken; i++) {
				sum += (uint32_t)abs(rest[i]);
			}
			count += (uint32_t)taken;
			samples += (uint32_t)taken;
			used += taken;
			if (found > 0) {
				runs++;
				ran(samples);
			}
		}
		k_mem_slab_free(&slab, block);
	}
	printf("the microphone has stopped: %u samples, %u runs, %u overruns\n", samples, runs,
	       overruns);
	return 0;
}
