/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The harness as an ordinary program: stdio, and no counting. */

#include <stdio.h>
#include <stdlib.h>

#include "port.h"

static FILE *samples;
static FILE *results;

_Noreturn static void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

void port_open(void)
{
	samples = fopen("samples.bin", "rb");
	if (samples == NULL) {
		fail("samples.bin");
	}
	results = fopen("results.bin", "wb");
	if (results == NULL) {
		fail("results.bin");
	}
}

void port_close(void)
{
	if (fclose(results) != 0) {
		fail("results.bin");
	}
	fclose(samples);
}

void port_read(void *data, size_t bytes)
{
	if (fread(data, 1, bytes, samples) != bytes) {
		fail("samples.bin ended early");
	}
}

void port_write(const void *data, size_t bytes)
{
	if (fwrite(data, 1, bytes, results) != bytes) {
		fail("results.bin");
	}
}

void port_print(const char *text)
{
	fputs(text, stdout);
	fflush(stdout);
}

_Noreturn void port_exit(int status)
{
	exit(status);
}

void port_measure(int (*function)(void), struct port_cost *cost)
{
	cost->status = function();
}
