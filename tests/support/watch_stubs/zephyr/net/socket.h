/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STUB_SOCKET_H_
#define STUB_SOCKET_H_

#include <stddef.h>
#include <sys/types.h>

ssize_t zsock_send(int sock, const void *buf, size_t len, int flags);

#endif /* STUB_SOCKET_H_ */
