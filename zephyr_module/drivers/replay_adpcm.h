/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Recordings with four bits a sample: IMA ADPCM in the blocks of WAV files. A block starts with a
 * sample and the index of its step; each code of four bits then moves the sample by steps. Data
 * are words of 16 bits, the first byte of the file in the lower half.
 */

#ifndef TINYML_REPLAY_ADPCM_H_
#define TINYML_REPLAY_ADPCM_H_

#include <stdint.h>

struct replay_adpcm {
	const int16_t *words;
	uint32_t code;  /* the number of the next code in its block; 0: a block begins */
	int32_t value;  /* of the last sample */
	int32_t index;  /* of the step */
	uint32_t codes; /* of a block, and one more */
};

/* A tenth larger each. */
static const int16_t replay_adpcm_steps[] = {
	7,     8,     9,     10,    11,    12,    13,    14,    16,    17,    19,    21,    23,
	25,    28,    31,    34,    37,    41,    45,    50,    55,    60,    66,    73,    80,
	88,    97,    107,   118,   130,   143,   157,   173,   190,   209,   230,   253,   279,
	307,   337,   371,   408,   449,   494,   544,   598,   658,   724,   796,   876,   963,
	1060,  1166,  1282,  1411,  1552,  1707,  1878,  2066,  2272,  2499,  2749,  3024,  3327,
	3660,  4026,  4428,  4871,  5358,  5894,  6484,  7132,  7845,  8630,  9493,  10442, 11487,
	12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
};

#define REPLAY_ADPCM_LAST (int32_t)(sizeof(replay_adpcm_steps) / sizeof(int16_t) - 1u)

static inline int32_t replay_adpcm_within(int32_t value, int32_t low, int32_t high)
{
	return value < low ? low : value > high ? high : value;
}

static inline int16_t replay_adpcm_next(struct replay_adpcm *adpcm)
{
	if (adpcm->code == 0u) {
		adpcm->value = adpcm->words[0];
		adpcm->index = replay_adpcm_within(adpcm->words[1] & 0xff, 0, REPLAY_ADPCM_LAST);
	} else {
		const uint32_t at = adpcm->code - 1u;
		const uint16_t word = (uint16_t)adpcm->words[2u + at / 4u];
		const int32_t code = word >> (at % 4u * 4u) & 15;
		const int32_t step = replay_adpcm_steps[adpcm->index];
		const int32_t size = code & 7;
		int32_t away = step >> 3;

		away += (size & 4) != 0 ? step : 0;
		away += (size & 2) != 0 ? step >> 1 : 0;
		away += (size & 1) != 0 ? step >> 2 : 0;
		adpcm->value = replay_adpcm_within(adpcm->value + ((code & 8) != 0 ? -away : away),
						   INT16_MIN, INT16_MAX);
		adpcm->index = replay_adpcm_within(adpcm->index + (size < 4 ? -1 : 2 * (size - 3)),
						   0, REPLAY_ADPCM_LAST);
	}
	if (++adpcm->code == adpcm->codes) {
		adpcm->words += 2u + (adpcm->codes - 1u) / 4u;
		adpcm->code = 0;
	}
	return (int16_t)adpcm->value;
}

#endif /* TINYML_REPLAY_ADPCM_H_ */
