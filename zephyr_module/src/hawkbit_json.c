/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "hawkbit_json.h"

#include <string.h>

enum json_state {
	BEFORE_VALUE,
	BEFORE_FIRST_VALUE, /* of a list, which may be empty */
	BEFORE_FIRST_KEY,   /* of an object, which may be empty */
	BEFORE_KEY,
	AFTER_KEY,
	AFTER_VALUE,
	IN_STRING,
	IN_WORD, /* a number, true, false or null */
	FAILED,
};

#define HEXADECIMAL 4 /* digits of an escape sequence */
#define BACKSLASH   5 /* the character after it decides */

/* Keys on the way to values that matter. */
enum json_key {
	OTHER,
	ITEM, /* of a list */
	LINKS,
	DEPLOYMENT_BASE,
	CANCEL_ACTION,
	CONFIG_DATA,
	HREF,
	CONFIG,
	POLLING,
	SLEEP,
	ID,
	DEPLOYMENT,
	DOWNLOAD,
	UPDATE,
	CHUNKS,
	PART,
	ARTIFACTS,
	FILENAME,
	SIZE,
	DOWNLOAD_HTTP,
	STOP_ID,
};

static const char *const names[] = {
	[LINKS] = "_links",
	[DEPLOYMENT_BASE] = "deploymentBase",
	[CANCEL_ACTION] = "cancelAction",
	[CONFIG_DATA] = "configData",
	[HREF] = "href",
	[CONFIG] = "config",
	[POLLING] = "polling",
	[SLEEP] = "sleep",
	[ID] = "id",
	[DEPLOYMENT] = "deployment",
	[DOWNLOAD] = "download",
	[UPDATE] = "update",
	[CHUNKS] = "chunks",
	[PART] = "part",
	[ARTIFACTS] = "artifacts",
	[FILENAME] = "filename",
	[SIZE] = "size",
	[DOWNLOAD_HTTP] = "download-http",
	[STOP_ID] = "stopId",
};

#define PLACE(...) ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})

static bool json_is_at(const struct hawkbit_json *json, const uint8_t *keys, size_t count)
{
	return json->depth == count && memcmp(json->keys, keys, count) == 0;
}

static enum json_key json_key_of(const char *text)
{
	for (unsigned int key = LINKS; key < sizeof(names) / sizeof(names[0]); key++) {
		if (strcmp(names[key], text) == 0) {
			return (enum json_key)key;
		}
	}
	return OTHER;
}

static uint32_t json_number(const char *text)
{
	uint32_t value = 0;

	for (; *text >= '0' && *text <= '9'; text++) {
		const uint32_t digit = (uint32_t)(*text - '0');

		if (value > (UINT32_MAX - digit) / 10u) {
			return 0;
		}
		value = 10u * value + digit;
	}
	return *text == '\0' ? value : 0u;
}

/* HH:MM:SS; 0 for anything else. */
static uint32_t json_seconds(const char *text)
{
	uint32_t value = 0;

	if (strlen(text) != 8u || text[2] != ':' || text[5] != ':') {
		return 0;
	}
	for (unsigned int i = 0; i < 8u; i += 3u) {
		if (text[i] < '0' || text[i] > '9' || text[i + 1u] < '0' || text[i + 1u] > '9') {
			return 0;
		}
		value = 60u * value + 10u * (uint32_t)(text[i] - '0') +
			(uint32_t)(text[i + 1u] - '0');
	}
	return value;
}

/* A text that is too long for its place is none. */
static void json_copy(struct hawkbit_json *json, char *to, size_t room)
{
	to[0] = '\0';
	if (json->length < room) {
		memcpy(to, json->text, json->length + 1u);
	}
}

static bool json_ends_with(const char *text, const char *end)
{
	const size_t length = strlen(text), tail = strlen(end);

	return length >= tail && strcmp(text + length - tail, end) == 0;
}

#define IN_CHUNK DEPLOYMENT, CHUNKS, ITEM
#define IN_FILE  IN_CHUNK, ARTIFACTS, ITEM

