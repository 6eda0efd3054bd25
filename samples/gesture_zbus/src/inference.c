/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blocks to gestures: a thread of its own runs the model, at a lower priority than the sensor's,
 * so that a run never delays a sample.
 */

#include <zephyr/kernel.h>

#include <tinyml/decision.h>

#include "channels.h"

#define STACK_BYTES 2048
#define PRIORITY    K_PRIO_PREEMPT(5)
#define SILENCE                                                                                    \
	K_MSEC(2000 + CONFIG_GESTURE_REST_MS) /* without a block: the sensor has stopped           \
					       */
#define IDLE 1                                /* the class of a hand at rest */

ZBUS_SUBSCRIBER_DEFINE(inference, 2);
ZBUS_CHAN_DEFINE(block_channel, struct block_message, NULL, NULL, ZBUS_OBSERVERS(inference),
		 ZBUS_MSG_INIT(0));

TINYML_DECISION(decision, GESTURE_CLASSES, 3); /* averaged over three runs */

/* Whether the scores of the last run are highest for a hand at rest. */
static bool is_still(void)
{
	int best = 0;

	for (int i = 1; i < GESTURE_CLASSES; i++) {
		if (gesture_output()[i] > gesture_output()[best]) {
			best = i;
		}
	}
	return best == IDLE;
}

static void publish(const struct gesture_message *message)
{
	(void)zbus_chan_pub(&gesture_channel, message, K_SECONDS(1));
}

static void rest(void)
{
	const struct power_message message = {.rest_ms = CONFIG_GESTURE_REST_MS};

	(void)zbus_chan_pub(&power_channel, &message, K_SECONDS(1));
	gesture_feed_reset(); /* the next block does not follow this one */
	tinyml_decision_reset(&decision);
}

static void infer(void *unused, void *also_unused, void *unused_too)
{
	struct gesture_message message = {0};
	const struct zbus_channel *channel;
	uint32_t still = 0;

	ARG_UNUSED(unused);
	ARG_UNUSED(also_unused);
	ARG_UNUSED(unused_too);
	decision.on = TINYML_SCORE(0.8);
	decision.off = TINYML_SCORE(0.5);
	decision.ignored = BIT(IDLE);

	while (zbus_sub_wait(&inference, &channel, SILENCE) == 0) {
		struct block_message block;

		if (zbus_chan_read(channel, &block, K_SECONDS(1)) != 0) {
			continue;
		}
		const int runs = gesture_feed(block.samples[0], BLOCK_SAMPLES, NULL);

		sampling_release(&block);
		if (runs <= 0) {
			continue;
		}
		message.samples = block.end;
		message.runs++;
		message.index = (int16_t)tinyml_decide(&decision, &gesture_model.outputs[0]);
		if (message.index != TINYML_UNDECIDED) {
			message.percent = (uint8_t)(tinyml_decision_average(
							    &decision, (uint16_t)message.index) *
						    100 / 32768);
			publish(&message);
		}
		still = is_still() ? still + 1 : 0;
		if (still == CONFIG_GESTURE_STILL_RUNS) {
			still = 0;
			rest();
		}
	}
	message.index = -1;
	publish(&message);
}

K_THREAD_DEFINE(inference_thread, STACK_BYTES, infer, NULL, NULL, NULL, PRIORITY, 0, 0);
