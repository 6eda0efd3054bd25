/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * What a model sees and decides in the field, in counters. A model that is compiled with
 * `watch: true` counts in every run, with integers alone, so that the same inputs give the same
 * counters on every core and in `tinyml watch --replay`.
 *
 *	const struct kws_watch *counted = kws_watch();  // typed, for the application
 *	kws_watch_reset();                              // the next period begins
 *
 *	&kws_watcher                                    // for code that handles any model
 *
 * Elements are counted by their order, not by their value: a key is the stored integer, or the bits
 * of a float in an order of their own. Edges between bins are keys, too.
 */

#ifndef TINYML_WATCH_H_
#define TINYML_WATCH_H_

#include <tinyml/tinyml.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bins of a histogram. The first and the last have what lies at or outside the ends of the range.
 */
#define TINYML_WATCH_BINS 8

/** Scores are counted in 1/256, entropies in 1/32 bit, drift in 1/10000. */
#define TINYML_WATCH_SCORE   256
#define TINYML_WATCH_ENTROPY 32
#define TINYML_WATCH_DRIFT   10000

/** A clock for the cycles of a run: a port header can define it, such as a reading of DWT->CYCCNT.
 */
#ifndef TINYML_WATCH_CLOCK
#define TINYML_WATCH_CLOCK() 0u
#endif

/** Of all runs since the last reset. */
struct tinyml_watch_totals {
	uint64_t cycles;
	uint32_t cycles_min;
	uint32_t cycles_max;
	uint32_t runs;   /* that succeeded */
	uint32_t errors; /* runs that did not */
};

/** Of an output with classes. */
struct tinyml_watch_scores {
	uint32_t top;      /* sum of the largest scores, in 1/256 */
	uint32_t margin;   /* sum of the distances between the two largest, in 1/256 */
	uint32_t entropy;  /* sum, in 1/32 bit */
	uint32_t switches; /* runs that decided otherwise than the run before */
	uint32_t last;     /* decision of the last run, counted from 1; 0: there was none */
};

/** How the elements of an input or output are counted in a histogram. */
struct tinyml_watch_values {
	uint32_t *bins; /* TINYML_WATCH_BINS of them */
	uint32_t elements;
	uint32_t stride;                       /* every stride-th is counted in a run; 0: none */
	int32_t edges[TINYML_WATCH_BINS - 1];  /* the keys with which bins 1 to 7 begin */
	uint16_t reference[TINYML_WATCH_BINS]; /* shares to compare with, in 1/32768 */
	uint8_t type;                          /* enum tinyml_type */
	bool has_reference;
};

/** How decisions are counted. */
struct tinyml_watch_classes {
	/** The score of an element, or a number in proportion to it: at most about 256. */
	uint32_t (*score)(const struct tinyml_watch_classes *classes, int32_t key, int32_t best);
	struct tinyml_watch_scores *scores;
	uint32_t *decisions; /* of each class; NULL if there are too many */
	uint8_t *
		transitions; /* classes * (classes - 1), without those to the same class; or NULL */
	uint32_t multiplier; /* from stored integers to 1/2^24 */
	int32_t zero_point;
	uint16_t classes;
	uint8_t type;
};

/** An output has either. */
struct tinyml_watch_output {
	const struct tinyml_watch_values *values;
	const struct tinyml_watch_classes *classes;
};

/** What generated code knows about the counters of a model. */
struct tinyml_watch {
	const struct tinyml_model *model;
	struct tinyml_watch_totals *totals;       /* the beginning of all counters */
	const struct tinyml_watch_values *inputs; /* and after them, the channels of the first */
	const struct tinyml_watch_output *outputs;
	uint32_t bytes;     /* of all counters */
	uint32_t most_runs; /* of a period; then nothing is counted before the next reset */
	uint32_t version;   /* of the model, as its file has it */
	uint8_t input_count;
	uint8_t output_count;
	uint8_t channel_count; /* 0: the first input is counted as a whole only */
};

/** Start the next period: all counters become zero. */
void tinyml_watch_reset(const struct tinyml_watch *watch);

/**
 * How far what was counted is from the reference: the Jensen-Shannon divergence of the two
 * distributions, from 0 (equal) to TINYML_WATCH_DRIFT (nothing in common). -1 if there is no
 * reference, or nothing was counted.
 */
int32_t tinyml_watch_drift(const struct tinyml_watch_values *values);

/**
 * The counters, what they are compared with and the drift, as CBOR (RFC 8949); docs/watch.md
 * describes it. Writes the part from `offset` that fits into `room` bytes, and returns the bytes of
 * the whole: at most `room` if offset is 0 and all of it fits.
 */
size_t tinyml_watch_encode(const struct tinyml_watch *watch, size_t offset, uint8_t *buffer,
			   size_t room);

/* --- for generated code and the files of the runtime ----------------------------------------- */

/** Count the inputs before a run, and its outputs afterwards. */
void tinyml_watch_before(const struct tinyml_watch *watch, const void *const *inputs);
void tinyml_watch_after(const struct tinyml_watch *watch, const void *const *outputs, int status,
			uint32_t cycles);

/** Count a part of the first input that arrives in parts: @a count elements from @a first on. */
void tinyml_watch_part(const struct tinyml_watch *watch, const void *data, uint32_t first,
		       uint32_t count);

/** Count the same part by channel, which is the last axis. */
void tinyml_watch_channels(const struct tinyml_watch *watch, const void *data, uint32_t first,
			   uint32_t count);

/** The place of an element in the order of its type. */
int32_t tinyml_watch_key(const void *data, uint32_t index, uint8_t type);

/** Count elements in bins; the run decides with which one it begins. */
void tinyml_watch_count(const struct tinyml_watch_values *values, const void *data, uint32_t run);

/** Scores: of elements that are probabilities, and of logits, as softmax has them. */
uint32_t tinyml_watch_score(const struct tinyml_watch_classes *classes, int32_t key, int32_t best);
uint32_t tinyml_watch_score_f32(const struct tinyml_watch_classes *classes, int32_t key,
				int32_t best);
uint32_t tinyml_watch_logit(const struct tinyml_watch_classes *classes, int32_t key, int32_t best);
uint32_t tinyml_watch_logit_f32(const struct tinyml_watch_classes *classes, int32_t key,
				int32_t best);

/** log2(x) in 1/65536, for 1 <= x <= 65536. */
uint32_t tinyml_watch_log2(uint32_t x);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_WATCH_H_ */
