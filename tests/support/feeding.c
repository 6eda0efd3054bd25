/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Feeds a model from stdin: words (how many samples, or 0 for a reset), each with its samples.
 * After every run the outputs go to stdout. FEED, RESET, OUTPUT, OUTPUT_BYTES, SAMPLE, AXES and
 * HEADER come from the command line; with WHOLE, samples are handed over all at once. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include HEADER

int main(void)
{
	uint32_t count;

	while (fread(&count, sizeof(count), 1, stdin) == 1) {
		if (count == 0) {
			RESET();
			continue;
		}
		SAMPLE *samples =
			malloc(count * AXES * sizeof(SAMPLE)); /* to the byte, for the sanitizer */

		if (samples == NULL ||
		    fread(samples, AXES * sizeof(SAMPLE), count, stdin) != count) {
			return 2;
		}
		size_t used = 0;

		while (used < count) {
			size_t taken = 0;
#ifdef WHOLE
			const int runs = FEED(samples, count, NULL);

			taken = count;
#else
			const int runs = FEED(samples + used * AXES, count - used, &taken);
#endif
			if (runs < 0 || taken > count - used) {
				return 3;
			}
			if (runs > 0 && fwrite(OUTPUT(), 1, OUTPUT_BYTES, stdout) != OUTPUT_BYTES) {
				return 4;
			}
			used += taken;
		}
		free(samples);
	}
	return 0;
}
