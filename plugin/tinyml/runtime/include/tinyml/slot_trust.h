/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Signatures of models in slots, checked by a cryptographic library that the firmware has: there is
 * no cryptography in this project. Use one of these as struct tinyml_slot_trust.verify.
 */

#ifndef TINYML_SLOT_TRUST_H_
#define TINYML_SLOT_TRUST_H_

#include <tinyml/slot.h>

#ifdef __cplusplus
extern "C" {
#endif

/** With Monocypher 4 and its optional Ed25519 (monocypher.c, monocypher-ed25519.c). */
int tinyml_slot_verify_monocypher(const struct tinyml_slot_trust *trust, const uint8_t *data,
				  uint32_t bytes, const uint8_t digest[64],
				  const uint8_t signature[64]);

/** With the PSA crypto API, where it has SHA-512 and PSA_ALG_PURE_EDDSA. */
int tinyml_slot_verify_psa(const struct tinyml_slot_trust *trust, const uint8_t *data,
			   uint32_t bytes, const uint8_t digest[64], const uint8_t signature[64]);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_SLOT_TRUST_H_ */
