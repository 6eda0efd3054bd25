/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* MLPerf Tiny's serial protocol: commands that end with '%', answers in lines, "m-ready" after
 * each. */

#ifndef MLPERF_TINY_COMMANDS_H_
#define MLPERF_TINY_COMMANDS_H_

#include <stddef.h>
#include <stdint.h>

struct commands_settings {
	const char *vendor;
	const char *model; /* kws01, vww01, ic01, ad01 or sww01 */
	uint8_t *data;     /* what `db` fills */
	size_t room;       /* bytes of data */
};

/** Print what a device says after its start. `settings` must stay valid. */
void commands_start(const struct commands_settings *settings);

/** A byte has come. Executes the command that it completes. */
void commands_receive(char byte);

/** Bytes that `db` has filled since `db load`. */
size_t commands_loaded(void);

#endif /* MLPERF_TINY_COMMANDS_H_ */
