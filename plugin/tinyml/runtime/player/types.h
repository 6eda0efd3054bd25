/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Elements whose type a record states. */

#ifndef TINYML_PLAYER_TYPES_H_
#define TINYML_PLAYER_TYPES_H_

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/tinyml.h>

/** Bytes of an element; enum tinyml_type, without float64. */
static inline uint32_t tinyml_play_type_bytes(uint32_t type)
{
	switch (type) {
	case TINYML_INT64:
	case TINYML_UINT64:
		return 8;
	case TINYML_FLOAT32:
	case TINYML_INT32:
	case TINYML_UINT32:
		return 4;
	case TINYML_INT16:
	case TINYML_UINT16:
		return 2;
	default:
		return 1;
	}
}

/** Integers and truth values. */
static inline bool tinyml_play_is_integer(uint32_t type)
{
	return type >= TINYML_INT8 && type <= TINYML_BOOL && type != TINYML_UINT64;
}

/** An integer as one of 64 bits. */
static inline int64_t tinyml_play_load(const void *x, uint32_t type)
{
	switch (type) {
	case TINYML_INT8:
		return *(const int8_t *)x;
	case TINYML_INT16:
		return *(const int16_t *)x;
	case TINYML_UINT16:
		return *(const uint16_t *)x;
	case TINYML_INT32:
		return *(const int32_t *)x;
	case TINYML_UINT32:
		return *(const uint32_t *)x;
	case TINYML_INT64:
		return *(const int64_t *)x;
	default:
		return *(const uint8_t *)x;
	}
}

/** The lower bits of an integer. */
static inline void tinyml_play_store(void *y, uint32_t type, int64_t value)
{
	switch (tinyml_play_type_bytes(type)) {
	case 8:
		*(int64_t *)y = value;
		break;
	case 4:
		*(uint32_t *)y = (uint32_t)value;
		break;
	case 2:
		*(uint16_t *)y = (uint16_t)value;
		break;
	default:
		*(uint8_t *)y = (uint8_t)value;
		break;
	}
}

#endif /* TINYML_PLAYER_TYPES_H_ */
