/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* CONFIG_TINYML_WATCH: periods of the watched models. See <tinyml/device_watch.h>. */

#include <errno.h>
#include <string.h>

#include <tinyml/claim.h>
#include <tinyml/device_watch.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>
#ifdef CONFIG_TINYML_WATCH_SETTINGS
#include <zephyr/settings/settings.h>
#endif

LOG_MODULE_DECLARE(tinyml, CONFIG_TINYML_LOG_LEVEL);

#define CLAIM_TIMEOUT K_MSEC(100)

const struct tinyml_watch *tinyml_watch_of(const struct tinyml_model *model)
{
	TINYML_FOREACH_WATCH(entry)
	{
		if (entry->watch->model == model) {
			return entry->watch;
		}
	}
	return NULL;
}

int32_t tinyml_watch_largest_drift(const struct tinyml_watch *watch)
{
	int32_t largest = -1;

	for (size_t i = 0; i < (size_t)watch->input_count + watch->channel_count; i++) {
		largest = MAX(largest, tinyml_watch_drift(&watch->inputs[i]));
	}
	return largest;
}

#ifdef CONFIG_TINYML_WATCH_ZBUS
ZBUS_CHAN_DEFINE(tinyml_watch_channel, struct tinyml_watch_message, NULL, NULL,
		 ZBUS_OBSERVERS_EMPTY, ZBUS_MSG_INIT(0));

static void publish(const struct tinyml_watch *watch)
{
	struct tinyml_watch_message message = {
		.watch = watch,
		.runs = watch->totals->runs,
		.errors = watch->totals->errors,
		.drift = tinyml_watch_largest_drift(watch),
	};

	for (size_t i = 0; i < watch->output_count; i++) {
		if (watch->outputs[i].classes != NULL) {
			const struct tinyml_watch_scores *scores =
				watch->outputs[i].classes->scores;

			message.margin = scores->margin;
			message.entropy = scores->entropy;
			message.switches = scores->switches;
			break;
		}
	}
	if (zbus_chan_pub(&tinyml_watch_channel, &message, CLAIM_TIMEOUT) != 0) {
		LOG_WRN("%s: nobody took the figures of the last period", watch->model->name);
	}
}
#else
static void publish(const struct tinyml_watch *watch)
{
	ARG_UNUSED(watch);
}
#endif

#ifdef CONFIG_TINYML_WATCH_SETTINGS
#define SETTINGS_TREE "tinyml/watch"

/* The model that the counters belong to comes first: those of another are not restored. */
struct saved {
	uint8_t sha256[8];
	uint32_t bytes;
	uint32_t counters[CONFIG_TINYML_WATCH_SETTINGS_BYTES / 4];
};

static struct saved saved;

static void save(const struct tinyml_watch *watch)
{
	char key[sizeof(SETTINGS_TREE) + 64];

	if (watch->bytes > sizeof(saved.counters)) {
		LOG_ERR("%s: %u bytes of counters, CONFIG_TINYML_WATCH_SETTINGS_BYTES is %u",
			watch->model->name, (unsigned int)watch->bytes,
			(unsigned int)sizeof(saved.counters));
		return;
	}
	memcpy(saved.sha256, watch->model->sha256, sizeof(saved.sha256));
	saved.bytes = watch->bytes;
	memcpy(saved.counters, watch->totals, watch->bytes);
	snprintk(key, sizeof(key), SETTINGS_TREE "/%s", watch->model->name);
	if (settings_save_one(key, &saved, offsetof(struct saved, counters) + watch->bytes) != 0) {
		LOG_ERR("%s: the counters cannot be saved", watch->model->name);
	}
}

/* settings_load() brings the counters back. */
static int restore(const char *name, size_t bytes, settings_read_cb read, void *argument)
{
	TINYML_FOREACH_WATCH(entry)
	{
		const struct tinyml_watch *watch = entry->watch;
		const size_t expected = offsetof(struct saved, counters) + watch->bytes;

		if (strcmp(name, watch->model->name) != 0) {
			continue;
		}
		if (bytes != expected || bytes > sizeof(saved) ||
		    read(argument, &saved, bytes) != (ssize_t)bytes ||
		    memcmp(saved.sha256, watch->model->sha256, sizeof(saved.sha256)) != 0 ||
		    saved.bytes != watch->bytes) {
			LOG_INF("%s: the saved counters are of another model", name);
			return 0;
		}
		if (tinyml_claim(watch->model, CLAIM_TIMEOUT) != 0) {
			return -EBUSY;
		}
		memcpy(watch->totals, saved.counters, watch->bytes);
		tinyml_release(watch->model);
		return 0;
	}
	return -ENOENT;
}

SETTINGS_STATIC_HANDLER_DEFINE(tinyml_watch, SETTINGS_TREE, NULL, restore, NULL, NULL);
#else
static void save(const struct tinyml_watch *watch)
{
	ARG_UNUSED(watch);
}
#endif

int tinyml_watch_end_period(void)
{
	int status = 0;

	TINYML_FOREACH_WATCH(entry)
	{
		const struct tinyml_watch *watch = entry->watch;

		if (tinyml_claim(watch->model, CLAIM_TIMEOUT) != 0) {
			status = -EBUSY;
			continue;
		}
		STRUCT_SECTION_FOREACH(tinyml_watch_callback, callback)
		{
			callback->on_period(watch);
		}
		publish(watch);
		if (IS_ENABLED(CONFIG_TINYML_WATCH_RESET)) {
			tinyml_watch_reset(watch);
		}
		save(watch);
		tinyml_release(watch->model);
	}
	return status;
}

#if CONFIG_TINYML_WATCH_PERIOD > 0
static void end_period(struct k_work *work)
{
	const int status = tinyml_watch_end_period();

	k_work_schedule(k_work_delayable_from_work(work),
			status == 0 ? K_SECONDS(CONFIG_TINYML_WATCH_PERIOD) : K_SECONDS(1));
}

static K_WORK_DELAYABLE_DEFINE(period_work, end_period);

static int start(void)
{
	k_work_schedule(&period_work, K_SECONDS(CONFIG_TINYML_WATCH_PERIOD));
	return 0;
}

SYS_INIT(start, APPLICATION, CONFIG_APPLICATION_INIT_PRIORITY);
#endif
