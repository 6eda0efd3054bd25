/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A firmware that does everything with slots, or nothing: tools/slot_figures.py measures both. */

#include <tinyml/slots.h>
#ifdef SLOTS
TINYML_SLOT_DEFINE(model, 1, 0);
static volatile uint32_t controller;
static int erase(void *context, uint32_t offset, uint32_t bytes)
{
	return (int)(controller = offset + bytes + (context != NULL));
}
static int write(void *context, uint32_t offset, const void *data, uint32_t bytes)
{
	return (int)(controller = offset + bytes + *(const uint8_t *)data + (context != NULL));
}
static const struct tinyml_flash flash = {
	.erase = erase, .write = write, .erase_bytes = 4096, .write_bytes = 8};
static struct tinyml_slots slots = {.region = {{(void *)0x60000, 0x60000, 65536, &flash},
					       {(void *)0x70000, 0x70000, 65536, &flash}}};
static struct tinyml_update update;
#endif
int main(void)
{
#ifdef SLOTS
	uint8_t byte = (uint8_t)controller;
	int error = tinyml_slots_open(&slots, &model) |
		    tinyml_update_begin(&update, &slots, 999, true) |
		    tinyml_update_write(&update, &byte, 1) | tinyml_update_finish(&update) |
		    tinyml_slots_confirm(&slots) | model.model.run();
#ifdef TEXTS
	controller = (uint8_t)*tinyml_slot_error_text(error);
#endif
	return error;
#else
	return 0;
#endif
}
