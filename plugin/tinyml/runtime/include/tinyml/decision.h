/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * From the scores of every run to a decision: averaged over the last runs, with a threshold to
 * decide, a lower one to let go again (hysteresis), and a pause after each decision (hold-off).
 *
 *	TINYML_DECISION(wake, 2, 5);	// classes, runs that are averaged
 *
 *	wake.on = TINYML_SCORE(0.9);
 *	wake.off = TINYML_SCORE(0.5);
 *	wake.hold_off = 50;
 *	...
 *	if (tinyml_decide(&wake, &kws_model.outputs[0]) == KWS_YES) {
 *
 * Scores are counted in 1/32768 and added up as integers: nothing drifts, however long it runs.
 */

#ifndef TINYML_DECISION_H_
#define TINYML_DECISION_H_

#include <tinyml/tinyml.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A score of 0 to 1 (or -1) as decisions count it. */
#define TINYML_SCORE(real) ((int16_t)((real) >= 0.99997 ? 32767 : (real) * 32768))

/** What tinyml_decide() returns when there is nothing new. */
#define TINYML_UNDECIDED (-1)

struct tinyml_decision {
	int16_t *history;  /* average * classes scores: a ring of runs */
	int32_t *sums;     /* of each class over the history */
	uint16_t classes;  /* scores of a run */
	uint16_t average;  /* runs that are averaged; before the first, all scores are 0 */
	uint16_t hold_off; /* runs after a decision in which there is no other */
	int16_t on;        /* an average that high decides for the class */
	int16_t off;      /* one lower than that lets go of it: only then can it be decided again */
	uint32_t ignored; /* bit i: never decide for class i (silence, unknown) */
	uint16_t next;    /* row of the history that is overwritten next */
	uint16_t waiting; /* runs of the hold-off that are left */
	int16_t active;   /* class that was decided for and not let go of, or TINYML_UNDECIDED */
};

/** Define a decision with its memory; settings follow as assignments. */
#define TINYML_DECISION(name, class_count, average_runs)                                           \
	static int16_t name##_history[(class_count) * (average_runs)];                             \
	static int32_t name##_sums[class_count];                                                   \
	static struct tinyml_decision name = {                                                     \
		.history = name##_history,                                                         \
		.sums = name##_sums,                                                               \
		.classes = (class_count),                                                          \
		.average = (average_runs),                                                         \
		.on = 16384,                                                                       \
		.off = 16384,                                                                      \
		.active = TINYML_UNDECIDED,                                                        \
	}

/**
 * Take the scores of a run, whatever their type: at least `classes` of them. Returns the class that
 * is decided for now, once; TINYML_UNDECIDED if there is none, or none that is new.
 */
int tinyml_decide(struct tinyml_decision *decision, const struct tinyml_tensor *scores);

/** The same for scores that are counted in 1/32768 already. */
int tinyml_decide_scores(struct tinyml_decision *decision, const int16_t *scores);

/** The average of a class, in 1/32768. */
static inline int32_t tinyml_decision_average(const struct tinyml_decision *decision,
					      uint16_t class_index)
{
	return decision->sums[class_index] / decision->average;
}

/** Forget all scores and decisions; the settings stay. */
void tinyml_decision_reset(struct tinyml_decision *decision);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_DECISION_H_ */
