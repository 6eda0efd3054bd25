/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers of float whose weights are mostly zero: <tinyml/dense.h>. */

#include <stddef.h>

#include <tinyml/byte_weights.h>
#include <tinyml/dense.h>
#include <tinyml/play_records.h>

void tinyml_play_dense_sparse_f32(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_dense_sparse_f32 *, const float *, float *);
	const struct tinyml_play_dense_runs *record = play->record;
	const struct tinyml_dense_sparse_f32 p = {
		.rows = record->rows,
		.inputs = record->inputs,
		.outputs = record->outputs,
		.weights = tinyml_play_table(play, record->weights),
		.places = tinyml_play_table(play, record->runs),
		.counts = tinyml_play_table(play, record->counts),
		.bias = tinyml_play_table(play, record->bias),
		.out_min = record->out_min,
		.out_max = record->out_max,
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

void tinyml_play_dense_runs_f32(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_dense_runs_f32 *, const float *, float *);
	const struct tinyml_play_dense_runs *record = play->record;
	const struct tinyml_dense_runs_f32 p = {
		.rows = record->rows,
		.inputs = record->inputs,
		.outputs = record->outputs,
		.weights = tinyml_play_table(play, record->weights),
		.runs = tinyml_play_table(play, record->runs),
		.counts = tinyml_play_table(play, record->counts),
		.bias = tinyml_play_table(play, record->bias),
		.out_min = record->out_min,
		.out_max = record->out_max,
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

void tinyml_play_dense_runs_f32_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_dense_runs_f32_s8 *, const float *, float *);
	const struct tinyml_play_dense_runs *record = play->record;
	const struct tinyml_dense_runs_f32_s8 p = {
		.rows = record->rows,
		.inputs = record->inputs,
		.outputs = record->outputs,
		.weights = tinyml_play_table(play, record->weights),
		.runs = tinyml_play_table(play, record->runs),
		.counts = tinyml_play_table(play, record->counts),
		.scales = tinyml_play_table(play, record->scales),
		.bias = tinyml_play_table(play, record->bias),
		.out_min = record->out_min,
		.out_max = record->out_max,
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

/* Operands, and tables with an entry for each output. */
static void play_sparse_outputs(struct tinyml_check *check)
{
	const struct tinyml_play_dense_runs *r = check->record;
	const uint32_t rows = (uint32_t)r->rows, outputs = (uint32_t)r->outputs;
	const uint32_t inputs = (uint32_t)r->inputs;

	tinyml_check_that(check, r->rows > 0 && r->inputs > 0 && r->inputs <= UINT16_MAX &&
					 r->outputs > 0 && r->weights != 0u && r->runs != 0u &&
					 r->counts != 0u);
	tinyml_check_reads(check, 0, tinyml_check_times(tinyml_check_times(rows, inputs), 4), 4);
	tinyml_check_writes(check, 1, tinyml_check_times(tinyml_check_times(rows, outputs), 4), 4);
	tinyml_check_constants(check, r->counts, tinyml_check_times(outputs, 2), 2);
	if (r->bias != 0u) {
		tinyml_check_constants(check, r->bias, tinyml_check_times(outputs, 4), 4);
	}
}

/* The weights of an output, or its runs; `each` is the bytes of one in the table of places. What
 * they reach is inside the input, and there are no more of them than inputs. Returns how many
 * weights there are. */
static uint32_t play_sparse_places(struct tinyml_check *check, bool runs)
{
	const struct tinyml_play_dense_runs *r = check->record;
	const uint32_t inputs = (uint32_t)r->inputs, each = runs ? 4u : 2u;
	const uint16_t *const counts = (const void *)(check->image + r->counts);
	const uint16_t *place = (const void *)(check->image + r->runs);
	uint32_t all = 0, entries = 0;

	for (uint32_t o = 0; o < (uint32_t)r->outputs; o++) {
		entries = tinyml_check_plus(entries, counts[o]);
	}
	tinyml_check_constants(check, r->runs, tinyml_check_times(entries, each), 2);
	for (uint32_t o = 0; !check->wrong && o < (uint32_t)r->outputs; o++) {
		uint32_t weights = 0;

		for (uint32_t i = counts[o]; i > 0u; i--) {
			const uint32_t first = *place++, length = runs ? *place++ : 1u;

			tinyml_check_that(check, length > 0u && first + length <= inputs);
			weights += length;
		}
		tinyml_check_that(check, weights <= inputs);
		all += weights;
	}
	return all;
}

static uint32_t play_sparse_check(struct tinyml_check *check, bool runs, uint32_t size)
{
	const struct tinyml_play_dense_runs *r = check->record;
	uint32_t weights;

	play_sparse_outputs(check);
	if (check->wrong) {
		return 0;
	}
	weights = play_sparse_places(check, runs);
	if (check->wrong) {
		return 0;
	}
	tinyml_check_constants(check, r->weights, tinyml_check_times(weights, size), size);
	return tinyml_check_times(tinyml_check_times((uint32_t)r->rows, (uint32_t)r->outputs),
				  tinyml_check_plus((uint32_t)r->inputs, 1));
}

uint32_t tinyml_check_dense_sparse_f32(struct tinyml_check *check)
{
	return play_sparse_check(check, false, 4);
}

uint32_t tinyml_check_dense_runs_f32(struct tinyml_check *check)
{
	return play_sparse_check(check, true, 4);
}

uint32_t tinyml_check_dense_runs_f32_s8(struct tinyml_check *check)
{
	const struct tinyml_play_dense_runs *r = check->record;

	tinyml_check_that(check, r->outputs > 0 && r->scales != 0u);
	tinyml_check_constants(check, r->scales, tinyml_check_times((uint32_t)r->outputs, 4), 4);
	return play_sparse_check(check, true, 1);
}
