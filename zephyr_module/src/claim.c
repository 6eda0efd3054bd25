/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/claim.h>
#include <zephyr/app_memory/app_memdomain.h>
#include <zephyr/logging/log.h>
#include <zephyr/sys/__assert.h>

LOG_MODULE_REGISTER(tinyml, CONFIG_TINYML_LOG_LEVEL);

#ifdef CONFIG_USERSPACE
K_APPMEM_PARTITION_DEFINE(tinyml_partition);
#endif

int tinyml_claim(const struct tinyml_model *model, k_timeout_t timeout)
{
#ifdef CONFIG_MULTITHREADING
	int status = k_mutex_lock(&model->lock->mutex, timeout);

	if (status != 0) {
		LOG_WRN("%s: another thread uses its arena (%d)", model->name, status);
		return status;
	}
	LOG_DBG("%s: claimed", model->name);
#endif
#if defined(CONFIG_TINYML_HOST) && !defined(CONFIG_USERSPACE)
	model->lock->claims++;
#endif
#ifdef CONFIG_TINYML_CLAIM_CHECK
	model->lock->user = k_current_get();
#endif
	return 0;
}

void tinyml_release(const struct tinyml_model *model)
{
#ifdef CONFIG_MULTITHREADING
	int status = k_mutex_unlock(&model->lock->mutex);

	if (status == 0) {
		LOG_DBG("%s: released", model->name);
	} else {
		LOG_ERR("%s: released by a thread that did not claim it (%d)", model->name, status);
	}
#endif
}

#ifdef CONFIG_TINYML_CLAIM_CHECK
/*
 * Whether two threads collide depends on timing, so this check is stricter: once one thread has
 * used an arena, no other thread may use it without a claim.
 */
void tinyml_check_claim(struct tinyml_lock *lock, const char *model)
{
	k_tid_t me = k_current_get();

	if (lock->mutex.owner == me) {
		return;
	}
	__ASSERT(lock->mutex.owner == NULL, "%s runs while another thread has claimed its arena",
		 model);
	__ASSERT(lock->user == NULL || lock->user == me,
		 "%s: several threads use its arena; each must call tinyml_claim()", model);
	lock->user = me;
}
#endif
