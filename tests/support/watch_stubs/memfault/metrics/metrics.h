/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* As much of the Memfault SDK as the snippet of docs/watch.md needs. */

#ifndef STUB_METRICS_H_
#define STUB_METRICS_H_

#include <stdint.h>

extern const int watch_runs, watch_drift, watch_margin;

int stub_set(const int *metric, int64_t value);

#define MEMFAULT_METRIC_SET_UNSIGNED(name, value) stub_set(&name, (uint32_t)(value))
#define MEMFAULT_METRIC_SET_SIGNED(name, value)   stub_set(&name, (int32_t)(value))

void memfault_metrics_heartbeat_collect_data(void);

#endif /* STUB_METRICS_H_ */
