/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A timer's interrupt plays noise into a ring; a thread feeds the model, whose output is its
 * features with the other sign. Nothing may be lost, and every feature is the one that numpy
 * computes. */

#include <string.h>

#include <zephyr/kernel.h>
#include <zephyr/ztest.h>

#include <tinyml/stream.h>

#include "expected.h"
#include "fed.h"
#include "rows.h"
#include "whole.h"

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

static int8_t picture[ROWS_ROWS][ROWS_ROW_ELEMENTS];

static void expect_the_same(void)
{
	memcpy(whole_input(), picture, sizeof(picture));
	zassert_ok(whole_run());
	zassert_mem_equal(rows_output(), whole_output(), ROWS_OUTPUT_BYTES);
}

/* A camera's rows, one at a time: the model that gets them computes what the other one computes
 * from the whole picture, which it never has. */
ZTEST(feed, test_rows)
{
	BUILD_ASSERT(sizeof(picture) == WHOLE_INPUT_BYTES);
	for (int i = 0; i < ROWS_ROWS * ROWS_ROW_ELEMENTS; i++) {
		(&picture[0][0])[i] = (int8_t)(i * 37 % 128);
	}
	zassert_equal(rows_feed_rows(picture[0], 1), TINYML_EINVAL, "before the beginning");
	zassert_ok(rows_begin());
	zassert_equal(rows_feed_rows(picture[0], 3), ROWS_ROWS - 3);
	zassert_ok(rows_begin(), "a picture that is abandoned");
	for (int row = 0; row < ROWS_ROWS; row++) {
		zassert_equal(rows_feed_rows(picture[row], 1), ROWS_ROWS - 1 - row);
	}
	zassert_equal(rows_feed_rows(picture[0], 1), TINYML_EINVAL, "after the end");
	expect_the_same();

	picture[3][3] = -100;
	zassert_ok(rows_run(&picture[0][0]), "from memory that has all of it");
	expect_the_same();
}

ZTEST_SUITE(feed, NULL, NULL, NULL, NULL, NULL);
