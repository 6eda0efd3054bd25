/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#define TINYML_HALF_WEIGHTS 1

#include "filters_tiles_f32.h"
