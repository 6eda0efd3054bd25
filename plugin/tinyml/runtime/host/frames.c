/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Frames: bytes of the line to requests, answers to bytes of the line. See <tinyml/host.h>. */

#include <tinyml/crc32.h>
#include <tinyml/host.h>

#define CRC_BYTES   4u
#define LEAST_BYTES (2u + CRC_BYTES)
#define FULL_BLOCK  0xffu /* 254 bytes, after which no zero was left out */
#define HIGH_BYTE   0x80u /* and six bits */
#define HIGH_START  0xc0u
#define HIGH_END    0xc1u

static uint32_t frames_little_endian(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

/* Send a packet as a frame. */
static void frames_send(const struct tinyml_host_port *port, const uint8_t *packet, size_t bytes)
{
	const uint8_t zero = 0;
	size_t at = 0;
	bool more = true;

	port->send(&zero, 1);
	while (more) {
		uint8_t code = 1;

		while (code < FULL_BLOCK && at + code - 1u < bytes &&
		       packet[at + code - 1u] != 0u) {
			code++;
		}
		port->send(&code, 1);
		port->send(&packet[at], code - 1u);
		at += code - 1u;
		more = at < bytes;
		if (more && code < FULL_BLOCK) {
			at++; /* the zero, which the next block stands for even if it is empty */
		}
	}
	port->send(&zero, 1);
}

static void frames_send_six_bits(const struct tinyml_host_port *port, uint32_t bits)
{
	const uint8_t byte = (uint8_t)(HIGH_BYTE | (bits & 0x3fu));

	port->send(&byte, 1);
}

/* Send a packet in bytes that no ASCII text has: the other side can leave out what other threads
 * print between them. */
static void frames_send_high(const struct tinyml_host_port *port, const uint8_t *packet,
			     size_t bytes)
{
	const uint8_t start = HIGH_START, end[] = {HIGH_END, 0};
	uint32_t held = 0;
	unsigned int bits = 0; /* of them, not sent yet */

	port->send(&start, 1);
	for (size_t i = 0; i < bytes; i++) {
		held = (held << 8) | packet[i];
		for (bits += 8u; bits >= 6u; bits -= 6u) {
			frames_send_six_bits(port, held >> (bits - 6u));
		}
	}
	if (bits > 0u) {
		frames_send_six_bits(port, held << (6u - bits));
	}
	port->send(end, sizeof(end));
}

/* Add the CRC to a packet, which has room for it; returns its length. */
static size_t frames_seal(uint8_t *packet, size_t bytes)
{
	uint32_t crc = tinyml_crc32(0, packet, bytes);

	for (unsigned int i = 0; i < CRC_BYTES; i++) {
		packet[bytes + i] = (uint8_t)(crc >> (8u * i));
	}
	return bytes + CRC_BYTES;
}

/* The last answer stays: its request may arrive again. */
static void frames_refuse_damaged(struct tinyml_host *host)
{
	uint8_t packet[LEAST_BYTES] = {0, TINYML_HOST_DAMAGED};

	frames_send(host->port, packet, frames_seal(packet, 2));
}

static void frames_finish_frame(struct tinyml_host *host)
{
	size_t bytes = host->request_bytes - CRC_BYTES;
	uint32_t crc;
	bool is_new;

	if (host->left != 0u || host->overflow || host->request_bytes < LEAST_BYTES) {
		frames_refuse_damaged(host);
		return;
	}
	crc = frames_little_endian(&host->request[bytes]);
	if (crc != tinyml_crc32(0, host->request, bytes)) {
		frames_refuse_damaged(host);
		return;
	}
	host->frames++;
	/* Number 0 is never in use: it marks an answer that belongs to no request. */
	is_new = host->request[0] == 0u || host->request[0] != host->last_number ||
		 crc != host->last_crc;
	if (is_new) {
		tinyml_host_execute(host, bytes);
		host->answer_bytes = frames_seal(host->answer, host->answer_bytes);
		host->last_number = host->request[0];
		host->last_crc = crc;
	}
	frames_send(host->port, host->answer, host->answer_bytes);
	if (!is_new) { /* the first answer was lost */
		frames_send_high(host->port, host->answer, host->answer_bytes);
	}
}

static void frames_append(struct tinyml_host *host, uint8_t byte)
{
	if (host->request_bytes < sizeof(host->request)) {
		host->request[host->request_bytes++] = byte;
	} else {
		host->overflow = true;
	}
}

static void frames_receive_byte(struct tinyml_host *host, uint8_t byte)
{
	if (byte == 0u) {
		if (host->code != 0u) {
			frames_finish_frame(host);
		}
		host->request_bytes = 0;
		host->code = 0;
		host->left = 0;
		host->overflow = false;
	} else if (host->left > 0u) {
		frames_append(host, byte);
		host->left--;
	} else {
		if (host->code != 0u && host->code != FULL_BLOCK) {
			frames_append(host, 0);
		}
		host->code = byte;
		host->left = (uint8_t)(byte - 1u);
	}
}

void tinyml_host_receive(struct tinyml_host *host, const uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		frames_receive_byte(host, data[i]);
	}
}
