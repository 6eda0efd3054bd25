/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The rows that recurrent layers on int8 compute at a time. */

#ifndef TINYML_RECURRENT_GROUP_S8_H_
#define TINYML_RECURRENT_GROUP_S8_H_

#include <stdint.h>

#define ROWS 4

/* The same gate of four cells. Assembly knows the layout. */
struct group {
	const int8_t *w;     /* the weights of the next group */
	const void *x;       /* a copy of the input */
	const void *x_end;   /* its end */
	const int8_t *r;     /* the recurrent weights of the next group */
	const void *h;       /* a copy of the state */
	const void *h_end;   /* its end */
	const int32_t *rows; /* of the next group: 4 biases, 4 factors of from_x, 4 of from_h */
	int32_t x_left;      /* how far sums are shifted before they are scaled */
	int32_t h_left;
	int32_t from_x[ROWS]; /* what the input adds, with the bias, in units of 2^-15 */
	int32_t from_h[ROWS]; /* what the state adds */
	int32_t gates[ROWS];  /* both as int16, in units of 2^-12 */
};

#endif /* TINYML_RECURRENT_GROUP_S8_H_ */