static void json_value_of_file(struct hawkbit_json *json)
{
	struct hawkbit_answer *answer = json->answer;

	if (json_is_at(json, PLACE(IN_CHUNK, PART))) {
		json->part_fits = json->part == NULL || strcmp(json->part, json->text) == 0;
	} else if (json->has_pack) { /* the module's other files do not matter */
		return;
	} else if (json_is_at(json, PLACE(IN_FILE, FILENAME))) {
		json->chosen = json_ends_with(json->text, ".tmodel");
	} else if (json_is_at(json, PLACE(IN_FILE, SIZE))) {
		json->bytes = json_number(json->text);
	} else if (json_is_at(json, PLACE(IN_FILE, LINKS, DOWNLOAD_HTTP, HREF))) {
		json_copy(json, answer->download, sizeof(answer->download));
		json->has_http = true;
	} else if (json_is_at(json, PLACE(IN_FILE, LINKS, DOWNLOAD, HREF)) && !json->has_http) {
		json_copy(json, answer->download, sizeof(answer->download));
	}
}

static void json_value(struct hawkbit_json *json)
{
	struct hawkbit_answer *answer = json->answer;

	if (json_is_at(json, PLACE(LINKS, DEPLOYMENT_BASE, HREF))) {
		json_copy(json, answer->deployment, sizeof(answer->deployment));
	} else if (json_is_at(json, PLACE(LINKS, CANCEL_ACTION, HREF))) {
		json_copy(json, answer->cancel, sizeof(answer->cancel));
	} else if (json_is_at(json, PLACE(LINKS, CONFIG_DATA, HREF))) {
		json_copy(json, answer->attributes, sizeof(answer->attributes));
	} else if (json_is_at(json, PLACE(CONFIG, POLLING, SLEEP))) {
		answer->sleep_seconds = json_seconds(json->text);
	} else if (json_is_at(json, PLACE(ID)) || json_is_at(json, PLACE(CANCEL_ACTION, STOP_ID))) {
		json_copy(json, answer->id, sizeof(answer->id));
	} else if (json_is_at(json, PLACE(DEPLOYMENT, DOWNLOAD)) ||
		   json_is_at(json, PLACE(DEPLOYMENT, UPDATE))) {
		answer->skip = answer->skip || strcmp(json->text, "skip") == 0;
	} else if (answer->bytes == 0u) {
		json_value_of_file(json);
	}
}

/* An object or a list begins; keys may follow in any order. */
static void json_opened(struct hawkbit_json *json)
{
	if (json->answer->bytes != 0u) {
		return;
	}
	if (json_is_at(json, PLACE(IN_CHUNK))) {
		json->part_fits = json->part == NULL;
		json->has_pack = false;
	} else if (json_is_at(json, PLACE(IN_FILE)) && !json->has_pack) {
		json->chosen = false;
		json->has_http = false;
		json->bytes = 0;
		json->answer->download[0] = '\0';
	}
}

static void json_closed(struct hawkbit_json *json)
{
	if (json->answer->bytes != 0u) {
		return;
	}
	if (json_is_at(json, PLACE(IN_FILE))) {
		json->has_pack = json->has_pack ||
				 (json->chosen && json->bytes > 0u && json->answer->download[0]);
	} else if (json_is_at(json, PLACE(IN_CHUNK)) && json->has_pack && json->part_fits) {
		json->answer->bytes = json->bytes;
	}
}

static void json_begin_text(struct hawkbit_json *json, enum json_state state, bool is_key)
{
	json->state = (uint8_t)state;
	json->is_key = is_key;
	json->length = 0;
	json->escape = 0;
}

static void json_put(struct hawkbit_json *json, char character)
{
	if (json->length < sizeof(json->text) - 1u) {
		json->text[json->length] = character;
	}
	json->length++;
}

static void json_end_text(struct hawkbit_json *json)
{
	const size_t most = sizeof(json->text) - 1u;

	json->text[json->length < most ? json->length : most] = '\0';
	if (json->is_key) {
		json->keys[json->depth - 1u] =
			(uint8_t)(json->length <= most ? json_key_of(json->text) : OTHER);
		json->state = AFTER_KEY;
	} else {
		json_value(json);
		json->state = AFTER_VALUE;
	}
}

static bool json_open(struct hawkbit_json *json, bool is_object)
{
	if (json->depth == HAWKBIT_DEPTH) {
		return false;
	}
	json_opened(json);
	json->is_object[json->depth] = is_object;
	json->keys[json->depth] = (uint8_t)(is_object ? OTHER : ITEM);
	json->depth++;
	json->state = (uint8_t)(is_object ? BEFORE_FIRST_KEY : BEFORE_FIRST_VALUE);
	return true;
}

