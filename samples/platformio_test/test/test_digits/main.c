/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Golden vectors: every output of the model must equal the host's, byte for byte. */

#include <stdio.h>
#include <string.h>

#include <digits.h>
#include <inputs.h>

int main(void)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof(held_back) / sizeof(held_back[0]); i++) {
		for (size_t p = 0; p < sizeof(held_back[i].pixels); p++) {
			digits_input()[p] = (float)held_back[i].pixels[p] / 16.0f;
		}

		int code = digits_run();
		int same = memcmp(digits_output(), held_back[i].logits,
				  sizeof(held_back[i].logits)) == 0;

		printf("image %u: %s\n", (unsigned int)i,
		       code != 0 ? "FAIL did not run"
		       : same    ? "PASS"
				 : "FAIL output differs");
		failed += code != 0 || !same;
	}
	return failed;
}
