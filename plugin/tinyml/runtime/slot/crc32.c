/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/crc32.h>
#include <tinyml/slot.h>

uint32_t tinyml_slot_crc32(uint32_t crc, const void *data, uint32_t bytes)
{
	return tinyml_crc32(crc, data, bytes);
}
