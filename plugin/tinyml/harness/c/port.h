/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What the harness needs from the machine it runs on: a console, one file to read samples from, one
 * file to write results to, and a way to run a function and say what it cost. */

#ifndef TINYML_HARNESS_PORT_H_
#define TINYML_HARNESS_PORT_H_

#include <stddef.h>
#include <stdint.h>

/* A reading of the machine's clocks. What they mean is known to the program that started us. */
struct port_stamp {
	uint32_t fine;
	uint32_t coarse;
};

/* The cost of one call, written to the result file as it is: six little-endian words. */
struct port_cost {
	int32_t status; /* what the function returned */
	struct port_stamp before;
	struct port_stamp after;
	uint32_t stack_bytes;
};

/* Open both files. A port that cannot go on says why on its console and ends the program. */
void port_open(void);
void port_close(void);
void port_read(void *data, size_t bytes);
void port_write(const void *data, size_t bytes);
void port_print(const char *text);
_Noreturn void port_exit(int status);

/* Call function() and fill in what it cost. */
void port_measure(int (*function)(void), struct port_cost *cost);

#endif /* TINYML_HARNESS_PORT_H_ */
