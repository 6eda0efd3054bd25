/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/maths.h>

#include "suppression.h"

#define SOFT_SUPPRESSION_COUNTED 0x3fff /* with more boxes, numbers of moves are too large */

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

/* The totals are not known, except how many results there are. */
static inline void soft_suppression_forget(void)
{
	TINYML_FORGET_TOTAL(soft_suppression_take);
	TINYML_FORGET_TOTAL(soft_suppression_lower);
	TINYML_FORGET_TOTAL(soft_suppression_decide);
	TINYML_FORGET_TOTAL(soft_suppression_choose);
	TINYML_FORGET_TOTAL(queue_add);
	TINYML_FORGET_TOTAL(queue_next);
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
	soft_suppression_forget();
	s->chosen[s->count] = at->box;
	s->count++;
	return at->next.index;
}

/* A result: a box whose score stayed, or one of those that are chosen again. */
__attribute__((noinline)) static void
soft_suppression_keep(const struct tinyml_suppression *p,
		      const struct tinyml_suppression_limits *limits,
		      struct soft_suppression_state *s, const struct tinyml_suppressed *y)
{
	struct queue_entry *next = &s->at.next;
	const bool again = next->index < 0;

	TINYML_COUNT(soft_suppression_keep);
	y->indices[s->found] = again ? suppression_again(next->index) : next->index;
	y->scores[s->found] = next->score;
	s->found++;
	if (!again) {
		next->index = soft_suppression_mark(p, limits, s);
	}
}

/* Choose the box if its score stayed. Otherwise it has another turn. It goes back into the queue.
 */
__attribute__((noinline)) static void
soft_suppression_decide(const struct tinyml_suppression *p,
			const struct tinyml_suppression_limits *limits,
			struct soft_suppression_state *s, const struct tinyml_suppressed *y)
{
	const struct queue_entry *next = &s->at.next;
	bool stayed = true;

	TINYML_COUNT(soft_suppression_decide);
	if (next->index >= 0) {
		s->since[next->index] = s->count;
		stayed = tinyml_bits_of_float(next->score) == tinyml_bits_of_float(s->at.before);
	}
	if (stayed) {
		soft_suppression_keep(p, limits, s, y);
	}
	queue_add(&s->left, next->score, next->index);
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

/* 1 + 2 + ... + last */
static inline int32_t soft_suppression_sum(int32_t last)
{
	return last * (last + 1) / 2;
}

/*
 * Moves up in the queue. An entry that moves up m places has 2^m - 1 smaller ones below it. While k
 * boxes are chosen, every other box goes back once at most: when it is the best again, it is
 * chosen. So of those that are smaller, each has gone back before it, or will not. None is chosen:
 * scores fall, so the best is no larger than those that were chosen. If all n = boxes - k go back,
 * number j moves up by log2(j) at most; if some do not, these are the first n - j. Collecting has
 * as many moves as the turns with k = 0 would have. A result moves up to the best at most.
 *
 * A score below zero rises instead: that box is the best and the next result, so there are no other
 * moves for it than twice those of a result.
 *
 * For each power of two, numbers that are no less have one more in their logarithm.
 */
static inline int32_t soft_suppression_moves_up(int32_t boxes, int32_t rows, int32_t to_best)
{
	const int32_t rest = boxes - rows;
	int32_t moves = 0;

	for (int32_t power = 2; power <= boxes; power *= 2) {
		moves += soft_suppression_sum(boxes - power + 1) + rows * to_best;
		moves -= power <= rest ? soft_suppression_sum(rest - power + 1) : 0;
	}
	return moves;
}

/*
 * Moves down: up to the logarithm of how many entries are left. Results and chosen boxes leave
 * 2 * rows - 1 times. While k boxes are chosen, each other box leaves once for comparisons; then up
 * to boxes - k - 1 of the others are left, and those chosen ones that wait, with the same score.
 * While any wait, a box leaves for comparisons once in all, as its score falls, or rises and is the
 * next result. So if the first of those that wait was number f, the box did not leave when f were
 * chosen, unless it does now, and has that turn's moves: with k - f + 1 or fewer that wait, no more
 * than boxes - f entries are left.
 */
static inline int32_t soft_suppression_moves_down(int32_t boxes, int32_t rows)
{
	const int32_t most = boxes - 1;
	const int32_t rest = boxes - rows;
	int32_t moves = 0;

	for (int32_t power = 2; power <= most; power *= 2) {
		const int32_t less = power > rest ? power - 1 : rest;

		moves += soft_suppression_sum(most) - soft_suppression_sum(less) + 2 * rows - 1;
	}
	return moves;
}

static inline void soft_suppression_moves(const struct tinyml_suppression_limits *limits,
					  int32_t boxes, int32_t rows)
{
	const int32_t to_best = tinyml_bits_of_float(limits->score) <= 0x80000000u ? 1 : 2;

	turns_of_queue_add(soft_suppression_moves_up(boxes, rows, to_best));
	turns_of_queue_next(soft_suppression_moves_down(boxes, rows));
}

/*
 * Each box is compared once with each of the fewer than `rows` boxes that are chosen before its
 * last turn, so those that are not chosen have (boxes - rows) * (rows - 1) comparisons at most;
 * `chosen`: those of the chosen ones. These are compared with themselves as well. A turn without a
 * comparison has a result, or drops a box that was chosen; the last result ends the run.
 */
static inline void soft_suppression_turns(int32_t boxes, int32_t rows, int32_t chosen)
{
	const int32_t compared = chosen + (boxes - rows) * (rows - 1);

	calls_of_soft_suppression_lower(compared + rows);
	calls_of_soft_suppression_decide(compared + rows);
	calls_of_soft_suppression_take(compared + 2 * rows - 1);
	turns_of_soft_suppression_choose(2 * compared + 2 * rows);
}

/*
 * Chosen box number k is compared with k others, and is out afterwards. That holds for thresholds
 * up to 1, which equal boxes reach; and for areas below 2^127, of which the double is finite. If a
 * threshold arrives at run time, a bound takes the longer way of the two.
 */
static inline void soft_suppression_totals(const struct tinyml_suppression_limits *limits,
					   int32_t boxes, int32_t rows)
{
	calls_of_soft_suppression_keep(rows);
	soft_suppression_forget();
	if (boxes > SOFT_SUPPRESSION_COUNTED) {
		return;
	}
	if (tinyml_bits_of_float(limits->overlap) > SUPPRESSION_WHOLE) {
		soft_suppression_turns(boxes, rows, rows * (rows - 1));
	} else {
		soft_suppression_turns(boxes, rows, rows * (rows - 1) / 2);
		soft_suppression_moves(limits, boxes, rows);
	}
}

void tinyml_soft_suppression_f32(const struct tinyml_suppression *p,
				 struct tinyml_suppression_limits limits, const float *boxes,
				 const float *scores, struct tinyml_suppressed y, void *chosen,
				 void *queue, int32_t *since)
{
	const int32_t rows = p->most < p->boxes ? p->most : p->boxes;

	soft_suppression_totals(&limits, p->boxes, rows);

	struct soft_suppression_state s = {
		.left = suppression_collect(p, limits.score, scores, queue),
		.at = {.next.index = SUPPRESSION_OUT},
		.chosen = chosen,
		.since = since};

	s.left.most = p->boxes;
	for (int32_t i = 0; i < p->boxes; i++) {
		since[i] = 0;
	}
	soft_suppression_choose(p, &limits, &s, &y, boxes,
				s.left.count < rows ? s.left.count : rows,
				2 * p->boxes * rows + 2 * rows);
	suppression_end(p, &y, s.found);
}