static bool json_close(struct hawkbit_json *json, char character)
{
	if (json->depth == 0u || json->is_object[json->depth - 1u] != (character == '}')) {
		return false;
	}
	json->depth--;
	json_closed(json);
	json->state = AFTER_VALUE;
	return true;
}

static bool json_in_string(struct hawkbit_json *json, char character)
{
	static const char meanings[] = "\"\"\\\\//b\bf\fn\nr\rt\t";

	if (json->escape == BACKSLASH) {
		json->escape = 0;
		if (character == 'u') {
			json->escape = HEXADECIMAL;
			json->escaped = 0;
			return true;
		}
		for (size_t i = 0; i < sizeof(meanings) - 1u; i += 2u) {
			if (meanings[i] == character) {
				json_put(json, meanings[i + 1u]);
				return true;
			}
		}
		return false;
	}
	if (json->escape > 0u) {
		const char lower = (char)(character | 0x20);
		const int digit = character >= '0' && character <= '9' ? character - '0'
				  : lower >= 'a' && lower <= 'f'       ? lower - 'a' + 10
								       : -1;

		if (digit < 0) {
			return false;
		}
		json->escaped = (uint16_t)(16u * json->escaped + (unsigned int)digit);
		json->escape--;
		if (json->escape == 0u) { /* nothing that matters has other characters */
			json_put(json, json->escaped > 0u && json->escaped < 0x80u
					       ? (char)json->escaped
					       : '?');
		}
		return true;
	}
	if (character == '"') {
		json_end_text(json);
	} else if (character == '\\') {
		json->escape = BACKSLASH;
	} else if ((unsigned char)character < 0x20u) {
		return false;
	} else {
		json_put(json, character);
	}
	return true;
}

static bool json_is_space(char character)
{
	return character == ' ' || character == '\t' || character == '\n' || character == '\r';
}

static bool json_is_word(char character)
{
	return (character >= '0' && character <= '9') || (character >= 'a' && character <= 'z') ||
	       character == '-' || character == '+' || character == '.' || character == 'E';
}

static bool json_before_value(struct hawkbit_json *json, char character)
{
	if (character == '{' || character == '[') {
		return json_open(json, character == '{');
	}
	if (character == ']' && json->state == BEFORE_FIRST_VALUE) {
		return json_close(json, character);
	}
	if (character == '"') {
		json_begin_text(json, IN_STRING, false);
		return true;
	}
	if (!json_is_word(character)) {
		return false;
	}
	json_begin_text(json, IN_WORD, false);
	json_put(json, character);
	return true;
}

static bool json_after_value(struct hawkbit_json *json, char character)
{
	if (character == ',' && json->depth > 0u) {
		json->state =
			(uint8_t)(json->is_object[json->depth - 1u] ? BEFORE_KEY : BEFORE_VALUE);
		return true;
	}
	return (character == '}' || character == ']') && json_close(json, character);
}

static bool json_take_one(struct hawkbit_json *json, char character)
{
	if (json->state == IN_STRING) {
		return json_in_string(json, character);
	}
	if (json->state == IN_WORD) {
		if (json_is_word(character)) {
			json_put(json, character);
			return true;
		}
		json_end_text(json);
	}
	if (json_is_space(character)) {
		return true;
	}
	switch ((enum json_state)json->state) {
	case BEFORE_FIRST_KEY:
	case BEFORE_KEY:
		if (character == '}' && json->state == BEFORE_FIRST_KEY) {
			return json_close(json, character);
		}
		json_begin_text(json, IN_STRING, true);
		return character == '"';
	case AFTER_KEY:
		json->state = BEFORE_VALUE;
		return character == ':';
	case AFTER_VALUE:
		return json_after_value(json, character);
	case BEFORE_VALUE:
	case BEFORE_FIRST_VALUE:
		return json_before_value(json, character);
	default:
		return false;
	}
}

void hawkbit_json_start(struct hawkbit_json *json, struct hawkbit_answer *answer, const char *part)
{
	memset(json, 0, sizeof(*json));
	memset(answer, 0, sizeof(*answer));
	json->answer = answer;
	json->part = part;
}

bool hawkbit_json_take(struct hawkbit_json *json, const char *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (json->state == FAILED || !json_take_one(json, data[i])) {
			json->state = FAILED;
			return false;
		}
	}
	return json->state != FAILED;
}

bool hawkbit_json_is_complete(const struct hawkbit_json *json)
{
	return json->state == AFTER_VALUE && json->depth == 0u;
}
