/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What the board provides: flash for two models, and a serial port. */

#ifndef PORT_H_
#define PORT_H_

#include <stddef.h>
#include <stdint.h>

#include <tinyml/slots.h>

/* Prepare both, and describe the two regions of the flash; 0 on success. */
int port_start(int count, char **arguments, struct tinyml_slot_region regions[2]);

/* Wait for bytes from the serial port for up to a second; returns how many there are. */
size_t port_read(uint8_t *data, size_t room);

void port_send(const uint8_t *data, size_t bytes);

#endif /* PORT_H_ */
