/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Parts of a model that an Arm Ethos-U NPU computes. */

#ifndef TINYML_ETHOS_U_H_
#define TINYML_ETHOS_U_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a run returns if the NPU did not complete its part; the value is that of -ENODEV. */
#define TINYML_ENPU (-19)

/** Addresses that the NPU uses are multiples of this, in bytes. */
#define TINYML_ETHOS_U_ALIGNMENT 16

/** A part, as Vela compiled it. The NPU must be able to read both tables where they are. */
struct tinyml_ethos_u {
	const uint32_t *commands; /* with the header that Arm's driver expects */
	const uint8_t *weights;
	uint32_t commands_bytes;
	uint32_t weights_bytes;
	uint32_t scratch_bytes;
	uint32_t input_bytes;
	uint32_t output_bytes;
};

/**
 * Compute a part and wait for its end. Returns 0 or TINYML_ENPU.
 *
 * The Zephyr module has this function for CONFIG_ETHOS_U. Elsewhere the application provides it: it
 * calls ethosu_invoke_v3() with five base addresses: weights, scratch, scratch, input, output.
 */
int tinyml_ethos_u_run(const struct tinyml_ethos_u *part, const void *input, void *output,
		       void *scratch);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_ETHOS_U_H_ */
