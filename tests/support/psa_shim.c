/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What the adapter for the PSA crypto API calls, as a firmware would have it whose implementation
 * has SHA-512 and Ed25519: the declarations are those of the real <psa/crypto.h>, Monocypher does
 * the work. Anything else than what a correct caller asks for is refused. */

#include <psa/crypto.h>

#include <monocypher-ed25519.h>
#include <monocypher.h>
#include <string.h>

#define KEY_ID 7

static int initialized;
static int keys; /* that were imported and not destroyed */
static uint8_t public_key[32];

psa_status_t psa_crypto_init(void)
{
	initialized = 1;
	return PSA_SUCCESS;
}

psa_status_t psa_hash_compare(psa_algorithm_t alg, const uint8_t *input, size_t input_length,
			      const uint8_t *hash, size_t hash_length)
{
	uint8_t found[64];

	if (!initialized || alg != PSA_ALG_SHA_512 || hash_length != sizeof(found)) {
		return PSA_ERROR_NOT_SUPPORTED;
	}
	crypto_sha512(found, input, input_length);
	return crypto_verify64(found, hash) == 0 ? PSA_SUCCESS : PSA_ERROR_INVALID_SIGNATURE;
}

psa_status_t psa_import_key(const psa_key_attributes_t *attributes, const uint8_t *data,
			    size_t data_length, mbedtls_svc_key_id_t *key)
{
	if (!initialized || keys != 0 || data_length != sizeof(public_key) ||
	    psa_get_key_type(attributes) !=
		    PSA_KEY_TYPE_ECC_PUBLIC_KEY(PSA_ECC_FAMILY_TWISTED_EDWARDS) ||
	    psa_get_key_bits(attributes) != 255 ||
	    psa_get_key_usage_flags(attributes) != PSA_KEY_USAGE_VERIFY_MESSAGE ||
	    psa_get_key_algorithm(attributes) != PSA_ALG_PURE_EDDSA) {
		return PSA_ERROR_NOT_SUPPORTED;
	}
	memcpy(public_key, data, data_length);
	*key = KEY_ID;
	keys++;
	return PSA_SUCCESS;
}

psa_status_t psa_verify_message(mbedtls_svc_key_id_t key, psa_algorithm_t alg, const uint8_t *input,
				size_t input_length, const uint8_t *signature,
				size_t signature_length)
{
	if (keys != 1 || key != KEY_ID || alg != PSA_ALG_PURE_EDDSA || signature_length != 64) {
		return PSA_ERROR_INVALID_HANDLE;
	}
	return crypto_ed25519_check(signature, public_key, input, input_length) == 0
		       ? PSA_SUCCESS
		       : PSA_ERROR_INVALID_SIGNATURE;
}

psa_status_t psa_destroy_key(mbedtls_svc_key_id_t key)
{
	if (key != KEY_ID || keys != 1) {
		return PSA_ERROR_INVALID_HANDLE;
	}
	keys--;
	return PSA_SUCCESS;
}
