/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The part of accelerometer.h that uses sensor_stream(). */

#ifndef SAMPLES_COMMON_ACCELEROMETER_STREAM_H_
#define SAMPLES_COMMON_ACCELEROMETER_STREAM_H_

#include "accelerometer.h"

/** Start a thread that calls accelerometer_put() for every sample of the device `accel0`. */
void accelerometer_stream_start(const struct device *sensor, int rate);

/** Samples that the driver had no memory for. */
uint32_t accelerometer_stream_lost(void);

/** A sample has arrived. It does not wait: what does not fit is counted. */
void accelerometer_put(const struct acceleration *sample);

#endif /* SAMPLES_COMMON_ACCELEROMETER_STREAM_H_ */
