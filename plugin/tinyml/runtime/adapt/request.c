/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What a computer asks of a model that learns: the requests of TINYML_HOST_ADAPT. */

#include "exact.h"

#include <string.h>

static uint32_t request_number(const uint8_t *from)
{
	return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
	       (uint32_t)from[3] << 24;
}

static size_t request_put(uint8_t *answer, size_t at, uint32_t value)
{
	for (uint32_t i = 0; i < 4u; i++) {
		answer[at + i] = (uint8_t)(value >> (8u * i));
	}
	return at + 4u;
}

static int request_learn(const struct tinyml_adapt *adapt, const uint8_t *data, size_t bytes)
{
	float targets[TINYML_ADAPT_TARGETS];
	const size_t count = bytes / 4u;

	if (adapt->targets == 0u) {
		return bytes == 4u ? adapt->learn(adapt, (int32_t)request_number(data), NULL)
				   : TINYML_EINVAL;
	}
	if (bytes % 4u != 0u || count != adapt->targets || count > TINYML_ADAPT_TARGETS) {
		return TINYML_EINVAL;
	}
	memcpy(targets, data, 4u * count);
	return adapt->learn(adapt, 0, targets);
}

/* Values come first, the header with its count at last: until then they are not used. */
static int request_write(const struct tinyml_adapt *adapt, uint32_t offset, const uint8_t *data,
			 size_t bytes)
{
	const uint32_t head = sizeof(struct tinyml_adapt_header);
	uint8_t *const learnt = (uint8_t *)adapt->learnt;
	int status;

	if (offset > adapt->bytes || bytes > adapt->bytes - offset ||
	    (offset < head && (offset != 0u || bytes != head))) {
		return TINYML_EINVAL;
	}
	if (offset == head) {
		tinyml_adapt_factory(adapt);
	}
	memcpy(&learnt[offset], data, bytes);
	if (offset != 0u) {
		return 0;
	}
	status = tinyml_adapt_accepts(adapt, learnt, adapt->bytes);
	if (status != 0) {
		tinyml_adapt_factory(adapt);
	}
	return status;
}

/* Whether what was learnt is another after it. */
static bool request_changes(uint8_t action, uint32_t number)
{
	return action == TINYML_ADAPT_LEARN || action == TINYML_ADAPT_RESET ||
	       action == TINYML_ADAPT_END || action == TINYML_ADAPT_FORGET ||
	       action == TINYML_ADAPT_CHECK || (action == TINYML_ADAPT_WRITE && number == 0u);
}

size_t tinyml_adapt_request(const struct tinyml_adapt *adapt, const uint8_t *request, size_t bytes,
			    uint8_t *answer, size_t room)
{
	const uint8_t action = bytes > 0u ? request[0] : UINT8_MAX;
	const uint32_t number = bytes >= 5u ? request_number(&request[1]) : 0u;
	int status = TINYML_EINVAL;
	size_t used = 4, size;

	switch (action) {
	case TINYML_ADAPT_INFO:
		status = 0;
		used = request_put(answer, used, adapt->kind);
		used = request_put(answer, used, adapt->bytes);
		used = request_put(answer, used, adapt->learnt->count);
		used = request_put(answer, used, adapt->targets);
		break;
	case TINYML_ADAPT_LEARN:
		status = request_learn(adapt, &request[1], bytes - 1u);
		break;
	case TINYML_ADAPT_DECIDE:
		if (adapt->decide != NULL) {
			float distance = 0.0f;

			status = adapt->decide(adapt, &distance);
			memcpy(&answer[used], &distance, 4);
			used += 4u;
		}
		break;
	case TINYML_ADAPT_RESET:
		tinyml_adapt_factory(adapt);
		status = 0;
		break;
	case TINYML_ADAPT_READ: {
		const uint8_t *const data = tinyml_adapt_learnt(adapt, &size);

		status = data == NULL ? TINYML_ADAPT_EWORSE : 0;
		if (data != NULL && number <= size) {
			const size_t part = size - number < room - 4u ? size - number : room - 4u;

			memcpy(&answer[used], &data[number], part);
			used += part;
		}
		break;
	}
	case TINYML_ADAPT_WRITE:
		if (bytes >= 5u) {
			status = request_write(adapt, number, &request[5], bytes - 5u);
		}
		break;
	case TINYML_ADAPT_BEGIN:
	case TINYML_ADAPT_END:
		if (adapt->batch != NULL) {
			status = adapt->batch(adapt, action == TINYML_ADAPT_BEGIN);
		}
		break;
	case TINYML_ADAPT_FORGET:
		if (adapt->forget != NULL && bytes >= 5u) {
			status = adapt->forget(adapt, (int32_t)number);
		}
		break;
	case TINYML_ADAPT_CHECK:
		status = adapt->check != NULL ? adapt->check(adapt) : 0;
		if (status != 0) {
			tinyml_adapt_factory(adapt);
		}
		break;
	default:
		break;
	}
	if (request_changes(action, number)) {
		(void)TINYML_ADAPT_NOTED(adapt, status);
	}
	(void)request_put(answer, 0, (uint32_t)status);
	return used;
}
