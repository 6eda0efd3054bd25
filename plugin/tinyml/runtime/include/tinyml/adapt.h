/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * What a model learns on the device. A model that is compiled with `adapt:` brings the functions of
 * its kind:
 *
 *	kws_run(); kws_learn(label);             // adapt: last, one step
 *	kws_run(); kws_enroll(class);            // adapt: prototypes
 *	kws_run(); kws_learn();                  // adapt: threshold, an example of the normal
 *
 *	const void *bytes = kws_learnt(&size);   // to store them
 *	kws_restore(bytes, size);                // and to take them back
 *	kws_factory();                           // as if nothing had been learnt
 *
 * All arithmetic of float32 is in one order and without fused operations, so that every core and
 * numpy compute the same bits. A function that returns an error has changed nothing.
 */

#ifndef TINYML_ADAPT_H_
#define TINYML_ADAPT_H_

#include <tinyml/tinyml.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Errors, with the values of usual ones of errno.h; TINYML_EINVAL: a label or class out of range.
 */
#define TINYML_ADAPT_NONE   (-2)   /* it is none of the classes */
#define TINYML_ADAPT_EFULL  (-28)  /* there is no free class, or the batch is full */
#define TINYML_ADAPT_EFLASH (-30)  /* the flash cannot be written: <tinyml/adapt_store.h> */
#define TINYML_ADAPT_ELOSS  (-34)  /* the loss is infinite, or a value is not a number */
#define TINYML_ADAPT_ENORUN (-61)  /* no run since the last example, or too few examples */
#define TINYML_ADAPT_EOTHER (-116) /* what was learnt belongs to another model or version */
#define TINYML_ADAPT_EWORSE (-125) /* what was learnt loses accuracy on the self-test */

/** For NAME_enroll(): the first class without an example. */
#define TINYML_ADAPT_NEW (-1)

/** For a platform that saves what was learnt: it gets the status of what may have changed it, and
 * returns it. */
#ifndef TINYML_ADAPT_NOTED
#define TINYML_ADAPT_NOTED(adapt, status) (status)
#endif

/** What precedes learnt values when they are stored. All of it is 0 until something is learnt. */
struct tinyml_adapt_header {
	uint32_t crc;      /* of all that follows it */
	uint32_t kind;     /* enum tinyml_adapt_kind, and the version of the format */
	uint8_t digest[8]; /* of the model and the layer */
	uint32_t count;    /* of steps or examples */
};

enum tinyml_adapt_kind {
	TINYML_ADAPT_LAST = 0x54410001,
	TINYML_ADAPT_PROTOTYPES = 0x54410102,
	TINYML_ADAPT_THRESHOLD = 0x54410201,
};

/** About the last run. */
struct tinyml_adapt_run {
	uint16_t count; /* of examples in the batch */
	uint8_t ready;  /* a run can be learnt from */
	uint8_t batch;  /* NAME_learn_begin() was called */
};

/** What generated code knows about any kind. */
struct tinyml_adapt {
	const struct tinyml_model *model;
	struct tinyml_adapt_header *learnt; /* values follow it */
	struct tinyml_adapt_run *run;
	/** Take an example: a label or class, or targets of a regression. */
	int (*learn)(const struct tinyml_adapt *adapt, int32_t label, const float *targets);
	/** The class of the last run and its distance, or 1 for an unusual score; NULL: the model's
	 * own outputs are the decision. */
	int (*decide)(const struct tinyml_adapt *adapt, float *distance);
	/** 0, or TINYML_ADAPT_EWORSE; NULL without a self-test. */
	int (*check)(const struct tinyml_adapt *adapt);
	/** Begin or end a batch; NULL without batches. */
	int (*batch)(const struct tinyml_adapt *adapt, bool begins);
	/** Forget a class; NULL if there are no classes of its own. */
	int (*forget)(const struct tinyml_adapt *adapt, int32_t number);
	/** Whether values can have been learnt. */
	bool (*valid)(const struct tinyml_adapt *adapt, const void *values);
	uint32_t bytes;     /* of header and values */
	uint32_t run_bytes; /* of what is known about runs, steps included */
	uint32_t kind;
	uint8_t digest[8];
	uint16_t targets; /* of a regression; 0: it learns from labels */
};

