/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions, depthwise convolutions and dense layers of float. */

#include "weighted_calls_f32.h"
#include "weighted_checks_f32.h"

void tinyml_play_conv_f32(const struct tinyml_play *play)
{
	weighted_calls_conv(play);
}

void tinyml_play_conv_apart_f32(const struct tinyml_play *play)
{
	weighted_calls_conv_apart(play);
}

void tinyml_play_depthwise_conv_f32(const struct tinyml_play *play)
{
	weighted_calls_depthwise_conv(play);
}

void tinyml_play_dense_f32(const struct tinyml_play *play)
{
	weighted_calls_dense(play);
}

uint32_t tinyml_check_conv_f32(struct tinyml_check *check)
{
	return weighted_checks_conv(check);
}

uint32_t tinyml_check_conv_apart_f32(struct tinyml_check *check)
{
	return weighted_checks_conv_apart(check);
}

uint32_t tinyml_check_depthwise_conv_f32(struct tinyml_check *check)
{
	return weighted_checks_depthwise(check);
}

uint32_t tinyml_check_dense_f32(struct tinyml_check *check)
{
	return weighted_checks_dense(check);
}
