/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include "line.h"

uint32_t (*const line_cycles)(void) = NULL;
void (*const line_describe_clock)(struct tinyml_host_clock *clock) = NULL;

void line_open(void)
{
	(void)setvbuf(stdin, NULL, _IONBF, 0);
}

bool line_receive(uint8_t *byte)
{
	return fread(byte, 1, 1, stdin) == 1;
}

void line_send(const uint8_t *data, size_t bytes)
{
	(void)fwrite(data, 1, bytes, stdout);
	(void)fflush(stdout);
}
