/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The counters of all watched models of an image (CONFIG_TINYML_WATCH): models with `watch: true`.
 * <tinyml/watch.h> describes them.
 *
 *	static void on_period(const struct tinyml_watch *watch)
 *	{
 *		uint8_t report[512];
 *		size_t bytes = tinyml_watch_encode(watch, 0, report, sizeof(report));
 *		...
 *	}
 *	TINYML_WATCH_CALLBACK(on_period);
 *
 * Every CONFIG_TINYML_WATCH_PERIOD seconds, callbacks see each model's counters, on the system work
 * queue, while the model is claimed. If Zephyr's zbus is on, listeners of tinyml_watch_channel get
 * the most important figures.
 */

#ifndef TINYML_DEVICE_WATCH_H_
#define TINYML_DEVICE_WATCH_H_

#include <tinyml/watch.h>
#include <zephyr/sys/iterable_sections.h>
#ifdef CONFIG_TINYML_WATCH_ZBUS
#include <zephyr/zbus/zbus.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** One watched model. The build adds an entry for each. */
struct tinyml_watch_entry {
	const struct tinyml_watch *watch;
};

/** Run a block for each watched model: TINYML_FOREACH_WATCH(entry) { ... } */
#define TINYML_FOREACH_WATCH(entry) STRUCT_SECTION_FOREACH(tinyml_watch_entry, entry)

/** What a period ends with. */
struct tinyml_watch_callback {
	void (*on_period)(const struct tinyml_watch *watch);
};

/** Call a function at the end of every period, for each watched model. */
#define TINYML_WATCH_CALLBACK(function)                                                            \
	static const STRUCT_SECTION_ITERABLE(tinyml_watch_callback,                                \
					     function##_callback) = {.on_period = (function)}

/** The counters of a model; NULL if it has none. */
const struct tinyml_watch *tinyml_watch_of(const struct tinyml_model *model);

/** The largest drift of all inputs, in 1/TINYML_WATCH_DRIFT; -1 if there is none. */
int32_t tinyml_watch_largest_drift(const struct tinyml_watch *watch);

/**
 * End the period of all models now: call the callbacks, publish, save, and start the next period if
 * CONFIG_TINYML_WATCH_RESET. Returns 0, or -EBUSY if another thread uses a model, whose period then
 * goes on.
 */
int tinyml_watch_end_period(void);

#ifdef CONFIG_TINYML_WATCH_ZBUS
/** What tinyml_watch_channel carries: of the first output with classes, if there is one. */
struct tinyml_watch_message {
	const struct tinyml_watch *watch;
	uint32_t runs;
	uint32_t errors;
	int32_t drift;    /* the largest, in 1/TINYML_WATCH_DRIFT; -1: none */
	uint32_t margin;  /* sum over all runs, in 1/TINYML_WATCH_SCORE */
	uint32_t entropy; /* sum over all runs, in 1/TINYML_WATCH_ENTROPY bit */
	uint32_t switches;
};

ZBUS_CHAN_DECLARE(tinyml_watch_channel);
#endif

#ifdef __cplusplus
}
#endif

#endif /* TINYML_DEVICE_WATCH_H_ */
