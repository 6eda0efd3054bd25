/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The features of the streaming wake word: 40 mel bands of 64 ms every 32 ms. */

#ifndef MLPERF_TINY_MEL_H_
#define MLPERF_TINY_MEL_H_

#include <stdint.h>

#define MEL_BANDS   40
#define MEL_STEP    512 /* samples from one row to the next, at 16 kHz */
#define MEL_SAMPLES (2 * MEL_STEP)

/** Forget what was heard. */
void mel_reset(void);

/** The next MEL_STEP samples; `row` gets MEL_BANDS numbers from 0 to 1. */
void mel_row(const int16_t *samples, float *row);

#endif /* MLPERF_TINY_MEL_H_ */
