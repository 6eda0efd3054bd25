/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Windows, rings and decisions against the obvious way to do the same, exhaustively for small
 * sizes. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tinyml/decision.h>
#include <tinyml/stream.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __func__, __LINE__, #condition);            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum { STREAM = 200 };

/* Every length, step and size of a frame, fed in pieces of every length: each window that comes out
 * is the part of the stream that it should be. */
static void windows(void)
{
	uint8_t stream[STREAM * 3];

	for (size_t i = 0; i < sizeof(stream); i++) {
		stream[i] = (uint8_t)(i * 7 + 1);
	}
	for (uint32_t bytes = 1; bytes <= 3; bytes++) {
		for (uint32_t frames = 1; frames <= 9; frames++) {
			for (uint32_t step = 1; step <= frames; step++) {
				for (size_t piece = 1; piece <= 2 * frames + 1; piece++) {
					uint8_t *data = malloc(frames * bytes),
						*out = malloc(frames * bytes);
					struct tinyml_sliding window = {
						.data = data,
						.frame_bytes = bytes,
						.frames = frames,
						.step = step,
					};
					uint32_t count = 0;
					size_t fed = 0;

					while (fed < STREAM) {
						const size_t rest = STREAM - fed;

						fed += tinyml_sliding_push(
							&window, stream + fed * bytes,
							piece < rest ? piece : rest);
						if (!tinyml_sliding_full(&window)) {
							continue;
						}
						CHECK(fed == (size_t)count * step + frames);
						CHECK(tinyml_sliding_push(&window, stream, 1) == 0);
						tinyml_sliding_copy(&window, out);
						CHECK(memcmp(out,
							     stream + (size_t)count * step * bytes,
							     frames * bytes) == 0);
						tinyml_sliding_advance(&window);
						count++;
					}
					CHECK(count == (STREAM - frames) / step + 1);
					tinyml_sliding_reset(&window);
					CHECK(tinyml_sliding_push(&window, stream, STREAM) ==
					      frames);
					tinyml_sliding_copy(&window, out);
					CHECK(memcmp(out, stream, frames * bytes) == 0);
					free(data);
					free(out);
				}
			}
		}
	}
}

/* Every size, every place to begin at, every amount put and taken: nothing lost, nothing made up.
 */
static void rings(void)
{
	for (uint32_t size = 1; size <= 13; size++) {
		for (uint32_t start = 0; start < 2 * size; start++) {
			for (uint32_t put = 0; put <= size + 1; put++) {
				for (uint32_t get = 0; get <= size + 1; get++) {
					uint8_t *data = malloc(size);
					struct tinyml_ring ring = {.data = data,
								   .size = size,
								   .written = start,
								   .read = start};
					uint8_t in[16], out[16];
					uint8_t next_in = 0, next_out = 0;
					uint32_t used = 0, dropped = 0;

					for (uint32_t turn = 0; turn < 3 * size; turn++) {
						for (uint32_t i = 0; i < put; i++) {
							in[i] = (uint8_t)(next_in + i);
						}
						const bool fits = put <= size - used;

						CHECK(tinyml_ring_put(&ring, in, put) == fits);
						used += fits ? put : 0;
						dropped += fits ? 0 : put;
						next_in = (uint8_t)(next_in + (fits ? put : 0));
						CHECK(tinyml_ring_used(&ring) == used);
						CHECK(tinyml_ring_dropped(&ring) == dropped);

						const uint32_t taken =
							tinyml_ring_get(&ring, out, get);

						CHECK(taken == (get < used ? get : used));
						for (uint32_t i = 0; i < taken; i++) {
							CHECK(out[i] == next_out++);
						}
						used -= taken;
					}
					const void *piece;
					const uint32_t there = tinyml_ring_peek(&ring, &piece);

					CHECK(there <= used && (there > 0) == (used > 0));
					for (uint32_t i = 0; i < there; i++) {
						CHECK(((const uint8_t *)piece)[i] ==
						      (uint8_t)(next_out + i));
					}
					tinyml_ring_skip(&ring, there);
					CHECK(tinyml_ring_used(&ring) == used - there);
					free(data);
				}
			}
		}
	}
}

/* A producer that never waits and a consumer in another thread: what arrives is in order, and what
 * does not is counted. */
enum { BLOCKS = 200000 };

static uint8_t shared[252];
static struct tinyml_ring between = TINYML_RING(shared);
static bool finished;

static void *produce(void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < BLOCKS; i++) {
		const uint32_t block[3] = {i, ~i, i * 3};

		(void)tinyml_ring_put(&between, block, sizeof(block));
	}
	__atomic_store_n(&finished, true, __ATOMIC_RELEASE);
	return NULL;
}

