/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The Jensen-Shannon divergence of a histogram and its reference, in integers.
 *
 * With the shares p and q it is the sum over all bins of
 *	(p * log2(p) + q * log2(q) - (p + q) * log2((p + q) / 2)) / 2
 * Shares are counted in 1/32768: their sum in 2/32768, whose logarithm is 15 larger, cancels. */

#include <tinyml/watch.h>

#define WHOLE 15 /* bits of a share */

/* p * log2(p); nothing for nothing */
static int64_t drift_product(uint32_t share, int32_t less)
{
	return share == 0u ? 0
			   : (int64_t)share * ((int64_t)tinyml_watch_log2(share) - (int64_t)less);
}

int32_t tinyml_watch_drift(const struct tinyml_watch_values *values)
{
	uint32_t shift = 0, total;
	int64_t sum = 0;

	if (!values->has_reference || values->stride == 0u) {
		return -1;
	}
	for (;; shift++) { /* so that a share times 32768 has 32 bits */
		bool fits = true;

		total = 0;
		for (uint32_t i = 0; i < TINYML_WATCH_BINS; i++) {
			total += values->bins[i] >> shift;
			fits = fits && total < 65536u && (values->bins[i] >> shift) < 65536u;
		}
		if (fits) {
			break;
		}
	}
	if (total == 0u) {
		return -1;
	}
	for (uint32_t i = 0; i < TINYML_WATCH_BINS; i++) {
		const uint32_t counted = ((values->bins[i] >> shift) << WHOLE) / total;
		const uint32_t expected = values->reference[i];

		sum += drift_product(counted, 0) + drift_product(expected, 0);
		sum -= drift_product(counted + expected, 65536);
	}
	if (sum < 0) {
		return 0;
	}
	return (int32_t)((sum * TINYML_WATCH_DRIFT) >> (WHOLE + 16 + 1));
}
