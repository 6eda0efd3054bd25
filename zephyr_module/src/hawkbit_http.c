/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Requests to a hawkBit server, each over a connection of its own. */

#include "hawkbit_http.h"

#include <errno.h>
#include <string.h>
#include <version.h>

#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>
#include <zephyr/net/http/client.h>
#include <zephyr/net/socket.h>
#include <zephyr/net/tls_credentials.h>

LOG_MODULE_DECLARE(tinyml, CONFIG_TINYML_LOG_LEVEL);

#define HOST_BYTES 64
#define PORT_BYTES 6
#define LINE_BYTES 192

struct address {
	char host[HOST_BYTES];
	char port[PORT_BYTES];
	const char *path;
	bool tls;
};

struct exchange {
	const struct hawkbit_request *request;
	uint32_t position; /* of the next byte of the answer */
	int taken;         /* what the one that takes it says */
	bool complete;
	uint16_t status;
};

#ifdef CONFIG_TINYML_HAWKBIT_SEC_TAG
#define TLS_PROTOCOL IPPROTO_TLS_1_2

/* The server must have a certificate for this name, which a credential of the tag vouches for. */
static int set_tls(int sock, const char *host)
{
	const sec_tag_t tags[] = {CONFIG_TINYML_HAWKBIT_SEC_TAG};
	const int verified = TLS_PEER_VERIFY_REQUIRED;
	int error = zsock_setsockopt(sock, SOL_TLS, TLS_SEC_TAG_LIST, tags, sizeof(tags));

	error = error != 0 ? error
			   : zsock_setsockopt(sock, SOL_TLS, TLS_PEER_VERIFY, &verified,
					      sizeof(verified));
	return error != 0 ? error
			  : zsock_setsockopt(sock, SOL_TLS, TLS_HOSTNAME, host, strlen(host) + 1u);
}
#else
#define TLS_PROTOCOL 0

static int set_tls(int sock, const char *host)
{
	ARG_UNUSED(sock);
	ARG_UNUSED(host);
	return 0;
}
#endif

__weak int tinyml_hawkbit_connect(const char *host, const char *port, bool tls)
{
	struct zsock_addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct zsock_addrinfo *found = NULL;
	int error = -EHOSTUNREACH;
	int sock = -1;

	if (tls && TLS_PROTOCOL == 0) {
		return -EPROTONOSUPPORT;
	}
	if (zsock_getaddrinfo(host, port, &hints, &found) != 0 || found == NULL) {
		return -EHOSTUNREACH;
	}
	sock = zsock_socket(found->ai_family, SOCK_STREAM, tls ? TLS_PROTOCOL : IPPROTO_TCP);
	if (sock < 0 || (tls && set_tls(sock, host) != 0) ||
	    zsock_connect(sock, found->ai_addr, found->ai_addrlen) != 0) {
		error = -errno;
		if (sock >= 0) {
			(void)zsock_close(sock);
		}
		sock = error;
	}
	zsock_freeaddrinfo(found);
	return sock;
}

/* http://host:port/path, https://host/path, or a path on the server that is known. */
static bool locate(const struct hawkbit_request *request, struct address *address)
{
	const char *rest = request->url;
	size_t host, port;

	address->tls = strncmp(rest, "https://", 8) == 0;
	if (!address->tls && strncmp(rest, "http://", 7) != 0) {
		address->tls = request->server->tls;
		address->path = rest;
		strncpy(address->host, request->server->host, sizeof(address->host) - 1u);
		strncpy(address->port, request->server->port, sizeof(address->port) - 1u);
		return rest[0] == '/' && strlen(request->server->host) < sizeof(address->host) &&
		       strlen(request->server->port) < sizeof(address->port);
	}
	rest += address->tls ? 8 : 7;
	if (rest[0] == '[') { /* IPv6 */
		rest++;
		host = strcspn(rest, "]");
		port = rest[host] == ']' ? host + 1u : host;
	} else {
		host = strcspn(rest, ":/");
		port = host;
	}
	if (host == 0u || host >= sizeof(address->host)) {
		return false;
	}
	memcpy(address->host, rest, host);
	rest += port;
	port = 0;
	if (rest[0] == ':') {
		rest++;
		port = strcspn(rest, "/");
		if (port == 0u || port >= sizeof(address->port)) {
			return false;
		}
		memcpy(address->port, rest, port);
		rest += port;
	} else {
		strcpy(address->port, address->tls ? "443" : "80");
	}
	address->path = rest;
	return rest[0] == '/';
}

