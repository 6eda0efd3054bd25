/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/maths.h>

#include "suppression.h"

/* The box whose turn it is. */
struct soft_suppression_box {
	struct queue_entry next;
	struct overlap_box box;
	float before;  /* its score when its turn began */
	int32_t since; /* of the chosen boxes, those that it was not compared with yet begin here */
	int32_t end;   /* and end here; the last is the next */
	bool lost;     /* it is out */
};

struct soft_suppression_state {
	struct queue left;
	struct soft_suppression_box at;
	struct overlap_box *chosen;
	int32_t *since;
	int32_t found;
};

__attribute__((noinline)) static void soft_suppression_take(struct soft_suppression_state *s,
							    const float *boxes)
{
	const struct queue_entry next = queue_next(&s->left);

	s->at = (struct soft_suppression_box){next,       suppression_box(&boxes[4 * next.index]),
					      next.score, s->since[next.index],
					      s->found,   false};
}

/* Lower the score by what the box has in common with a chosen one. */
__attribute__((noinline)) static void
soft_suppression_compare(const struct tinyml_suppression *p,
			 const struct tinyml_suppression_limits *limits,
			 struct soft_suppression_state *s)
{
	struct soft_suppression_box *at = &s->at;

	at->end--;
	const float share = suppression_share(&at->box, &s->chosen[at->end]);
	const float power = real_product(real_product(p->scale, share), share);

	at->next.score = real_product(at->next.score, tinyml_expf(power));
	at->lost = suppression_reaches(share, limits->overlap) ||
		   !real_below(limits->score, at->next.score);
}

/* Choose the box if its score stayed, and give it another turn. */
__attribute__((noinline)) static void soft_suppression_decide(struct soft_suppression_state *s,
							      const struct tinyml_suppressed *y)
{
	const struct soft_suppression_box *at = &s->at;
	const int32_t found = s->found;

	s->since[at->next.index] = found;
	if (tinyml_bits_of_float(at->next.score) == tinyml_bits_of_float(at->before)) {
		s->chosen[found] = at->box;
		y->indices[found] = at->next.index;
		y->scores[found] = at->next.score;
		s->found = found + 1;
	}
	queue_add(&s->left, at->next);
}

/*
 * A turn compares one box with one that is chosen, or decides about it and takes the next. So the
 * number of turns has a bound that is close: every box is compared once with every chosen one.
 */
void tinyml_soft_suppression_f32(const struct tinyml_suppression *p,
				 struct tinyml_suppression_limits limits, const float *boxes,
				 const float *scores, struct tinyml_suppressed y, void *chosen,
				 void *queue, int32_t *since)
{
	const int32_t turns = 2 * p->boxes * p->most + p->boxes + p->most + 1;
	struct soft_suppression_state s = {
		.left = suppression_collect(p, limits.score, scores, queue),
		.at = {.lost = true},
		.chosen = chosen,
		.since = since};
	const int32_t most = s.left.count < p->most ? s.left.count : p->most;

	for (int32_t i = 0; i < p->boxes; i++) {
		since[i] = 0;
	}
	for (int32_t turn = 0; turn < turns; turn++) {
		if (!s.at.lost && s.at.end > s.at.since) {
			soft_suppression_compare(p, &limits, &s);
			continue;
		}
		if (!s.at.lost) {
			soft_suppression_decide(&s, &y);
		}
		if (s.left.count == 0 || s.found == most) {
			break;
		}
		soft_suppression_take(&s, boxes);
	}
	suppression_end(p, &y, s.found);
}
