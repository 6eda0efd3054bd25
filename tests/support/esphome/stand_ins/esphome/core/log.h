/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include <cstdio>

#define ESP_LOGD(tag, ...) (printf(__VA_ARGS__), printf("\n"))
#define ESP_LOGW           ESP_LOGD
#define ESP_LOGE           ESP_LOGD
#define ESP_LOGCONFIG      ESP_LOGD
