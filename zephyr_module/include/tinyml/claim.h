/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Models in an application with several threads.
 *
 * Inputs and outputs are in a model's arena, so a thread claims the model before it fills the input
 * and releases it when it has read the output. Models that share an arena are claimed together:
 *
 *	tinyml_claim(&kws_model, K_FOREVER);
 *	memcpy(kws_input(), samples, KWS_INPUT_BYTES);
 *	kws_run();
 *	best = largest(kws_output());
 *	tinyml_release(&kws_model);
 *
 * A model that only one thread uses, in an arena that no other thread uses, needs no claim, and
 * then the image contains no lock. With CONFIG_ASSERT, the first run of a second thread without a
 * claim fails an assertion.
 */

#ifndef TINYML_CLAIM_H_
#define TINYML_CLAIM_H_

#include <tinyml/tinyml.h>
#include <zephyr/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One per arena; the build defines them. */
struct tinyml_lock {
#ifdef CONFIG_MULTITHREADING
	struct k_mutex mutex;
#endif
#if defined(CONFIG_TINYML_HOST) && !defined(CONFIG_USERSPACE)
	uint32_t claims; /* so far */
#endif
#ifdef CONFIG_TINYML_CLAIM_CHECK
	k_tid_t user; /* the thread that used the arena last */
#endif
};

/**
 * Lock a model, its state and its arena against all other threads. Waits at most @a timeout. Claims
 * can be nested. Not callable from interrupts.
 *
 * @return 0, -EBUSY (with K_NO_WAIT) or -EAGAIN if another thread holds it.
 */
int tinyml_claim(const struct tinyml_model *model, k_timeout_t timeout);

/** Release a model. Only the thread that claimed it may do so. */
void tinyml_release(const struct tinyml_model *model);

#ifdef CONFIG_USERSPACE
/** Arenas, state and weights in RAM of all models, for the memory domain of threads in user mode.
 */
extern struct k_mem_partition tinyml_partition;

/** Allow a thread in user mode to claim a model. */
static inline void tinyml_grant(const struct tinyml_model *model, k_tid_t thread)
{
	k_object_access_grant(&model->lock->mutex, thread);
}
#endif

#ifdef __cplusplus
}
#endif

#endif /* TINYML_CLAIM_H_ */
