/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The layout of a slot image in flash: MCUboot's header, our descriptor, code and weights, records.
 * All numbers are little-endian; positions count from the start of the image. */

#ifndef TINYML_SLOT_FORMAT_H_
#define TINYML_SLOT_FORMAT_H_

#include <stdint.h>

#define MCUBOOT_MAGIC   0x96f3b83du
#define PROTECTED_MAGIC 0x6908u
#define RECORDS_MAGIC   0x6907u
#define RECORD_CRC32    0x00a0u
#define RECORD_SHA512   0x0012u
#define RECORD_ED25519  0x0024u
#define SLOT_MAGIC      0x4c534d54u /* "TMSL" */

#define ERASED 0xffffffffu

struct container_header {
	uint32_t magic;
	uint32_t address;
	uint16_t header_bytes;
	uint16_t protected_bytes;
	uint32_t payload_bytes;
	uint32_t flags;
	uint32_t version[2]; /* 8 bits major, 8 bits minor, 16 bits revision; build */
	uint32_t unused;
};

struct descriptor {
	uint32_t magic;
	uint16_t format;
	uint16_t interface;
	uint32_t core;
	uint32_t run; /* with bit 0 set on Arm, like any address of Thumb code */
	uint32_t reset;
	uint32_t test;
	uint32_t arena_bytes;
	uint32_t state_bytes;
	uint16_t arena_alignment;
	uint16_t state_alignment;
	uint32_t name;
	uint32_t tensors; /* the inputs, then the outputs */
	uint8_t inputs;
	uint8_t outputs;
	uint16_t unused;
	uint8_t sha256[32];
};

struct tensor_record {
	uint32_t name;
	uint32_t shape;
	uint32_t offset; /* in the arena or the state */
	uint32_t bytes;
	float scale;
	int32_t zero_point;
	uint8_t type;
	uint8_t rank;
	uint8_t in_state;
	uint8_t unused;
};

struct record {
	uint16_t kind; /* or, before the first one, which records follow */
	uint16_t bytes;
};

struct checksum { /* the protected records */
	struct record area;
	struct record record;
	uint32_t crc32;
};

#endif /* TINYML_SLOT_FORMAT_H_ */