/** The bytes of what was learnt, for storing; they stay valid until the next example. NULL if
 * learnt weights fail the self-test of the model. */
const void *tinyml_adapt_learnt(const struct tinyml_adapt *adapt, size_t *bytes);

/** Take learnt bytes back. TINYML_ADAPT_EOTHER: of another model, kind or version;
 * TINYML_ECORRUPT: damaged, or outside the limits. */
int tinyml_adapt_restore(const struct tinyml_adapt *adapt, const void *data, size_t bytes);

/** Forget all that was learnt. */
void tinyml_adapt_factory(const struct tinyml_adapt *adapt);

/** 0, or why tinyml_adapt_restore() refuses bytes. */
int tinyml_adapt_accepts(const struct tinyml_adapt *adapt, const void *data, size_t bytes);

/* --- for a computer that is connected: see <tinyml/host.h> ------------------------------------ */

/** The first byte of a request. Answers begin with a status (4). */
enum tinyml_adapt_action {
	TINYML_ADAPT_INFO,   /* -> kind (4), bytes (4), count (4), targets (4) */
	TINYML_ADAPT_LEARN,  /* label (4), or targets (4 each) */
	TINYML_ADAPT_DECIDE, /* -> distance (4) */
	TINYML_ADAPT_RESET,  /* to what the factory had */
	TINYML_ADAPT_READ,   /* offset (4) -> learnt bytes from there that fit */
	TINYML_ADAPT_WRITE,  /* offset (4), learnt bytes: those after the header first, then it */
	TINYML_ADAPT_BEGIN,
	TINYML_ADAPT_END,
	TINYML_ADAPT_FORGET, /* class (4) */
	TINYML_ADAPT_CHECK,
};

/** The most targets of a regression that a computer can send. */
#define TINYML_ADAPT_TARGETS 16

/** Execute a request; returns the bytes of the answer, which has room for 20 or more. */
size_t tinyml_adapt_request(const struct tinyml_adapt *adapt, const uint8_t *request, size_t bytes,
			    uint8_t *answer, size_t room);

/* --- adapt: last ------------------------------------------------------------------------------ */

/** Labelled embeddings, by which learnt weights are judged. */
struct tinyml_adapt_holdout {
	const int8_t *embeddings;
	const uint16_t *labels;
	uint16_t count;
	uint16_t least; /* that must be right */
};

/** Differences of weights from those of the model file are counted in the steps of each class's
 * weights, differences of biases in steps of its sums. Values: all biases, then all weights. */
struct tinyml_adapt_last {
	struct tinyml_adapt adapt;
	float *values;
	float *velocity;    /* NULL without momentum */
	float *logits;      /* of every example in the batch */
	int8_t *embeddings; /* the same */
	const struct tinyml_adapt_holdout *holdout;
	const int8_t *weights;
	const int32_t *bias; /* with the zero point of the input */
	const int32_t *multiplier;
	const int8_t *shift;
	const float *unit; /* of sums */
	const float *rate;
	const float *bias_rate;
	const float *limit;
	const float *bias_limit;
	float decay;
	float momentum;
	uint16_t classes;
	uint16_t features;
	uint16_t batch;
	int8_t in_zero;
	int8_t out_zero;
	int8_t out_min;
	int8_t out_max;
	bool round_once;
	bool squared;
};

/** The layer itself. */
void tinyml_adapt_dense_s8(const struct tinyml_adapt_last *last, const int8_t *x, int8_t *y);

