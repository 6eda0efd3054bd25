/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/maths.h>

#include "suppression.h"

/* The box whose turn it is. */
struct soft_suppression_box {
	struct queue_entry next; /* SUPPRESSION_OUT: nothing is to be decided */
	struct overlap_box box;
	float before;  /* its score when its turn began */
	int32_t since; /* of the chosen boxes, those that it was not compared with yet begin here */
	int32_t end;   /* and end here; the last is the next */
};

struct soft_suppression_state {
	struct queue left;
	struct soft_suppression_box at;
	struct overlap_box *chosen; /* those that can change the score of others */
	int32_t *since;
	int32_t count; /* of chosen boxes */
	int32_t found; /* of results */
};

TINYML_CALLS_OF(soft_suppression_take)
TINYML_CALLS_OF(soft_suppression_lower)
TINYML_CALLS_OF(soft_suppression_keep)
TINYML_CALLS_OF(soft_suppression_decide)
TINYML_TURNS_OF(soft_suppression_choose)

__attribute__((noinline)) static void soft_suppression_take(struct soft_suppression_state *s,
							    const float *boxes)
{
	TINYML_COUNT(soft_suppression_take);
	const struct queue_entry next = queue_next(&s->left);

	s->at.next = next;
	if (next.index >= 0) {
		s->at.box = suppression_box(&boxes[4 * next.index]);
		s->at.before = next.score;
		s->at.since = s->since[next.index];
		s->at.end = s->count;
	}
}

/* Lower the score of a box by what it has in common with another. Returns false if it is out. */
__attribute__((noinline)) static bool
soft_suppression_lower(const struct tinyml_suppression *p,
		       const struct tinyml_suppression_limits *limits,
		       const struct overlap_box *box, const struct overlap_box *other, float *score)
{
	TINYML_COUNT(soft_suppression_lower);
	const float share = suppression_share(box, other);
	const float power = real_product(real_product(p->scale, share), share);

	*score = real_product(*score, tinyml_expf(power));
	return !suppression_reaches(share, limits->overlap) && real_below(limits->score, *score);
}

static inline void soft_suppression_compare(const struct tinyml_suppression *p,
					    const struct tinyml_suppression_limits *limits,
					    struct soft_suppression_state *s)
{
	struct soft_suppression_box *at = &s->at;

	at->end--;
	if (!soft_suppression_lower(p, limits, &at->box, &s->chosen[at->end], &at->next.score)) {
		at->next.index = SUPPRESSION_OUT;
		at->end = at->since;
	}
}

/* A result. `mark` is what the box is in the queue from then on. */
__attribute__((noinline)) static void soft_suppression_keep(struct soft_suppression_state *s,
							    const struct tinyml_suppressed *y,
							    int32_t index, int32_t mark)
{
	TINYML_COUNT(soft_suppression_keep);
	y->indices[s->found] = index;
	y->scores[s->found] = s->at.next.score;
	s->found++;
	queue_add(&s->left, (struct queue_entry){s->at.next.score, mark});
}

/* What the box will be in the queue when it is chosen, from a comparison with itself. */
static inline int32_t soft_suppression_mark(const struct tinyml_suppression *p,
					    const struct tinyml_suppression_limits *limits,
					    struct soft_suppression_state *s)
{
	const struct soft_suppression_box *at = &s->at;
	float own = at->before;

	if (!soft_suppression_lower(p, limits, &at->box, &at->box, &own)) {
		s->chosen[s->count] = at->box;
		s->count++;
		return SUPPRESSION_OUT;
	}
	if (suppression_empty(at->box.area) &&
	    tinyml_bits_of_float(own) == tinyml_bits_of_float(at->before)) {
		return suppression_again(at->next.index); /* and it changes no other */
	}
	TINYML_FORGET_TOTAL(soft_suppression_take);
	TINYML_FORGET_TOTAL(soft_suppression_lower);
	TINYML_FORGET_TOTAL(soft_suppression_decide);
	TINYML_FORGET_TOTAL(soft_suppression_choose);
	s->chosen[s->count] = at->box;
	s->count++;
	return at->next.index;
}

