/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/slot_trust.h>

#if __has_include(<monocypher-ed25519.h>)

#include <monocypher-ed25519.h>
#include <monocypher.h>

int tinyml_slot_verify_monocypher(const struct tinyml_slot_trust *trust, const uint8_t *data,
				  uint32_t bytes, const uint8_t digest[64],
				  const uint8_t signature[64])
{
	uint8_t found[64];

	crypto_sha512(found, data, bytes);
	if (crypto_verify64(found, digest) != 0) {
		return TINYML_SLOT_HASH;
	}
	if (crypto_ed25519_check(signature, trust->public_key, found, sizeof(found)) != 0) {
		return TINYML_SLOT_SIGNATURE;
	}
	return 0;
}

#endif