static void threads(void)
{
	pthread_t producer;
	uint32_t arrived = 0, expected = 0;

	CHECK(pthread_create(&producer, NULL, produce, NULL) == 0);
	for (;;) {
		const bool last = __atomic_load_n(&finished, __ATOMIC_ACQUIRE);
		uint32_t block[3];

		while (tinyml_ring_used(&between) >= sizeof(block)) {
			CHECK(tinyml_ring_get(&between, block, sizeof(block)) == sizeof(block));
			CHECK(block[0] >= expected && block[1] == ~block[0] &&
			      block[2] == block[0] * 3);
			expected = block[0] + 1;
			arrived++;
		}
		if (last) {
			break;
		}
	}
	CHECK(pthread_join(producer, NULL) == 0);
	CHECK(arrived > 0);
	CHECK(tinyml_ring_dropped(&between) == (BLOCKS - arrived) * sizeof(uint32_t[3]));
}

/* Random scores, decided in floating point from a history that is added up anew each time. */
static void decisions(void)
{
	enum { CLASSES = 3, RUNS = 4, LENGTH = 20000 };
	TINYML_DECISION(decision, CLASSES, RUNS);
	static double history[LENGTH + RUNS][CLASSES];
	uint32_t seed = 1, count = 0, waiting = 0;
	int active = -1;

	decision.on = TINYML_SCORE(0.6);
	decision.off = TINYML_SCORE(0.4);
	decision.hold_off = 7;
	decision.ignored = 1u << 1;
	for (uint32_t t = 0; t < LENGTH; t++) {
		int16_t scores[CLASSES];
		double average[CLASSES] = {0};
		int expected = -1, best = -1;

		for (uint32_t i = 0; i < CLASSES; i++) {
			seed = seed * 1664525u + 1013904223u;
			/* long stretches high or low, so that averages cross both thresholds */
			const uint32_t level =
				(t / 16 * 2654435761u >> (7 + i)) & 1u ? 20000 : 3000;

			scores[i] = (int16_t)(level + (seed >> 20));
			history[t + RUNS][i] = scores[i];
			for (uint32_t run = 0; run < RUNS; run++) {
				average[i] += history[t + RUNS - run][i] / RUNS;
			}
			if (i != 1 && (best < 0 || average[i] > average[best])) {
				best = (int)i;
			}
		}
		if (active >= 0 && average[active] < decision.off) {
			active = -1;
		}
		if (best != active && average[best] >= decision.on && waiting == 0) {
			expected = active = best;
			waiting = 7;
		} else if (waiting > 0) {
			waiting--;
		}
		CHECK(tinyml_decide_scores(&decision, scores) == expected);
		CHECK(decision.active == active);
		for (uint16_t i = 0; i < CLASSES; i++) {
			CHECK(tinyml_decision_average(&decision, i) == (int32_t)average[i]);
		}
		count += expected >= 0;
	}
	CHECK(count > 100 && count < LENGTH / 8);
	tinyml_decision_reset(&decision);
	CHECK(decision.active == TINYML_UNDECIDED && decision.sums[0] == 0 &&
	      decision.waiting == 0);
}

/* Scores of every type that models give, without averaging: 0.8 decides, 0.2 does not. */
static void types(void)
{
	int8_t bytes[2] = {-128 + 51, -128 + 205};
	uint8_t unsigned_bytes[2] = {51, 205};
	float reals[2] = {0.2f, 0.8f};
	int16_t words[2] = {6554, 26214};
	const struct tinyml_tensor tensors[] = {
		{.data = bytes,
		 .bytes = 2,
		 .scale = 1 / 256.0f,
		 .zero_point = -128,
		 .type = TINYML_INT8},
		{.data = unsigned_bytes, .bytes = 2, .scale = 1 / 256.0f, .type = TINYML_UINT8},
		{.data = reals, .bytes = 8, .type = TINYML_FLOAT32},
		{.data = words, .bytes = 4, .scale = 1 / 32768.0f, .type = TINYML_INT16},
	};

	for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); i++) {
		TINYML_DECISION(decision, 2, 1);

		tinyml_decision_reset(&decision);
		decision.on = TINYML_SCORE(0.79);
		CHECK(tinyml_decide(&decision, &tensors[i]) == 1);
		CHECK(tinyml_decide(&decision, &tensors[i]) == TINYML_UNDECIDED); /* not again */
		tinyml_decision_reset(&decision);
		decision.on = TINYML_SCORE(0.81);
		CHECK(tinyml_decide(&decision, &tensors[i]) == TINYML_UNDECIDED);
	}
	reals[0] = 7.0f; /* out of range: saturates */
	reals[1] = -7.0f;
	TINYML_DECISION(decision, 2, 1);

	decision.on = TINYML_SCORE(1.0);
	CHECK(tinyml_decide(&decision, &tensors[2]) == 0);
	CHECK(tinyml_decision_average(&decision, 1) == -32768);
}

int main(void)
{
	windows();
	rings();
	threads();
	decisions();
	types();
	return 0;
}
