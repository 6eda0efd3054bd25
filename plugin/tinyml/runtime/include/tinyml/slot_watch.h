/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * What the model in a slot sees and decides, in the counters of <tinyml/watch.h>, and a new model
 * that is kept only if its figures hold:
 *
 *	TINYML_SLOT_WATCH_DEFINE(seen, digits);
 *	static const struct tinyml_slot_limits limits = {.runs = 500, .margin = 77};
 *
 *	digits.model.run();                                   counted
 *	tinyml_slots_confirm_by_watch(&slots, &seen, &limits);  after each run
 *
 * The firmware counts, so that it does not matter who packed the model, and whether the image has
 * code. It knows no more of a model than its tensors: the first input and the first output count,
 * there is no reference and no drift. Outputs whose quantisation is that of a softmax, or whose
 * first floats add up to 1, are scores; others are logits.
 */

#ifndef TINYML_SLOT_WATCH_H_
#define TINYML_SLOT_WATCH_H_

#include <tinyml/slots.h>
#include <tinyml/watch.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The most classes whose decisions are counted one by one. */
#define TINYML_SLOT_WATCH_CLASSES 16

struct tinyml_slot_counters {
	struct tinyml_watch_totals totals;
	struct tinyml_watch_scores scores;
	uint32_t input_bins[TINYML_WATCH_BINS];
	uint32_t output_bins[TINYML_WATCH_BINS];
	uint32_t decisions[TINYML_SLOT_WATCH_CLASSES];
};

/** What the first input of models in a slot should look like: `tinyml watch MODEL --reference`
 * writes it. Models with another type of input are counted without it. */
struct tinyml_slot_reference {
	int32_t edges[TINYML_WATCH_BINS - 1]; /* keys: <tinyml/watch.h> */
	uint16_t shares[TINYML_WATCH_BINS];   /* in 1/32768 */
	uint8_t type;                         /* enum tinyml_type */
};

/** Counters of whatever model is in a slot. TINYML_SLOT_WATCH_DEFINE() makes them. */
struct tinyml_slot_watch {
	struct tinyml_watch watch; /* like that of any other watched model */
	struct tinyml_slot *slot;
	int (*run_model)(void); /* what the model's own pointer is while it is counted */
	const struct tinyml_slot_reference *reference; /* the application's; NULL: no drift */
	struct tinyml_watch_values input;
	struct tinyml_watch_values output_values;
	struct tinyml_watch_classes output_classes;
	struct tinyml_watch_output output;
	struct tinyml_slot_counters counters;
	uint32_t version[2]; /* of the model that is counted */
	uint8_t sha256[8];
	bool undecided; /* whether floats are scores or logits */
};

/** Counters called @a watch_name for the model of TINYML_SLOT_DEFINE(@a slot_name, ...). */
#define TINYML_SLOT_WATCH_DEFINE(watch_name, slot_name)                                            \
	static int watch_name##_run(void);                                                         \
	struct tinyml_slot_watch watch_name = {                                                    \
		.watch = {.model = &slot_name.model,                                               \
			  .totals = &watch_name.counters.totals,                                   \
			  .bytes = sizeof(struct tinyml_slot_counters)},                           \
		.slot = &slot_name,                                                                \
		.run_model = watch_name##_run,                                                     \
	};                                                                                         \
	static int watch_name##_run(void)                                                          \
	{                                                                                          \
		return tinyml_slot_watch_run(&watch_name);                                         \
	}                                                                                          \
	extern struct tinyml_slot_watch watch_name /* the semicolon comes from the caller */

/**
 * Count the runs of the model that is in the slot now, from 0. To be called after a model was
 * opened; tinyml_slots_confirm_by_watch() does so where it finds another model.
 */
void tinyml_slot_watch_open(struct tinyml_slot_watch *seen);

/** What `model.run` does while it is counted. */
int tinyml_slot_watch_run(struct tinyml_slot_watch *seen);

/** What a model must keep on trial; means of all runs. What is 0 is not limited. */
struct tinyml_slot_limits {
	uint32_t runs;     /* that a trial takes; at least 1 */
	uint32_t margin;   /* of the first class over the second, at least, in 1/256 */
	uint32_t score;    /* of the first class, at least, in 1/256 */
	uint32_t entropy;  /* at most, in 1/32 bit */
	uint32_t switches; /* of decisions, at most, in 1000 runs */
	uint32_t outside;  /* elements of the input at the ends of its range, at most, in 1000 */
	uint32_t drift;    /* of the input from the reference, at most, in 1/TINYML_WATCH_DRIFT */
	uint32_t errors;   /* runs that fail, at most; the next one ends the trial */
};

enum tinyml_slot_verdict {
	TINYML_SLOT_WAITING,   /* it is on trial, and has had too few runs */
	TINYML_SLOT_CONFIRMED, /* now */
	TINYML_SLOT_GIVEN_UP,  /* now; the model before it is in use again, or none */
	TINYML_SLOT_SETTLED,   /* there is no model on trial */
};

/** Whether the figures hold. A figure that was not counted does not, if it is limited. */
bool tinyml_slot_watch_holds(const struct tinyml_slot_watch *seen,
			     const struct tinyml_slot_limits *limits);

/**
 * Confirm the model on trial after `runs` runs if its figures hold, and reject it if not. Call it
 * after each run, in the thread that runs the model.
 *
 * @return one of tinyml_slot_verdict, or an error of the flash (negative; tinyml_slot_error)
 */
int tinyml_slots_confirm_by_watch(struct tinyml_slots *slots, struct tinyml_slot_watch *seen,
				  const struct tinyml_slot_limits *limits);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_SLOT_WATCH_H_ */
