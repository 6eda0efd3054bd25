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
	int32_t x_entry;     /* assembly: where its loop over the copy begins */
	const int8_t *r;     /* the recurrent weights of the next group */
	const void *h;       /* a copy of the state */
	const void *h_end;   /* its end */
	int32_t h_entry;     /* assembly: see x_entry */
	int32_t x_left;      /* how far sums are shifted before they are scaled */
	const int32_t *rows; /* of the next group: 4 biases, 4 factors of from_x, 4 of from_h */
	int32_t h_left;
	int32_t *sums;        /* assembly: where the next results go */
	int32_t *sums_end;    /* assembly: where they end */
	int32_t from_x[ROWS]; /* what the input adds, with the bias, in units of 2^-15 */
};

#endif /* TINYML_RECURRENT_GROUP_S8_H_ */
