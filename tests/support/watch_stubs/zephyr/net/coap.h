/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* As much of Zephyr as the snippets of docs/watch.md need, with the signatures of Zephyr 4. */

#ifndef STUB_COAP_H_
#define STUB_COAP_H_

#include <stdint.h>

#define COAP_VERSION_1               1U
#define COAP_TOKEN_MAX_LEN           8UL
#define COAP_TYPE_NON_CON            1
#define COAP_METHOD_POST             2
#define COAP_OPTION_URI_PATH         11
#define COAP_OPTION_CONTENT_FORMAT   12
#define COAP_CONTENT_FORMAT_APP_CBOR 60

struct coap_packet {
	uint8_t *data;
	uint16_t offset;
};

int coap_packet_init(struct coap_packet *cpkt, uint8_t *data, uint16_t max_len, uint8_t ver,
		     uint8_t type, uint8_t token_len, const uint8_t *token, uint8_t code,
		     uint16_t id);
uint8_t *coap_next_token(void);
uint16_t coap_next_id(void);
int coap_packet_append_option(struct coap_packet *cpkt, uint16_t code, const uint8_t *value,
			      uint16_t len);
int coap_append_option_int(struct coap_packet *cpkt, uint16_t code, unsigned int val);
int coap_packet_append_payload_marker(struct coap_packet *cpkt);
int coap_packet_append_payload(struct coap_packet *cpkt, const uint8_t *payload,
			       uint16_t payload_len);

#endif /* STUB_COAP_H_ */
