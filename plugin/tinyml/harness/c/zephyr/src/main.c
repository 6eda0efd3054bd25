/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* CONFIG_TINYML_HOST does all the work, in a thread of its own. */

int main(void)
{
	return 0;
}
