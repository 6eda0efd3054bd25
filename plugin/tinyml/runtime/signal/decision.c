/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include <tinyml/decision.h>
#include <tinyml/values.h>

/* Exchange the oldest score of a class for the newest. */
static void decision_note(struct tinyml_decision *d, uint32_t class_index, int32_t score)
{
	int16_t *place = &d->history[(uint32_t)d->next * d->classes + class_index];

	d->sums[class_index] += score - *place;
	*place = (int16_t)score;
}

static int decision_decide(struct tinyml_decision *d)
{
	int best = TINYML_UNDECIDED;

	d->next = (uint16_t)(d->next + 1u < d->average ? d->next + 1u : 0u);
	d->waiting = (uint16_t)(d->waiting > 0 ? d->waiting - 1 : 0);
	if (d->active >= 0 && d->sums[d->active] < d->off * (int32_t)d->average) {
		d->active = TINYML_UNDECIDED;
	}
	for (uint16_t i = 0; i < d->classes; i++) {
		const bool ignored = i < 32 && (d->ignored >> i & 1u) != 0;

		if (!ignored && (best < 0 || d->sums[i] > d->sums[best])) {
			best = i;
		}
	}
	if (best < 0 || best == d->active || d->waiting > 0 ||
	    d->sums[best] < d->on * (int32_t)d->average) {
		return TINYML_UNDECIDED;
	}
	d->active = (int16_t)best;
	d->waiting = (uint16_t)(d->hold_off + (d->hold_off < UINT16_MAX ? 1 : 0));
	return best;
}

int tinyml_decide_scores(struct tinyml_decision *decision, const int16_t *scores)
{
	for (uint32_t i = 0; i < decision->classes; i++) {
		decision_note(decision, i, scores[i]);
	}
	return decision_decide(decision);
}

int tinyml_decide(struct tinyml_decision *decision, const struct tinyml_tensor *scores)
{
	for (uint32_t i = 0; i < decision->classes; i++) {
		const float score = tinyml_load_one(scores, scores->data, i) * 32768.0f;

		decision_note(decision, i,
			      score >= 32767.0f    ? INT16_MAX
			      : score >= -32768.0f ? (int32_t)score
						   : INT16_MIN);
	}
	return decision_decide(decision);
}

void tinyml_decision_reset(struct tinyml_decision *decision)
{
	memset(decision->history, 0,
	       sizeof(*decision->history) * decision->classes * decision->average);
	memset(decision->sums, 0, sizeof(*decision->sums) * decision->classes);
	decision->next = 0;
	decision->waiting = 0;
	decision->active = TINYML_UNDECIDED;
}
