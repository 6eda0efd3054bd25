/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The network and the server behind it, of which this sample has none: packs are part of the
 * firmware. */

#ifndef DELIVERY_H_
#define DELIVERY_H_

#include <stdint.h>

struct delivery {
	const uint8_t *image;
	uint32_t bytes;
};

enum pack {
	DIGITS_1,
	DIGITS_2,
	FORGED_3,
};

/* The image in a pack that is linked for an address. */
struct delivery order(enum pack pack, uint32_t address);

#endif /* DELIVERY_H_ */
