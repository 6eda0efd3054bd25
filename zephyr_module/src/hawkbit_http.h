/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TINYML_HAWKBIT_HTTP_H_
#define TINYML_HAWKBIT_HTTP_H_

#include <stddef.h>
#include <stdint.h>

#include <tinyml/hawkbit.h>
#include <zephyr/net/http/method.h>

#define HAWKBIT_ENOUGH 1

/** A request, and where its answer goes. */
struct hawkbit_request {
	const struct tinyml_hawkbit *server;
	enum http_method method;
	const char *url;  /* as the server gave it, or a path on it */
	const char *body; /* JSON, or NULL */
	/** Of a file, bytes of this position on; all of it if there are no bytes. */
	uint32_t position, bytes;
	/** Parts of the answer, with their position in the file. It ends with an error if the
	 * result is negative; after HAWKBIT_ENOUGH, the rest is left out. */
	int (*take)(void *context, uint32_t position, const char *data, size_t bytes);
	void *context;
};

/** 0 for an answer with a status of success that was taken whole; negative: -errno. */
int hawkbit_send(const struct hawkbit_request *request);

#endif /* TINYML_HAWKBIT_HTTP_H_ */
