/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A computer plays the board: the flash is a file, and the serial port a TCP port. On a board,
 * erase and write call the flash driver, and port_read() and port_send() the UART. */

#define _DEFAULT_SOURCE

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port.h"

#define FLASH_FILE    "flash.bin"
#define FLASH_ADDRESS 0x10000000u /* of a board's flash; models that are data run at any */
#define SLOT_BYTES    0x40000u
#define ERASE_BYTES   4096u
#define PORT          "5555"
#define WAIT_MS       1000

static int listener = -1, line = -1;

static int erase(void *start, uint32_t offset, uint32_t bytes)
{
	memset((uint8_t *)start + offset, 0xff, bytes);
	return 0;
}

static int write_flash(void *start, uint32_t offset, const void *data, uint32_t bytes)
{
	memcpy((uint8_t *)start + offset, data, bytes);
	return 0;
}

/* The file in memory; erased if it is new. */
static uint8_t *open_flash(void)
{
	const int file = open(FLASH_FILE, O_RDWR | O_CREAT, 0600);
	const off_t before = file < 0 ? -1 : lseek(file, 0, SEEK_END);
	uint8_t *memory;

	if (before < 0 || ftruncate(file, 2 * SLOT_BYTES) != 0) {
		return NULL;
	}
	memory = mmap(NULL, 2 * SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (memory == MAP_FAILED) {
		return NULL;
	}
	if (before == 0) {
		memset(memory, 0xff, 2 * SLOT_BYTES);
	}
	return memory;
}

static int open_line(const char *port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t bytes = sizeof(address);
	const int again = 1;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &again, sizeof(again));
	if (bind(listener, (struct sockaddr *)&address, bytes) != 0 || listen(listener, 1) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &bytes) != 0) {
		perror("the TCP port");
		return -1;
	}
	printf("serial port: socket://localhost:%u\n", ntohs(address.sin_port));
	return 0;
}

int port_start(int count, char **arguments, struct tinyml_slot_region regions[2])
{
	static struct tinyml_flash flash[2];
	uint8_t *memory = open_flash();

	if (memory == NULL) {
		perror(FLASH_FILE);
		return -1;
	}
	for (uint32_t i = 0; i < 2; i++) {
		uint8_t *start = memory + i * SLOT_BYTES;

		flash[i] = (struct tinyml_flash){.erase = erase,
						 .write = write_flash,
						 .context = start,
						 .erase_bytes = ERASE_BYTES,
						 .write_bytes = 8};
		regions[i] = (struct tinyml_slot_region){
			.memory = start,
			.address = FLASH_ADDRESS + i * SLOT_BYTES,
			.bytes = SLOT_BYTES,
			.flash = &flash[i],
		};
	}
	return open_line(count > 1 ? arguments[1] : PORT);
}

size_t port_read(uint8_t *data, size_t room)
{
	struct pollfd waiting = {.fd = line < 0 ? listener : line, .events = POLLIN};
	ssize_t bytes;

	if (poll(&waiting, 1, WAIT_MS) <= 0) {
		return 0;
	}
	if (line < 0) {
		line = accept(listener, NULL, NULL);
		return 0;
	}
	bytes = read(line, data, room);
	if (bytes <= 0) { /* the computer has closed it */
		close(line);
		line = -1;
		return 0;
	}
	return (size_t)bytes;
}

void port_send(const uint8_t *data, size_t bytes)
{
	while (line >= 0 && bytes > 0) {
		const ssize_t sent = send(line, data, bytes, MSG_NOSIGNAL);

		if (sent <= 0) {
			return;
		}
		data += sent;
		bytes -= (size_t)sent;
	}
}
