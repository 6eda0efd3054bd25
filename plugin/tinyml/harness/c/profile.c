/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "profile.h"

#include "clock.h"
#include "report.h"

#define MAX_LAYERS 2048u

struct reading {
	uint32_t layer;
	struct port_stamp before;
	struct port_stamp after;
};

static struct reading empty; /* nothing between the two */
static struct reading readings[MAX_LAYERS];
static uint32_t count;

void profile_begin(uint32_t layer)
{
	readings[count].layer = layer;
	clock_read(&readings[count].before);
}

void profile_end(void)
{
	clock_read(&readings[count].after);
	if (count < MAX_LAYERS - 1u) {
		count++;
	}
}

void profile_reset(void)
{
	count = 0;
	clock_start();
	profile_begin(0);
	profile_end();
	empty = readings[0];
	count = 0;
}

static void print_word(uint32_t value)
{
	report_word(value);
	port_print(" ");
}

static void print_reading(const char *title, const struct reading *reading)
{
	port_print(title);
	print_word(reading->layer);
	print_word(reading->before.fine);
	print_word(reading->before.coarse);
	print_word(reading->after.fine);
	print_word(reading->after.coarse);
	port_print("\n");
}

void profile_print(void)
{
	print_reading("empty ", &empty);
	for (uint32_t i = 0; i < count; i++) {
		print_reading("layer ", &readings[i]);
	}
}
