/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Switches an LED on when it hears the wake word. Blocks of samples come from a digital microphone;
 * wake_word_feed() computes features and runs the model, whose scores are averaged.
 */

#include <stdio.h>

#include <zephyr/audio/dmic.h>
#include <zephyr/device.h>
#include <zephyr/drivers/gpio.h>
#include <zephyr/kernel.h>

#include <tinyml/decision.h>

#include <microphone.h>

#include <wake_word.h>

#define MICROPHONE   DT_NODELABEL(dmic_dev)
#define BLOCK_MS     20
#define BLOCK_BYTES  (WAKE_WORD_RATE_HZ / 1000 * BLOCK_MS * (int)sizeof(int16_t))
#define BLOCKS       6
#define SILENCE_MS   1000 /* without a block: the microphone has stopped */
#define LIGHT_MS     500
#define CLASSES      WAKE_WORD_OUTPUT_ELEMENTS
#define WAKE         (CLASSES - 1) /* the last score; others are not the wake word */
#define AVERAGE_RUNS 4

BUILD_ASSERT(WAKE_WORD_AXES == 1, "the model takes more than one channel");
BUILD_ASSERT(DT_PROP_OR(MICROPHONE, sampling_frequency, WAKE_WORD_RATE_HZ) == WAKE_WORD_RATE_HZ,
	     "the model was trained with another sampling rate than the microphone has");

static const struct device *const microphone = DEVICE_DT_GET(MICROPHONE);
static const struct gpio_dt_spec led = GPIO_DT_SPEC_GET(DT_ALIAS(led0), gpios);

K_MEM_SLAB_DEFINE_STATIC(slab, BLOCK_BYTES, BLOCKS, 4);
TINYML_DECISION(decision, CLASSES, AVERAGE_RUNS);

static void light_is_over(struct k_work *work)
{
	ARG_UNUSED(work);
	(void)gpio_pin_set_dt(&led, 0);
}

static K_WORK_DELAYABLE_DEFINE(light, light_is_over);

static int start(void)
{
	if (!gpio_is_ready_dt(&led)) {
		printf("the LED is not ready\n");
		return -ENODEV;
	}
	(void)gpio_pin_configure_dt(&led, GPIO_OUTPUT_INACTIVE);
	return microphone_start(microphone, WAKE_WORD_RATE_HZ, BLOCK_BYTES, &slab);
}

static void heard(uint32_t samples)
{
	const uint32_t hundredths = samples / (WAKE_WORD_RATE_HZ / 100);
	const int status = gpio_pin_set_dt(&led, 1);

	(void)k_work_reschedule(&light, K_MSEC(LIGHT_MS));
	printf("%u.%02u s: wake word (%d %%), LED %s\n", hundredths / 100, hundredths % 100,
	       (int)(tinyml_decision_average(&decision, WAKE) * 100 / 32768),
	       status == 0 ? "on" : "failed");
}

int main(void)
{
	uint32_t samples = 0;
	uint32_t runs = 0;
	uint32_t overruns = 0;
	int status = 0;

	decision.on = TINYML_SCORE(0.8);
	decision.off = TINYML_SCORE(0.4);
	decision.hold_off = 1000 / (1000 * WAKE_WORD_RUN_SAMPLES / WAKE_WORD_RATE_HZ); /* 1 s */
	decision.ignored = ~(1u << WAKE); /* all but the wake word */

	if (start() != 0) {
		return 1;
	}
	printf("wake_word: %d samples a second, a run every %d\n", WAKE_WORD_RATE_HZ,
	       WAKE_WORD_RUN_SAMPLES);
	while (status == 0) {
		void *block;
		size_t bytes;

		status = dmic_read(microphone, 0, &block, &bytes, SILENCE_MS);
		if (status == -EIO) { /* too slow: the driver had no block left */
			overruns++;
			printf("too slow: samples were lost\n");
			wake_word_feed_reset();
			tinyml_decision_reset(&decision);
			(void)dmic_trigger(microphone, DMIC_TRIGGER_STOP);
			status = dmic_trigger(microphone, DMIC_TRIGGER_START);
			continue;
		}
		if (status != 0) {
			break;
		}
		for (size_t used = 0; used < bytes / sizeof(int16_t);) {
			size_t taken;
			const int16_t *rest = (const int16_t *)block + used;

			if (wake_word_feed(rest, bytes / sizeof(int16_t) - used, &taken) > 0) {
				runs++;
				if (tinyml_decide(&decision, &wake_word_model.outputs[0]) == WAKE) {
					heard(samples + (uint32_t)taken);
				}
			}
			used += taken;
			samples += (uint32_t)taken;
		}
		k_mem_slab_free(&slab, block);
		k_msleep(CONFIG_WAKE_WORD_PAUSE_MS);
	}
	printf("the microphone has stopped: %u samples, %u runs, %u overruns\n", samples, runs,
	       overruns);
	return 0;
}
