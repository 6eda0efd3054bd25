/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The port of MLPerf Tiny's device interface: the functions that a benchmark's commands call, by
 * the names that its documentation gives them. main.c has those of the device, inference.c those of
 * the model, streaming.c those of the streaming wake word.
 */

#ifndef MLPERF_TINY_TH_H_
#define MLPERF_TINY_TH_H_

#include <stddef.h>
#include <stdint.h>

/* The device. */
void th_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void th_timestamp(void);
void th_timestamp_initialize(void);
void th_pre(void);
void th_post(void);

/* The model. An input that was loaded once is inferred many times, although a run may overwrite it.
 */
void th_load_tensor(void);
void th_infer(void);
void th_results(void);

/* Streaming wake word only. */
void th_start_detecting(void);
void th_stop_detecting(void);

#endif /* MLPERF_TINY_TH_H_ */
