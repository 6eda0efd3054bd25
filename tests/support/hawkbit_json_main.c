/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Reads documents: their length on a line, then their bytes. Each is taken in parts of a length
 * that changes, and printed as the client understands it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hawkbit_json.h"

int main(int argc, char **argv)
{
	const char *part = argc > 1 && argv[1][0] != '\0' ? argv[1] : NULL;
	unsigned long bytes;
	unsigned int step = 1;

	while (scanf("%lu", &bytes) == 1 && getchar() == '\n') {
		struct hawkbit_answer answer;
		struct hawkbit_json json;
		bool fine = true;

		hawkbit_json_start(&json, &answer, part);
		for (size_t at = 0; at < bytes;) {
			const size_t count = bytes - at < step ? bytes - at : step;
			char *text = malloc(count); /* so that reads past its end are found */

			if (fread(text, 1, count, stdin) != count) {
				return 1;
			}
			fine = hawkbit_json_take(&json, text, count) && fine;
			free(text);
			at += count;
			step = step % 61u + 1u;
		}
		printf("%d|%s|%s|%s|%u|%s|%d|%s|%u\n", fine && hawkbit_json_is_complete(&json),
		       answer.deployment, answer.cancel, answer.attributes, answer.sleep_seconds,
		       answer.id, answer.skip, answer.download, answer.bytes);
	}
	return 0;
}