/* Choose the box if its score stayed. Otherwise it has another turn. */
__attribute__((noinline)) static void
soft_suppression_decide(const struct tinyml_suppression *p,
			const struct tinyml_suppression_limits *limits,
			struct soft_suppression_state *s, const struct tinyml_suppressed *y)
{
	const struct queue_entry *next = &s->at.next;

	TINYML_COUNT(soft_suppression_decide);
	if (next->index < 0) {
		soft_suppression_keep(s, y, suppression_again(next->index), next->index);
		return;
	}
	s->since[next->index] = s->count;
	if (tinyml_bits_of_float(next->score) == tinyml_bits_of_float(s->at.before)) {
		soft_suppression_keep(s, y, next->index, soft_suppression_mark(p, limits, s));
	} else {
		queue_add(&s->left, *next);
	}
}

/*
 * A turn compares one box with one that is chosen, or decides about it and takes the next. So the
 * number of turns has a bound: every box is compared once with every chosen one.
 */
__attribute__((noinline)) static void
soft_suppression_choose(const struct tinyml_suppression *p,
			const struct tinyml_suppression_limits *limits,
			struct soft_suppression_state *s, const struct tinyml_suppressed *y,
			const float *boxes, int32_t most, int32_t turns)
{
	for (;;) {
		TINYML_COUNT(soft_suppression_choose);
		if (s->at.end > s->at.since) {
			soft_suppression_compare(p, limits, s);
		} else {
			if (s->at.next.index != SUPPRESSION_OUT) {
				soft_suppression_decide(p, limits, s, y);
			}
			if (s->left.count == 0 || s->found == most) {
				return;
			}
			soft_suppression_take(s, boxes);
		}
		turns--;
		if (turns == 0) {
			return;
		}
	}
}

/*
 * Each box is compared once with each of the fewer than `rows` boxes that are chosen before its
 * last turn; number k, which is out afterwards, with k, and with itself. A turn without a
 * comparison has a result, or drops a box that was chosen; the last result ends the run. That holds
 * for thresholds up to 1, which equal boxes reach; and for areas below 2^127, of which the double
 * is finite.
 */
static void soft_suppression_totals(const struct tinyml_suppression_limits *limits, int32_t boxes,
				    int32_t rows)
{
	if (boxes <= SUPPRESSION_COUNTED) {
		const bool once = tinyml_bits_of_float(limits->overlap) <= SUPPRESSION_WHOLE;
		const int32_t chosen = once ? rows * (rows - 1) / 2 : rows * (rows - 1);
		const int32_t compared = chosen + (boxes - rows) * (rows - 1);

		calls_of_soft_suppression_lower(compared + rows);
		calls_of_soft_suppression_decide(compared + rows);
		calls_of_soft_suppression_take(compared + 2 * rows - 1);
		turns_of_soft_suppression_choose(2 * compared + 2 * rows);
		calls_of_soft_suppression_keep(rows);
	}
}

void tinyml_soft_suppression_f32(const struct tinyml_suppression *p,
				 struct tinyml_suppression_limits limits, const float *boxes,
				 const float *scores, struct tinyml_suppressed y, void *chosen,
				 void *queue, int32_t *since)
{
	const int32_t rows = p->most < p->boxes ? p->most : p->boxes;
	struct soft_suppression_state s = {
		.left = suppression_collect(p, limits.score, scores, queue),
		.at = {.next.index = SUPPRESSION_OUT},
		.chosen = chosen,
		.since = since};

	s.left.most = p->boxes;
	soft_suppression_totals(&limits, p->boxes, rows);
	for (int32_t i = 0; i < p->boxes; i++) {
		since[i] = 0;
	}
	soft_suppression_choose(p, &limits, &s, &y, boxes,
				s.left.count < rows ? s.left.count : rows,
				2 * p->boxes * rows + 2 * rows);
	suppression_end(p, &y, s.found);
}
