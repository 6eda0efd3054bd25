/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "fetch.h"

#include <stdio.h>

#include <tinyml/hawkbit.h>
#include <zephyr/kernel.h>
#include <zephyr/net/tls_credentials.h>
#include <zephyr/sys/util.h>

#define STACK_BYTES 6144

static const struct tinyml_hawkbit server = {
	.host = CONFIG_SAMPLE_HAWKBIT_HOST,
	.port = CONFIG_SAMPLE_HAWKBIT_PORT,
	.tenant = "DEFAULT",
	.controller = CONFIG_SAMPLE_HAWKBIT_CONTROLLER,
	.authorization = CONFIG_SAMPLE_HAWKBIT_AUTHORIZATION,
	.tls = IS_ENABLED(CONFIG_NET_SOCKETS_SOCKOPT_TLS),
};

#ifdef CONFIG_NET_SOCKETS_SOCKOPT_TLS
static const uint8_t authority[] = {
#include "authority.inc"
};

static int add_credentials(void)
{
	return tls_credential_add(CONFIG_TINYML_HAWKBIT_SEC_TAG, TLS_CREDENTIAL_CA_CERTIFICATE,
				  authority, sizeof(authority));
}
#else
static int add_credentials(void)
{
	return 0;
}
#endif

static void fetch(void *a, void *b, void *c)
{
	static const char *const texts[] = {
		[TINYML_HAWKBIT_INSTALLED] = "a new model is on trial",
		[TINYML_HAWKBIT_SUCCEEDED] = "told that the model was confirmed",
		[TINYML_HAWKBIT_FAILED] = "told that the model was refused",
		[TINYML_HAWKBIT_CANCELLED] = "told that the deployment was cancelled",
	};

	ARG_UNUSED(a);
	ARG_UNUSED(b);
	ARG_UNUSED(c);
	for (;;) {
		uint32_t seconds = CONFIG_SAMPLE_HAWKBIT_SECONDS;
		const int done = tinyml_hawkbit_poll(&server, &seconds);

		if (done < 0) {
			printf("hawkBit: error %d\n", -done);
		} else if (done < (int)ARRAY_SIZE(texts) && texts[done] != NULL) {
			printf("hawkBit: %s\n", texts[done]);
		}
		k_sleep(K_SECONDS(seconds));
	}
}

K_THREAD_STACK_DEFINE(stack, STACK_BYTES);
static struct k_thread thread;

void fetch_from_hawkbit(void)
{
	if (add_credentials() != 0) {
		printf("hawkBit: no credentials\n");
		return;
	}
	k_thread_create(&thread, stack, K_THREAD_STACK_SIZEOF(stack), fetch, NULL, NULL, NULL,
			K_LOWEST_APPLICATION_THREAD_PRIO, 0, K_NO_WAIT);
}
