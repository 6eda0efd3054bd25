/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Drives one model over the console of a board: receives inputs, runs, sends outputs and costs.
 *
 * Requests and replies are lines of text, so that other output of the board does no harm:
 *
 *     @7 words 1a2b
 *
 * 7 is the number of the question, which its answer repeats: one that comes late is not taken for
 * the next. 1a2b is the CRC-16 (CCITT, as in XMODEM) of all between @ and it. A question with
 * another one is answered by "0 bad". Numbers and bytes are hexadecimal.
 *
 *     hello               model NAME SHA256 INPUT_BYTES OUTPUT_BYTES CLOCK_HZ EMPTY_CYCLES
 *                         LOOP_CYCLES, of LOOP_INSTRUCTIONS; 0 where that is not known
 *     reset               done 0           forgets the model's state
 *     in OFFSET BYTES     done COUNT       into the inputs, one after the other
 *     run                 ran STATUS CYCLES
 *     out OFFSET COUNT    data BYTES       from the outputs, one after the other
 *     layer INDEX         layer INDEX CYCLES, of the last run
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tinyml/profile.h>
#include <tinyml/tinyml.h>
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/util.h>

#define LINE_BYTES        160 /* tinyml.harness.zephyr.talk sends no longer ones */
#define MOST_BYTES        64  /* of a tensor in one line */
#define CRC_DIGITS        4
#define LOOP_INSTRUCTIONS 99999 /* three in each turn */

extern const struct tinyml_model PROBE_MODEL;

static const struct tinyml_model *const model = &PROBE_MODEL;
static const struct device *const console = DEVICE_DT_GET(DT_CHOSEN(zephyr_console));

static uint16_t crc16(const char *text, size_t length)
{
	uint16_t crc = 0;

	for (size_t i = 0; i < length; i++) {
		crc ^= (uint16_t)((uint8_t)text[i] << 8);
		for (int bit = 0; bit < 8; bit++) {
			crc = (uint16_t)((crc & 0x8000u) != 0u ? (crc << 1) ^ 0x1021u : crc << 1);
		}
	}
	return crc;
}

static char next_char(void)
{
	unsigned char c;

	while (uart_poll_in(console, &c) != 0) {
		if (IS_ENABLED(CONFIG_ARCH_POSIX)) {
			k_msleep(1); /* on native_sim time only advances while a thread sleeps */
		}
	}
	return (char)c;
}

/* The words of the next request; NULL if it arrived incomplete. */
static char *next_question(void)
{
	static char line[LINE_BYTES];
	size_t length = 0;
	char c;

	while (next_char() != '@') {
	}
	while ((c = next_char()) != '\n' && c != '\r') {
		if (c == '@') {
			length = 0; /* the previous line was cut off */
		} else if (length < sizeof(line) - 1) {
			line[length++] = c;
		} else {
			return NULL;
		}
	}
	line[length] = '\0';
	if (length <= CRC_DIGITS || line[length - CRC_DIGITS - 1] != ' ') {
		return NULL;
	}
	length -= CRC_DIGITS + 1;
	if (strtoul(&line[length], NULL, 16) != crc16(line, length)) {
		return NULL;
	}
	line[length] = '\0';
	return line;
}

static void put(const char *text)
{
	while (*text != '\0') {
		uart_poll_out(console, (unsigned char)*text++);
	}
}

static void answer(uint32_t number, const char *words)
{
	static char line[LINE_BYTES + 10];
	char end[CRC_DIGITS + 3];

	snprintf(line, sizeof(line), "%x %s", (unsigned int)number, words);
	snprintf(end, sizeof(end), " %04x\n", crc16(line, strlen(line)));
	put("@");
	put(line);
	put(end);
}

static uint32_t total_bytes(const struct tinyml_tensor *tensors, size_t count)
{
	uint32_t bytes = 0;

	for (size_t i = 0; i < count; i++) {
		bytes += tensors[i].bytes;
	}
	return bytes;
}

/* The byte at an offset into the concatenated tensors; NULL past the end. */
static uint8_t *byte_at(const struct tinyml_tensor *tensors, size_t count, uint32_t offset)
{
	for (size_t i = 0; i < count; i++) {
		if (offset < tensors[i].bytes) {
			return (uint8_t *)tensors[i].data + offset;
		}
		offset -= tensors[i].bytes;
	}
	return NULL;
}

/* Cycles between two consecutive readings of the clock. */
static uint32_t empty_cycles(void)
{
	uint32_t before = tinyml_profile_clock();

	return tinyml_profile_clock() - before;
}

