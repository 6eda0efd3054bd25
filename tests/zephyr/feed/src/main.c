/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A timer's interrupt plays noise into a ring; a thread feeds the model, whose output is its
 * features with the other sign. Nothing may be lost, and every feature is the one that numpy
 * computes. */

#include <zephyr/kernel.h>
#include <zephyr/ztest.h>

#include <tinyml/stream.h>

#include "expected.h"
#include "fed.h"

enum {
	BLOCK = 160,
	BLOCKS = EXPECTED_SAMPLES / BLOCK,
};

static int16_t memory[3 * BLOCK];
static struct tinyml_ring ring = TINYML_RING(memory);
static uint32_t seed = 1;
static int blocks;
static bool fits = true;

static K_SEM_DEFINE(arrived, 0, BLOCKS);

static void play(struct k_timer *timer)
{
	static int16_t block[BLOCK];

	for (int i = 0; i < BLOCK; i++) {
		seed = seed * 1664525u + 1013904223u;
		block[i] = (int16_t)((int32_t)(seed >> 16) - 32768);
	}
	fits = tinyml_ring_put(&ring, block, sizeof(block)) && fits;
	k_sem_give(&arrived);
	if (++blocks == BLOCKS) {
		k_timer_stop(timer);
	}
}

static K_TIMER_DEFINE(microphone, play, NULL);

ZTEST(feed, test_features)
{
	int rows = 0;

	k_timer_start(&microphone, K_MSEC(20), K_MSEC(20));
	for (int n = 0; n < BLOCKS; n++) {
		static int16_t block[BLOCK];
		size_t used = 0;

		zassert_ok(k_sem_take(&arrived, K_SECONDS(10)));
		zassert_equal(tinyml_ring_get(&ring, block, sizeof(block)), sizeof(block));
		while (used < BLOCK) {
			size_t taken;
			const int runs = fed_feed(block + used, BLOCK - used, &taken);

			zassert_true(runs >= 0);
			used += taken;
			for (int i = 0; runs > 0 && i < EXPECTED_WIDTH; i++) {
				const float feature = -fed_output()[i] / 0.0390625f;

				zassert_equal((int)feature, expected[rows][i], "row %d, %d", rows,
					      i);
			}
			rows += runs;
		}
	}
	zassert_equal(rows, EXPECTED_ROWS);
	zassert_true(fits);
	zassert_equal(tinyml_ring_dropped(&ring), 0);
}

ZTEST_SUITE(feed, NULL, NULL, NULL, NULL, NULL);