static int on_body(struct http_parser *parser, const char *at, size_t length)
{
	struct http_request *http = CONTAINER_OF(parser, struct http_request, internal.parser);
	struct exchange *exchange = http->internal.user_data;
	const struct hawkbit_request *request = exchange->request;
	const uint32_t position = exchange->position;

	exchange->position += (uint32_t)length;
	if (exchange->taken == 0 && request->take != NULL && parser->status_code / 100 == 2) {
		exchange->taken = request->take(request->context, position, at, length);
	}
	return 0;
}

static int on_headers_complete(struct http_parser *parser)
{
	struct http_request *http = CONTAINER_OF(parser, struct http_request, internal.parser);
	struct exchange *exchange = http->internal.user_data;

	exchange->status = (uint16_t)parser->status_code;
	/* A server that knows no ranges sends all of a file. */
	exchange->position = exchange->status == 206u ? exchange->request->position : 0u;
	return 0;
}

static int on_message_complete(struct http_parser *parser)
{
	struct http_request *http = CONTAINER_OF(parser, struct http_request, internal.parser);
	struct exchange *exchange = http->internal.user_data;

	exchange->complete = true;
	return 0;
}

static const struct http_parser_settings parsed = {
	.on_body = on_body,
	.on_headers_complete = on_headers_complete,
	.on_message_complete = on_message_complete,
};

#if ZEPHYR_VERSION_CODE >= ZEPHYR_VERSION(4, 2, 0)
static int on_response(struct http_response *response, enum http_final_call last, void *context)
{
	const struct exchange *exchange = context;

	ARG_UNUSED(response);
	ARG_UNUSED(last);
	/* What is enough is received to its end: a connection that the device closes while the
	 * server sends keeps its place in Zephyr's TCP for long, and there are few. */
	return exchange->taken < 0 ? -ECANCELED : 0;
}
#else
static void on_response(struct http_response *response, enum http_final_call last, void *context)
{
	ARG_UNUSED(response);
	ARG_UNUSED(last);
	ARG_UNUSED(context);
}
#endif

int hawkbit_send(const struct hawkbit_request *request)
{
	static uint8_t buffer[CONFIG_TINYML_HAWKBIT_BUFFER_BYTES];
	static char authorization[LINE_BYTES];
	struct exchange exchange = {.request = request};
	struct address address = {0};
	struct http_request http = {0};
	const char *fields[5];
	unsigned int count = 0;
	char range[48];
	int error, sock;

	if (!locate(request, &address)) {
		LOG_ERR("hawkBit: no address that can be used: %s", request->url);
		return -EPROTO;
	}
	fields[count++] = "Connection: close\r\n";
	fields[count++] = "Accept: application/hal+json, application/json, */*\r\n";
	if (request->server->authorization != NULL) {
		(void)snprintk(authorization, sizeof(authorization), "Authorization: %s\r\n",
			       request->server->authorization);
		fields[count++] = authorization;
	}
	if (request->bytes > 0u) {
		(void)snprintk(range, sizeof(range), "Range: bytes=%u-%u\r\n",
			       (unsigned int)request->position,
			       (unsigned int)(request->position + request->bytes - 1u));
		fields[count++] = range;
	}
	fields[count] = NULL;
	http.method = request->method;
	http.url = address.path;
	http.host = address.host;
	http.port = address.port;
	http.protocol = "HTTP/1.1";
	http.header_fields = fields;
	http.http_cb = &parsed;
	http.response = on_response;
	http.recv_buf = buffer;
	http.recv_buf_len = sizeof(buffer);
	if (request->body != NULL) {
		http.content_type_value = "application/json";
		http.payload = request->body;
		http.payload_len = strlen(request->body);
	}
	sock = tinyml_hawkbit_connect(address.host, address.port, address.tls);
	if (sock < 0) {
		return sock;
	}
	error = http_client_req(sock, &http, CONFIG_TINYML_HAWKBIT_TIMEOUT_MS, &exchange);
	(void)zsock_close(sock);
	if (exchange.taken < 0) {
		return exchange.taken;
	}
	if (error < 0) {
		return error;
	}
	if (exchange.status == 401u || exchange.status == 403u || exchange.status == 404u) {
		return -EACCES;
	}
	if (exchange.status / 100u != 2u) {
		LOG_ERR("hawkBit: the server answers with status %u", exchange.status);
		return -EPROTO;
	}
	return exchange.complete ? 0 : -ECONNRESET;
}
