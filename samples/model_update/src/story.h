/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STORY_H_
#define STORY_H_

/* Everything that can happen to a model in the field, one thing after the other. Returns what went
 * wrong. */
int tell_story(void);

#endif /* STORY_H_ */
