/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes to and from the computer that started the program, and a clock that counts instructions. */

#ifndef TINYML_HARNESS_LINE_H_
#define TINYML_HARNESS_LINE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tinyml/host.h>

void line_open(void);
bool line_receive(uint8_t *byte); /* waits for it; false at the end */
void line_send(const uint8_t *data, size_t bytes);

/* Where nothing can be counted, both are NULL. */
extern uint32_t (*const line_cycles)(void);
extern void (*const line_describe_clock)(struct tinyml_host_clock *clock);

#endif /* TINYML_HARNESS_LINE_H_ */