int tinyml_adapt_learn_last(const struct tinyml_adapt *adapt, int32_t label, const float *targets);
int tinyml_adapt_batch(const struct tinyml_adapt *adapt, bool begins);

/** 0, or TINYML_ADAPT_EWORSE: fewer examples of the self-test are right than before learning. */
int tinyml_adapt_check(const struct tinyml_adapt *adapt);
bool tinyml_adapt_valid_last(const struct tinyml_adapt *adapt, const void *values);

/* --- adapt: prototypes ------------------------------------------------------------------------ */

/** Values: for each class the number of its examples, then their sums. */
struct tinyml_adapt_prototypes {
	struct tinyml_adapt adapt;
	/** From the embedding to the mean of a class that has examples. */
	float (*distance)(const struct tinyml_adapt_prototypes *prototypes, const int16_t *class_);
	int16_t *values;
	int8_t *embedding;
	float scale;
	float reject; /* what is farther is none of the classes */
	uint16_t features;
	uint8_t classes;
	int8_t zero_point;
};

float tinyml_adapt_cosine(const struct tinyml_adapt_prototypes *prototypes, const int16_t *class_);
float tinyml_adapt_euclidean(const struct tinyml_adapt_prototypes *prototypes,
			     const int16_t *class_);

void tinyml_adapt_embed(const struct tinyml_adapt_prototypes *prototypes, const int8_t *x);
int tinyml_adapt_enroll(const struct tinyml_adapt *adapt, int32_t number, const float *targets);
int tinyml_adapt_forget(const struct tinyml_adapt *adapt, int32_t number);
int tinyml_adapt_nearest(const struct tinyml_adapt *adapt, float *distance);
bool tinyml_adapt_valid_prototypes(const struct tinyml_adapt *adapt, const void *values);

/* --- adapt: threshold ------------------------------------------------------------------------- */

struct tinyml_adapt_normal {
	float mean;
	float squares; /* of the distances from it */
	uint32_t count;
};

/** Mean and scale of each feature of an input, and those of the training. */
struct tinyml_adapt_scaling {
	uint32_t *count;        /* of examples that are learnt */
	float *learnt;          /* means, then squares of the distances from them */
	float *pending;         /* the same with the last run */
	const float *reference; /* means, then deviations */
	uint32_t rows;
	uint32_t features; /* of each row */
	uint32_t least;    /* examples; then inputs are scaled, and scores learnt */
	float scale;       /* of the input, if it is int8 */
	int8_t zero_point;
	bool is_float;
};

struct tinyml_adapt_threshold {
	struct tinyml_adapt adapt;
	struct tinyml_adapt_normal *normal;
	float *score;
	const struct tinyml_adapt_scaling *scaling; /* NULL: inputs stay as they are */
	float sigmas;
	uint32_t least;
	uint32_t elements;
	float scale; /* of the output, if it is int8 */
	float in_scale;
	int8_t zero_point;
	int8_t in_zero_point;
	bool is_float;
	bool in_is_float;
};

void tinyml_adapt_score(const struct tinyml_adapt_threshold *threshold, const void *y);
void tinyml_adapt_error(const struct tinyml_adapt_threshold *threshold, const void *y,
			const void *x);
int tinyml_adapt_learn_normal(const struct tinyml_adapt *adapt, int32_t label,
			      const float *targets);
/** What the layers get instead of the input `x`; `y` may be the same. */
void tinyml_adapt_rescale(const struct tinyml_adapt_threshold *threshold, const void *x, void *y);
int tinyml_adapt_learn_scaled(const struct tinyml_adapt *adapt, int32_t label,
			      const float *targets);
bool tinyml_adapt_valid_scaled(const struct tinyml_adapt *adapt, const void *values);
int tinyml_adapt_unusual(const struct tinyml_adapt *adapt, float *sigmas);
bool tinyml_adapt_valid_threshold(const struct tinyml_adapt *adapt, const void *values);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_ADAPT_H_ */
