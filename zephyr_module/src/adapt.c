/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* CONFIG_TINYML_ADAPT: the models that learn, and their values in settings. See
 * <tinyml/device_adapt.h>. */

#include <errno.h>
#include <string.h>

#include <tinyml/claim.h>
#include <tinyml/device_adapt.h>
#include <zephyr/init.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>
#ifdef CONFIG_TINYML_ADAPT_SETTINGS
#include <zephyr/settings/settings.h>
#endif

LOG_MODULE_DECLARE(tinyml, CONFIG_TINYML_LOG_LEVEL);

const struct tinyml_adapt *tinyml_adapt_of(const struct tinyml_model *model)
{
	TINYML_FOREACH_ADAPT(entry)
	{
		if (entry->adapt->model == model) {
			return entry->adapt;
		}
	}
	return NULL;
}

#ifdef CONFIG_TINYML_ADAPT_SETTINGS

#define SETTINGS_TREE "tinyml/learnt"
#define CLAIM_TIMEOUT K_MSEC(100)
#define RETRY         K_SECONDS(1) /* for a model that was in use */

/* Of a model that no other thread uses. */
static int save(const struct tinyml_adapt_entry *entry)
{
	const struct tinyml_adapt *adapt = entry->adapt;
	char key[sizeof(SETTINGS_TREE) + 64];
	const void *learnt;
	size_t bytes;
	int status;

	if (adapt->learnt->count == 0 && entry->saved->crc == 0) {
		return 0; /* nothing was ever learnt */
	}
	learnt = tinyml_adapt_learnt(adapt, &bytes);
	if (learnt == NULL) {
		LOG_WRN("%s: what was learnt fails the self-test and is not saved",
			adapt->model->name);
		return 0;
	}
	if (adapt->learnt->crc == entry->saved->crc) {
		return 0;
	}
	snprintk(key, sizeof(key), SETTINGS_TREE "/%s", adapt->model->name);
	status = settings_save_one(key, learnt, bytes);
	if (status != 0) {
		LOG_ERR("%s: the settings do not take the %u bytes that were learnt (%d)",
			adapt->model->name, (unsigned int)bytes, status);
		return status;
	}
	entry->saved->crc = adapt->learnt->crc;
	return 0;
}

int tinyml_adapt_save_all(void)
{
	int worst = 0;

	TINYML_FOREACH_ADAPT(entry)
	{
		int status = -EBUSY;

		if (tinyml_claim(entry->adapt->model, CLAIM_TIMEOUT) == 0) {
			status = save(entry);
			tinyml_release(entry->adapt->model);
		}
		worst = status != 0 ? status : worst;
	}
	return worst;
}

#if CONFIG_TINYML_ADAPT_SAVE_MS > 0
static void save_later(struct k_work *work)
{
	if (tinyml_adapt_save_all() == -EBUSY) {
		k_work_schedule(k_work_delayable_from_work(work), RETRY);
	}
}

static K_WORK_DELAYABLE_DEFINE(save_work, save_later);

int tinyml_adapt_noted(const struct tinyml_adapt *adapt, int status)
{
	ARG_UNUSED(adapt);
	if (status >= 0) {
		k_work_reschedule(&save_work, K_MSEC(CONFIG_TINYML_ADAPT_SAVE_MS));
	}
	return status;
}
#else
int tinyml_adapt_noted(const struct tinyml_adapt *adapt, int status)
{
	TINYML_FOREACH_ADAPT(entry)
	{
		/* This thread has just used the model: nobody else does. */
		if (CONFIG_TINYML_ADAPT_SAVE_MS == 0 && status >= 0 && entry->adapt == adapt) {
			(void)save(entry);
		}
	}
	return status;
}
#endif

/* A value of the settings. What a model has learnt since it started is not overwritten. */
static int restore(const char *name, size_t bytes, settings_read_cb read, void *argument)
{
	TINYML_FOREACH_ADAPT(entry)
	{
		const struct tinyml_adapt *adapt = entry->adapt;
		int status = TINYML_ADAPT_EOTHER;

		if (strcmp(name, adapt->model->name) != 0) {
			continue;
		}
		if (tinyml_claim(adapt->model, CLAIM_TIMEOUT) != 0) {
			return -EBUSY;
		}
		if (adapt->learnt->count == 0) {
			if (bytes == adapt->bytes &&
			    read(argument, adapt->learnt, bytes) == (ssize_t)bytes) {
				status = tinyml_adapt_accepts(adapt, adapt->learnt, bytes);
			}
			if (status == 0) {
				entry->saved->crc = adapt->learnt->crc;
			} else {
				tinyml_adapt_factory(adapt);
				LOG_INF("%s: what is saved was learnt by another model", name);
			}
		}
		tinyml_release(adapt->model);
		return 0;
	}
	return -ENOENT;
}

SETTINGS_STATIC_HANDLER_DEFINE(tinyml_adapt, SETTINGS_TREE, NULL, restore, NULL, NULL);

#ifdef CONFIG_TINYML_ADAPT_LOAD
static int load(void)
{
	int status = settings_subsys_init();

	if (status == 0) {
		status = settings_load_subtree(SETTINGS_TREE);
	}
	if (status != 0) {
		LOG_ERR("what was learnt cannot be loaded (%d)", status);
	}
	return 0;
}

SYS_INIT(load, APPLICATION, CONFIG_APPLICATION_INIT_PRIORITY);
#endif

#endif /* CONFIG_TINYML_ADAPT_SETTINGS */
