/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The samples of an accelerometer, whatever its driver offers: with its data-ready trigger, or
 * polled at the rate that is asked for. Nothing waits for ever, and samples that are lost are
 * counted.
 */

#ifndef SAMPLES_COMMON_ACCELEROMETER_H_
#define SAMPLES_COMMON_ACCELEROMETER_H_

#include <stdbool.h>
#include <stdint.h>

#include <zephyr/device.h>
#include <zephyr/kernel.h>

struct acceleration {
	float xyz[3]; /* m/s^2 */
};

/** Start to take samples, `rate` a second. Prints why if it cannot, and returns a negative number.
 */
int accelerometer_start(const struct device *sensor, int rate);

/** Wait for the next sample; false if there is none in time. */
bool accelerometer_read(struct acceleration *sample, k_timeout_t timeout);

/** Samples that were lost, because they were not read in time. */
uint32_t accelerometer_lost(void);

#endif /* SAMPLES_COMMON_ACCELEROMETER_H_ */