/*
 * Cycles during a known number of instructions. In QEMU this gives the instructions per tick: the
 * frequency in Kconfig is not always that of the emulated clock.
 */
static uint32_t loop_cycles(void)
{
#if defined(CONFIG_CPU_CORTEX_M) || defined(CONFIG_RISCV)
	unsigned long left = LOOP_INSTRUCTIONS / 3;
	unsigned int key = irq_lock();
	uint32_t before = tinyml_profile_clock();

#ifdef CONFIG_RISCV
	__asm__ volatile("1: addi %0, %0, -1\n"
			 "nop\n"
			 "bnez %0, 1b\n"
			 : "+r"(left));
#else
	__asm__ volatile("1: sub %0, #1\n"
			 "cmp %0, #0\n"
			 "bne 1b\n"
			 : "+l"(left)
			 :
			 : "cc");
#endif

	uint32_t cycles = tinyml_profile_clock() - before;

	irq_unlock(key);
	return cycles;
#else
	return 0;
#endif
}

static void say_hello(char *words, size_t size)
{
	char hash[2 * sizeof(model->sha256) + 1];

	bin2hex(model->sha256, sizeof(model->sha256), hash, sizeof(hash));
	(void)empty_cycles(); /* the first reading may have to wait for flash */
	snprintf(words, size, "model %s %s %x %x %x %x %x", model->name, hash,
		 (unsigned int)total_bytes(model->inputs, model->input_count),
		 (unsigned int)total_bytes(model->outputs, model->output_count),
		 (unsigned int)tinyml_profile_clock_hz(), (unsigned int)empty_cycles(),
		 (unsigned int)loop_cycles());
}

static void take_input(uint32_t offset, const char *hex, char *words, size_t size)
{
	uint8_t bytes[MOST_BYTES];
	size_t count = hex2bin(hex, strlen(hex), bytes, sizeof(bytes));

	for (size_t i = 0; i < count; i++) {
		uint8_t *to = byte_at(model->inputs, model->input_count, offset + i);

		if (to != NULL) {
			*to = bytes[i];
		}
	}
	snprintf(words, size, "done %x", (unsigned int)count);
}

static void give_output(uint32_t offset, uint32_t count, char *words, size_t size)
{
	uint8_t bytes[MOST_BYTES];
	size_t length = (size_t)snprintf(words, size, "data ");

	count = MIN(count, MOST_BYTES);
	for (size_t i = 0; i < count; i++) {
		const uint8_t *from = byte_at(model->outputs, model->output_count, offset + i);

		bytes[i] = from != NULL ? *from : 0;
	}
	bin2hex(bytes, count, &words[length], size - length);
}

static void run(char *words, size_t size)
{
#ifdef CONFIG_TINYML_PROFILING
	tinyml_profile_reset();
#endif
	uint32_t before = tinyml_profile_clock();
	int status = model->run();
	uint32_t cycles = tinyml_profile_clock() - before;

	snprintf(words, size, "ran %x %x", (unsigned int)status, (unsigned int)cycles);
}

static void reply(const char *line)
{
	static char words[LINE_BYTES];
	char *rest;
	uint32_t number = strtoul(line, &rest, 16);
	const char *question = rest + (*rest == ' ');

	if (strcmp(question, "hello") == 0) {
		say_hello(words, sizeof(words));
	} else if (strcmp(question, "reset") == 0) {
		if (model->reset != NULL) {
			model->reset();
		}
		snprintf(words, sizeof(words), "done 0");
	} else if (strncmp(question, "in ", 3) == 0) {
		uint32_t offset = strtoul(&question[3], &rest, 16);

		take_input(offset, rest + (*rest == ' '), words, sizeof(words));
	} else if (strcmp(question, "run") == 0) {
		run(words, sizeof(words));
	} else if (strncmp(question, "out ", 4) == 0) {
		uint32_t offset = strtoul(&question[4], &rest, 16);

		give_output(offset, strtoul(rest, NULL, 16), words, sizeof(words));
#ifdef CONFIG_TINYML_PROFILING
	} else if (strncmp(question, "layer ", 6) == 0) {
		uint32_t layer = strtoul(&question[6], NULL, 16);

		snprintf(words, sizeof(words), "layer %x %x", (unsigned int)layer,
			 (unsigned int)tinyml_profile_cycles(layer));
#endif
	} else {
		snprintf(words, sizeof(words), "bad");
	}
	answer(number, words);
}

int main(void)
{
	for (;;) {
		const char *question = next_question();

		if (question != NULL) {
			reply(question);
		} else {
			answer(0, "bad");
		}
	}
	return 0;
}
