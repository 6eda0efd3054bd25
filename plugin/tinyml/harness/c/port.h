/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What the harness requires from a machine: a console, a file of samples to read, a file of results
 * to write, and a way to measure the cost of a function. */

#ifndef TINYML_HARNESS_PORT_H_
#define TINYML_HARNESS_PORT_H_

#include <stddef.h>
#include <stdint.h>

/* A reading of the machine's clocks. The program on the host knows their units. */
struct port_stamp {
	uint32_t fine;
	uint32_t coarse;
};

/* The cost of one call, written to the result file as it is: six little-endian words. */
struct port_cost {
	int32_t status; /* return value of the function */
	struct port_stamp before;
	struct port_stamp after;
	uint32_t stack_bytes;
};

/* Open both files. On an error, print the reason on the console and exit. */
void port_open(void);
void port_close(void);
void port_read(void *data, size_t bytes);
void port_write(const void *data, size_t bytes);
void port_print(const char *text);
_Noreturn void port_exit(int status);

/* Call function() and fill in its cost. */
void port_measure(int (*function)(void), struct port_cost *cost);

#endif /* TINYML_HARNESS_PORT_H_ */
