/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** A .tmodel file that can be read at a position: in a file system, in a flash without addresses,
 * or on a server that sends ranges. */

#ifndef TINYML_PACK_SOURCE_H_
#define TINYML_PACK_SOURCE_H_

#include <stdint.h>

struct tinyml_pack_file {
	/** Read so many bytes at a position, which are inside the file; 0 on success. */
	int (*read)(void *context, uint32_t position, void *data, uint32_t bytes);
	void *context;
	uint32_t bytes; /* of the whole file */
};

#endif /* TINYML_PACK_SOURCE_H_ */
