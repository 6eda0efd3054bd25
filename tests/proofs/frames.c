/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * deep: yes
 * proves: host/frames.c
 * shapes: any byte in any state of the receiver; packets of up to 16 bytes
 * variants: TINYML_HOST_PAYLOAD=4
 * unwind: 17
 */

#include <tinyml/host.h>

#include "proof.h"

#define LONGEST 4u

/* Any answer that leaves room for its checksum. */
void tinyml_host_execute(struct tinyml_host *host, size_t bytes)
{
	__CPROVER_assert(bytes >= 2u && bytes <= sizeof(host->request), "a request that is there");
	host->answer_bytes = (size_t)between(2, (int)LONGEST);
}

static void sent(const uint8_t *data, size_t bytes)
{
	__CPROVER_assert(bytes == 0u || __CPROVER_r_ok(data, bytes), "bytes that are there");
}

int main(void)
{
	const struct tinyml_host_port port = {.send = sent};
	const uint8_t byte = nondet_byte();
	static struct tinyml_host host; /* anything, within what the functions keep */

	__CPROVER_havoc_object(&host);
	host.port = &port;
	__CPROVER_assume(host.request_bytes <= sizeof(host.request));
	__CPROVER_assume(host.answer_bytes <= LONGEST + 4u);
	tinyml_host_receive(&host, &byte, 1);
	__CPROVER_assert(host.request_bytes <= sizeof(host.request), "kept");
	__CPROVER_assert(host.answer_bytes <= LONGEST + 4u, "kept");
	return 0;
}
