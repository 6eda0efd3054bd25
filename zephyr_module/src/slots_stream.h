/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TINYML_SLOTS_STREAM_H_
#define TINYML_SLOTS_STREAM_H_

#include <tinyml/slots.h>

/** Zephyr's stream flash for a partition with such erase units; `context` is its flash area. */
struct tinyml_flash_stream tinyml_stream_for(uint32_t erase_bytes);

#endif /* TINYML_SLOTS_STREAM_H_ */
