/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A model with parts on an NPU. It is built, not run. */

#include <model.h>

int main(void)
{
	return model_run();
}
