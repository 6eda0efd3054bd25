/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Packs from a hawkBit server (CONFIG_TINYML_HAWKBIT), over its Direct Device Integration API. The
 * client is for packs alone: firmware has Zephyr's own client, or another target on the server.
 *
 *	static const struct tinyml_hawkbit server = {
 *		.host = "updates.example.org",
 *		.port = "8080",
 *		.tenant = "DEFAULT",
 *		.controller = "sensor-17",
 *		.authorization = "TargetToken 0123456789abcdef",
 *	};
 *
 *	tinyml_slots_open(&tinyml_device_slots, &tinyml_slot_model);
 *	for (;;) {
 *		uint32_t seconds = 300;
 *		(void)tinyml_hawkbit_poll(&server, &seconds);
 *		k_sleep(K_SECONDS(seconds));
 *	}
 *
 * A deployment stays open on the server until the application has confirmed or rejected the new
 * model: tinyml_slots_confirm(), or tinyml_slots_confirm_by_watch() after every run.
 */

#ifndef TINYML_HAWKBIT_H_
#define TINYML_HAWKBIT_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The server, and who this device is there. */
struct tinyml_hawkbit {
	const char *host;
	const char *port;
	const char *tenant;
	const char *controller;
	const char *authorization; /* "TargetToken ..." or "GatewayToken ..."; NULL: none */
	const char *part;          /* the type of software modules with packs; NULL: any */
	bool tls;                  /* for addresses that the server does not give itself */
};

/** What a call of tinyml_hawkbit_poll() has done. */
enum tinyml_hawkbit_done {
	TINYML_HAWKBIT_NOTHING,   /* there was nothing to do, or not yet */
	TINYML_HAWKBIT_INSTALLED, /* a new model is in use, on trial */
	TINYML_HAWKBIT_WAITING,   /* it still is */
	TINYML_HAWKBIT_SUCCEEDED, /* the server knows that the model was confirmed */
	TINYML_HAWKBIT_FAILED,    /* the server knows that a pack was refused or given up */
	TINYML_HAWKBIT_CANCELLED, /* the server knows that a deployment was cancelled */
};

/**
 * Ask the server once, and do what it says; blocks until that is done. Call it in a thread that can
 * wait for a network, not in the system work queue. The model is claimed while flash is written.
 *
 * @param seconds until the next call, as the server wishes; unchanged if it does not say
 * @return one of tinyml_hawkbit_done; or negative: -EBUSY if another thread uses the model for
 * long, -EACCES if the server does not know the device, -EPROTO for an answer that makes no sense,
 * or an error of the network. The next call goes on where this one stopped.
 */
int tinyml_hawkbit_poll(const struct tinyml_hawkbit *server, uint32_t *seconds);

/**
 * A connected socket, or -errno. The default resolves the name and connects a TCP socket, or with
 * @a tls one of Zephyr's sockets with TLS (CONFIG_NET_SOCKETS_SOCKOPT_TLS), whose credentials have
 * the tag CONFIG_TINYML_HAWKBIT_SEC_TAG; without these sockets it returns -EPROTONOSUPPORT. An
 * application that defines this function replaces it.
 */
int tinyml_hawkbit_connect(const char *host, const char *port, bool tls);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_HAWKBIT_H_ */
