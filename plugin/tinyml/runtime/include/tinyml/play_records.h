/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The records of calls: the structures of kernels with positions in place of pointers. */

#ifndef TINYML_PLAY_RECORDS_H_
#define TINYML_PLAY_RECORDS_H_

#include <tinyml/play_attention.h>
#include <tinyml/play_elementwise.h>
#include <tinyml/play_indexing.h>
#include <tinyml/play_int16.h>
#include <tinyml/play_loop.h>
#include <tinyml/play_moves.h>
#include <tinyml/play_nibbles.h>
#include <tinyml/play_recurrent.h>
#include <tinyml/play_stored.h>
#include <tinyml/play_trees.h>
#include <tinyml/play_weighted.h>
#include <tinyml/play_windows.h>

#endif /* TINYML_PLAY_RECORDS_H_ */
