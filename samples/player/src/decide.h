/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_H_
#define DECIDE_H_

/** Run the model on one image after the other, and keep or reject new models by their figures. */
void decide_by_watch(void);

#endif /* DECIDE_H_ */
