/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include <tinyml/slot_receiver.h>

static const char BEGIN[2][sizeof("@tinyml error")] = {"@tinyml ok", "@tinyml error"};

/* A blank and a text, as one word. */
static void put_word(char *answer, const char *text)
{
	size_t used = strlen(answer);

	if (used < TINYML_RECEIVER_ANSWER - 1u) {
		answer[used++] = ' ';
	}
	for (; *text != '\0' && used < TINYML_RECEIVER_ANSWER - 1u; text++) {
		answer[used++] = *text > ' ' && *text <= '~' ? *text : '_';
	}
	answer[used] = '\0';
}

static void put_hex(char *answer, uint32_t value)
{
	size_t used = strlen(answer);
	int digits = 1;

	while (digits < 8 && value >> (4 * digits) != 0u) {
		digits++;
	}
	if (used + (size_t)digits + 2u > TINYML_RECEIVER_ANSWER) {
		return;
	}
	answer[used++] = ' ';
	while (digits-- > 0) {
		answer[used++] = "0123456789abcdef"[(value >> (4 * digits)) & 15u];
	}
	answer[used] = '\0';
}

/* The value of a hexadecimal digit, or -1. */
static int digit(char letter)
{
	if (letter >= '0' && letter <= '9') {
		return letter - '0';
	}
	if (letter >= 'a' && letter <= 'f') {
		return letter - 'a' + 10;
	}
	return -1;
}

/* The next word of a line as a number; moves past it. */
static bool get_hex(const char **line, uint32_t *value)
{
	const char *at = *line;

	while (*at == ' ') {
		at++;
	}
	if (digit(*at) < 0) {
		return false;
	}
	for (*value = 0; digit(*at) >= 0; at++) {
		*value = *value << 4 | (uint32_t)digit(*at);
	}
	*line = at;
	return *at == ' ' || *at == '\0';
}

/* Whether a line begins with a word; moves past it. */
static bool is(const char **line, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*line, word, length) != 0 ||
	    ((*line)[length] != ' ' && (*line)[length] != '\0')) {
		return false;
	}
	*line += length;
	return true;
}

static void describe(const struct tinyml_receiver *receiver, char *answer)
{
	const struct tinyml_slots *slots = receiver->slots;
	int index = tinyml_slots_free(slots);

	put_hex(answer, index < 0 ? 0 : slots->region[index].address);
	put_hex(answer, index < 0 ? 0 : slots->region[index].bytes);
	put_hex(answer, slots->active < 0 ? 0 : receiver->slot->version[0]);
	put_hex(answer, slots->active < 0 ? 0 : receiver->slot->version[1]);
	put_hex(answer, slots->on_trial);
	put_word(answer, slots->active < 0 ? "-" : receiver->slot->model.name);
}

static int begin(struct tinyml_receiver *receiver, const char *line)
{
	uint32_t bytes, resume;

	if (!get_hex(&line, &bytes) || !get_hex(&line, &resume)) {
		return TINYML_SLOT_ORDER;
	}
	return tinyml_update_begin(&receiver->update, receiver->slots, bytes, resume != 0u);
}

static int data(struct tinyml_receiver *receiver, const char *line)
{
	uint8_t bytes[TINYML_RECEIVER_DATA];
	struct tinyml_update *update = &receiver->update;
	uint32_t offset, crc, count = 0;

	if (!get_hex(&line, &offset)) {
		return TINYML_SLOT_ORDER;
	}
	while (*line == ' ') {
		line++;
	}
	for (; digit(line[0]) >= 0 && digit(line[1]) >= 0 && count < sizeof(bytes); line += 2) {
		bytes[count++] = (uint8_t)(digit(line[0]) << 4 | digit(line[1]));
	}
	if (!get_hex(&line, &crc) || crc != tinyml_slot_crc32(0, bytes, count)) {
		return TINYML_SLOT_DAMAGED; /* the line, not the image: it can be sent again */
	}
	if (update->region != NULL && offset + count == update->done) {
		return 0; /* sent again because the answer was lost */
	}
	return offset != update->done ? TINYML_SLOT_ORDER
				      : tinyml_update_write(update, bytes, count);
}

void tinyml_receiver_line(struct tinyml_receiver *receiver, const char *line,
			  char answer[TINYML_RECEIVER_ANSWER])
{
	bool describes = false, counts = false, sums = false;
	int error;

	if (is(&line, "info")) {
		describes = true;
		error = 0;
	} else if (is(&line, "begin")) {
		counts = true;
		sums = true;
		error = begin(receiver, line);
	} else if (is(&line, "data")) {
		counts = true;
		error = data(receiver, line);
	} else if (is(&line, "finish")) {
		error = tinyml_update_finish(&receiver->update);
	} else if (is(&line, "open")) {
		describes = true;
		error = tinyml_slots_open(receiver->slots, receiver->slot);
	} else if (is(&line, "confirm")) {
		error = tinyml_slots_confirm(receiver->slots);
	} else if (is(&line, "reject")) {
		error = tinyml_slots_reject(receiver->slots);
	} else {
		error = TINYML_SLOT_ORDER;
	}
	memcpy(answer, BEGIN[error != 0], sizeof(BEGIN[0]));
	if (error != 0) {
		put_hex(answer, (uint32_t)-error);
		return;
	}
	if (describes) {
		describe(receiver, answer);
	}
	if (counts) {
		put_hex(answer, receiver->update.done);
	}
	if (sums) {
		put_hex(answer, tinyml_update_crc32(&receiver->update));
	}
}
