/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** A digital microphone that gives blocks of 16-bit samples of one channel. */

#ifndef SAMPLES_COMMON_MICROPHONE_H_
#define SAMPLES_COMMON_MICROPHONE_H_

#include <stddef.h>

#include <zephyr/device.h>
#include <zephyr/kernel.h>

/** Start to take `rate` samples a second. Prints why if it cannot, and returns a negative number.
 */
int microphone_start(const struct device *microphone, int rate, size_t block_bytes,
		     struct k_mem_slab *slab);

#endif /* SAMPLES_COMMON_MICROPHONE_H_ */
