/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FETCH_H_
#define FETCH_H_

/** Ask a hawkBit server for packs, again and again, in a thread of its own. */
void fetch_from_hawkbit(void);

#endif /* FETCH_H_ */
