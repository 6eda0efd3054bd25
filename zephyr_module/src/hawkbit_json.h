/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Answers of a hawkBit server, read as they arrive, in parts of any size: of JSON documents of any
 * length, the few values that a client of packs needs. */

#ifndef TINYML_HAWKBIT_JSON_H_
#define TINYML_HAWKBIT_JSON_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef CONFIG_TINYML_HAWKBIT_URL_BYTES
#define HAWKBIT_URL CONFIG_TINYML_HAWKBIT_URL_BYTES
#else
#define HAWKBIT_URL 256
#endif
#define HAWKBIT_DEPTH 16
#define HAWKBIT_ID    24

/** What the server says. Texts that it did not say are empty. */
struct hawkbit_answer {
	/* of the resource of the device */
	char deployment[HAWKBIT_URL]; /* where a deployment waits, if there is one */
	char cancel[HAWKBIT_URL];     /* an action that shall be cancelled */
	char attributes[HAWKBIT_URL]; /* where it wants to know about the device */
	uint32_t sleep_seconds;       /* until the next request */
	/* of a deployment or of what is cancelled */
	char id[HAWKBIT_ID];
	bool skip; /* not yet: outside of a maintenance window */
	/* of the pack among its files */
	char download[HAWKBIT_URL];
	uint32_t bytes;
};

struct hawkbit_json {
	struct hawkbit_answer *answer;
	const char *part; /* the type of the software module that is wanted; NULL: any */
	/* the rest is private */
	char text[HAWKBIT_URL]; /* the string or number that is being read */
	size_t length;          /* of it, also of what does not fit */
	uint8_t keys[HAWKBIT_DEPTH];
	bool is_object[HAWKBIT_DEPTH];
	uint8_t depth;
	uint8_t state;
	uint8_t escape;   /* characters of an escape sequence that follow */
	uint16_t escaped; /* and what they mean so far */
	bool is_key;      /* the string is one */
	bool part_fits;   /* of this software module */
	bool has_pack;    /* the file is one, or the module has one */
	bool chosen;      /* the pack was found */
	uint32_t bytes;   /* of the file */
	bool has_http;    /* its address without TLS is there */
};

/** Begin to read a document. */
void hawkbit_json_start(struct hawkbit_json *json, struct hawkbit_answer *answer, const char *part);

/** The next part of it; false if it is not JSON, or nested too deeply. */
bool hawkbit_json_take(struct hawkbit_json *json, const char *data, size_t bytes);

/** Whether all of it was there. */
bool hawkbit_json_is_complete(const struct hawkbit_json *json);

#endif /* TINYML_HAWKBIT_JSON_H_ */
