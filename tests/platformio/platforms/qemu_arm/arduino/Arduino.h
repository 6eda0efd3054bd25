/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include <stdio.h>
#include <stdlib.h>

void setup();
void loop();
