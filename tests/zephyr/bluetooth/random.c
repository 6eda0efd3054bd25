/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The host's random numbers, of which it makes its address: for tests only. */

#include <zephyr/bluetooth/crypto.h>
#include <zephyr/random/random.h>

int bt_rand(void *buf, size_t len)
{
	sys_rand_get(buf, len);
	return 0;
}
