/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/slot_trust.h>

#if __has_include(<psa/crypto.h>)

#include <psa/crypto.h>

int tinyml_slot_verify_psa(const struct tinyml_slot_trust *trust, const uint8_t *data,
			   uint32_t bytes, const uint8_t digest[64], const uint8_t signature[64])
{
	psa_key_attributes_t attributes = PSA_KEY_ATTRIBUTES_INIT;
	psa_key_id_t key;
	psa_status_t status;

	if (psa_crypto_init() != PSA_SUCCESS ||
	    psa_hash_compare(PSA_ALG_SHA_512, data, bytes, digest, 64) != PSA_SUCCESS) {
		return TINYML_SLOT_HASH;
	}
	psa_set_key_type(&attributes, PSA_KEY_TYPE_ECC_PUBLIC_KEY(PSA_ECC_FAMILY_TWISTED_EDWARDS));
	psa_set_key_bits(&attributes, 255);
	psa_set_key_usage_flags(&attributes, PSA_KEY_USAGE_VERIFY_MESSAGE);
	psa_set_key_algorithm(&attributes, PSA_ALG_PURE_EDDSA);
	if (psa_import_key(&attributes, trust->public_key, 32, &key) != PSA_SUCCESS) {
		return TINYML_SLOT_SIGNATURE;
	}
	status = psa_verify_message(key, PSA_ALG_PURE_EDDSA, digest, 64, signature, 64);
	(void)psa_destroy_key(key);
	return status == PSA_SUCCESS ? 0 : TINYML_SLOT_SIGNATURE;
}

#endif
