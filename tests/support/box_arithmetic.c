/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* runtime/boxes/real.h in integers, against the floats of the host. Prints each function that gives
 * something else, with its operands; the argument is the number of pairs. */

#define BOXES_IN_INTEGERS 1

#include <stdio.h>
#include <stdlib.h>

#include "boxes/real.h"

static uint64_t state = 38;

static uint32_t drawn(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 32);
}

/* Numbers of all sizes, many of them at the ends of a range or close to zero. */
static float number(void)
{
	static const uint32_t ends[] = {0u,          1u,          0x7fffffu,   0x800000u,
					0x800001u,   0xffffffu,   0x3f7fffffu, 0x3f800000u,
					0x3f800001u, 0x7f000000u, 0x7f7fffffu, 0x7f800000u,
					0x7fc00000u};

	switch (drawn() % 8u) {
	case 0:
		return tinyml_float_of_bits(ends[drawn() % 13u] | (drawn() & 0x80000000u));
	case 1:
		return tinyml_float_of_bits(drawn() & 0x807fffffu);
	case 2:
		return tinyml_float_of_bits(drawn() | 0x7ff000u);
	case 3:
		return tinyml_float_of_bits(drawn() & 0xff8001ffu);
	case 4:
	case 5:
		return tinyml_float_of_bits(0x3f000000u + drawn() % 0x1800000u);
	default:
		return tinyml_float_of_bits(drawn());
	}
}

static int wrong(const char *name, float found, float expected, float a, float b)
{
	const uint32_t bits = tinyml_bits_of_float(found);

	if (expected != expected ? found != found : bits == tinyml_bits_of_float(expected)) {
		return 0;
	}
	printf("%s(%a, %a) is %a, not %a\n", name, (double)a, (double)b, (double)found,
	       (double)expected);
	return 1;
}

int main(int argc, char **argv)
{
	const long pairs = argc > 1 ? atol(argv[1]) : 1000;
	int faults = 0;

	for (long i = 0; i < pairs && faults < 20; i++) {
		const float a = number();
		const uint32_t near =
			(tinyml_bits_of_float(a) + drawn() % 5u - 2u) ^ (drawn() << 31);
		const float b = i % 3 == 0 ? tinyml_float_of_bits(near) : number();
		const int32_t whole = (int32_t)(drawn() % 131072u) - 65536;

		faults += wrong("sum", real_sum(a, b), a + b, a, b);
		faults += wrong("difference", real_difference(a, b), a - b, a, b);
		faults += wrong("product", real_product(a, b), a * b, a, b);
		faults += wrong("quotient", real_quotient(a, b), a / b, a, b);
		faults += wrong("below", (float)real_below(a, b), (float)(a < b), a, b);
		faults += wrong("positive", (float)real_positive(a), (float)(a > 0.0f), a, b);
		faults += wrong("of_int", real_of_int(whole), (float)whole, (float)whole, 0.0f);
		faults += wrong("scaled", real_scaled(whole, b), (float)whole * b, (float)whole, b);
		if (a == a && b == b) {
			faults += wrong("less", (float)real_less(a, b), (float)(a < b), a, b);
			faults += wrong("max", real_max(a, b), a > b ? a : b, a, b);
			faults += wrong("min", real_min(a, b), a < b ? a : b, a, b);
		}
	}
	return faults != 0;
}
