/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The streaming wake word: from the microphone to detections, between `start` and `stop`. */

#ifndef MLPERF_TINY_STREAMING_H_
#define MLPERF_TINY_STREAMING_H_

#include <stdbool.h>

/** Use a block of samples, if one has come. Whether the device is listening to the microphone. */
bool streaming_step(void);

#endif /* MLPERF_TINY_STREAMING_H_ */
