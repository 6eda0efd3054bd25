/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* From sums to int8 outputs in assembly for Armv6-M, whose multiplications have 32 bits only. */

#ifndef TINYML_OUTPUT_ARMV6M_H_
#define TINYML_OUTPUT_ARMV6M_H_

/* An output in r0, limited to int8 only. Takes a sum s = 65536 * a + b as 65536 * a in r0 and the
 * int16 b in r1, a multiplier m = 65536 * c + d as d in r3 and c in r6, the exponent in r7, and
 * 2 * (zero point + 128) + 1 in r10; changes r1 and r2.
 *
 * The upper part of the product is 2 * a * c + ((a * d + b * c + (b * d >> 16)) >> 15), or one more
 * if the carry of that shift rounds. |s| < 2^29, so nothing overflows. Outputs are made as uint8.
 */
/* clang-format off */
#define TINYML_OUTPUT_ARMV6M(add, sign)                                                            \
	"asrs r0, r0, #16\n\t"                                                                     \
	"movs r2, r1\n\t"                                                                          \
	"muls r2, r3, r2\n\t"                                                                      \
	"asrs r2, r2, #16\n\t"                                                                     \
	"muls r1, r6, r1\n\t"                                                                      \
	"adds r2, r2, r1\n\t"                                                                      \
	"movs r1, r0\n\t"                                                                          \
	"muls r1, r3, r1\n\t"                                                                      \
	"adds r2, r2, r1\n\t"                                                                      \
	"muls r0, r6, r0\n\t"                                                                      \
	"lsls r0, r0, #1\n\t"                                                                      \
	"asrs r2, r2, #15\n\t"                                                                     \
	add " r0, r0, r2\n\t"                                                                      \
	sign                                                                                       \
	"asrs r0, r0, r7\n\t"                                                                      \
	"add r0, r10\n\t"                                                                          \
	"asrs r0, r0, #1\n\t"                                                                      \
	"cmp r0, #255\n\t"                                                                         \
	"bls 9f\n\t"                                                                               \
	"asrs r0, r0, #31\n\t"                                                                     \
	"mvns r0, r0\n\t"                                                                          \
	"9:\n\t"                                                                                   \
	"subs r0, #128\n\t"

/* `sign` with two roundings: negative halves. */
#define TINYML_FROM_ZERO_ARMV6M "asrs r2, r0, #31\n\tadds r0, r0, r2\n\t"
/* clang-format on */

#endif /* TINYML_OUTPUT_ARMV6M_H_ */
