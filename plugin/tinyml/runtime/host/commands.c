/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What requests do. See <tinyml/host.h>. */

#include <string.h>

#include <tinyml/host.h>

#define ANSWER_ROOM (TINYML_HOST_PACKET - 4u) /* the CRC follows */

static void commands_put(struct tinyml_host *host, const void *data, size_t bytes)
{
	if (bytes > ANSWER_ROOM - host->answer_bytes) {
		bytes = ANSWER_ROOM - host->answer_bytes;
	}
	memcpy(&host->answer[host->answer_bytes], data, bytes);
	host->answer_bytes += bytes;
}

static void commands_put_number(struct tinyml_host *host, uint32_t value, unsigned int bytes)
{
	uint8_t little[4];

	for (unsigned int i = 0; i < bytes; i++) {
		little[i] = (uint8_t)(value >> (8u * i));
	}
	commands_put(host, little, bytes);
}

static uint32_t commands_get_number(const uint8_t *from, unsigned int bytes)
{
	uint32_t value = 0;

	for (unsigned int i = 0; i < bytes; i++) {
		value |= (uint32_t)from[i] << (8u * i);
	}
	return value;
}

static uint32_t commands_total_bytes(const struct tinyml_tensor *tensors, uint8_t count)
{
	uint32_t bytes = 0;

	for (uint8_t i = 0; i < count; i++) {
		bytes += tensors[i].data != NULL ? tensors[i].bytes : 0u;
	}
	return bytes;
}

/* Copy between a buffer and a range of tensors that are one after the other. False if the range is
 * not inside them, and then nothing is copied. */
static bool commands_copy(const struct tinyml_tensor *tensors, uint8_t count, uint32_t offset,
			  uint8_t *buffer, size_t bytes, bool into_tensors)
{
	uint32_t total = commands_total_bytes(tensors, count);

	if (offset > total || bytes > total - offset) {
		return false;
	}
	for (uint8_t i = 0; i < count && bytes > 0u; i++) {
		uint32_t size = tensors[i].data != NULL ? tensors[i].bytes : 0u;
		size_t part;

		if (offset >= size) {
			offset -= size;
			continue;
		}
		part = size - offset < bytes ? size - offset : bytes;
		if (into_tensors) {
			memcpy((uint8_t *)tensors[i].data + offset, buffer, part);
		} else {
			memcpy(buffer, (const uint8_t *)tensors[i].data + offset, part);
		}
		buffer += part;
		bytes -= part;
		offset = 0;
	}
	return true;
}

static void commands_release(struct tinyml_host *host)
{
	if (host->held != NULL && host->port->release != NULL) {
		host->port->release(host->held);
	}
	host->held = NULL;
}

/* Claim a model unless it is held. `interrupted` stays until an input begins or the state is reset:
 * somebody else may have used the model since it was held last, its arena and its state. */
static int commands_hold(struct tinyml_host *host, const struct tinyml_model *model)
{
	if (host->held != model) {
		int claimed;

		commands_release(host);
		claimed = host->port->claim != NULL ? host->port->claim(model) : 0;
		if (claimed < 0) {
			return TINYML_HOST_BUSY;
		}
		host->interrupted = host->interrupted || claimed != 0 || host->held_last != model;
		host->held = model;
		host->held_last = model;
		/* What was fed before was another model's, or another thread has used this one. */
		host->fed_missing = TINYML_EINVAL;
		host->fed_cycles = 0;
	}
	return TINYML_HOST_OK;
}

static uint32_t commands_read_cycles(const struct tinyml_host_port *port)
{
	return port->cycles != NULL ? port->cycles() : 0u;
}

static int commands_hello(struct tinyml_host *host, const uint8_t *arguments)
{
	const struct tinyml_host_port *port = host->port;
	struct tinyml_host_clock clock = {0, 0, 0};
	uint8_t models = 0;

	commands_release(host);
	while (models < UINT8_MAX && port->model(models) != NULL) {
		models++;
	}
	if (port->describe_clock != NULL) {
		port->describe_clock(&clock);
	}
	commands_put(host, arguments, 4);
	commands_put_number(host, TINYML_HOST_VERSION, 1);
	commands_put_number(host, TINYML_HOST_PAYLOAD, 2);
	commands_put_number(host, models, 1);
	commands_put_number(host,
			    (port->layers != NULL ? TINYML_HOST_HAS_LAYERS : 0u) |
				    (port->slot != NULL ? TINYML_HOST_HAS_SLOTS : 0u),
			    1);
	commands_put_number(host, clock.hertz, 4);
	commands_put_number(host, clock.empty, 4);
	commands_put_number(host, clock.loop, 4);
	return TINYML_HOST_OK;
}

/* Bytes of the counters of a model; 0 if it has none. */
static size_t commands_watch_bytes(const struct tinyml_host_port *port,
				   const struct tinyml_model *model)
{
	uint8_t nothing = 0;

	return port->watch != NULL ? port->watch(model, 0, &nothing, 0) : 0u;
}

static int commands_describe_model(struct tinyml_host *host, const struct tinyml_model *model)
{
	commands_put(host, model->sha256, sizeof(model->sha256));
	commands_put_number(host, model->arena_bytes, 4);
	commands_put_number(host, model->input_count, 1);
	commands_put_number(host, model->output_count, 1);
	commands_put_number(
		host,
		(model->run != NULL || model->feed != NULL ? TINYML_HOST_CAN_RUN : 0u) |
			(model->reset != NULL ? TINYML_HOST_CAN_RESET : 0u) |
			(model->feed != NULL ? TINYML_HOST_TAKES_ROWS : 0u) |
			(commands_watch_bytes(host->port, model) != 0u ? TINYML_HOST_HAS_WATCH
								       : 0u) |
			(host->port->adapt != NULL &&
					 host->port->adapt(model, NULL, 0, NULL, 0) != 0u
				 ? TINYML_HOST_CAN_LEARN
				 : 0u),
		1);
	commands_put(host, model->name, strlen(model->name));
	return TINYML_HOST_OK;
}

static int commands_describe_tensor(struct tinyml_host *host, const struct tinyml_model *model,
				    const uint8_t *arguments)
{
	bool is_output = arguments[0] != 0u;
	uint8_t count = is_output ? model->output_count : model->input_count;
	const struct tinyml_tensor *tensor;
	uint32_t scale;

	if (arguments[1] >= count) {
		return TINYML_HOST_WRONG;
	}
	tensor = &(is_output ? model->outputs : model->inputs)[arguments[1]];
	memcpy(&scale, &tensor->scale, sizeof(scale));
	commands_put_number(host, tensor->type, 1);
	commands_put_number(host, tensor->rank, 1);
	commands_put_number(host, tensor->data != NULL ? tensor->bytes : 0u, 4);
	commands_put_number(host, scale, 4);
	commands_put_number(host, (uint32_t)tensor->zero_point, 4);
	for (uint8_t i = 0; i < tensor->rank; i++) {
		commands_put_number(host, (uint32_t)tensor->shape[i], 4);
	}
	commands_put(host, tensor->name, strlen(tensor->name));
	return TINYML_HOST_OK;
}

static int commands_run(struct tinyml_host *host, const struct tinyml_model *model)
{
	const struct tinyml_host_port *port = host->port;
	uint32_t before, cycles;
	int returned;

	if (model->run == NULL && model->feed == NULL) {
		return TINYML_HOST_WRONG;
	}
	if (host->held != model) {
		return TINYML_HOST_LOST;
	}
	if (model->feed != NULL) { /* it has run while its input came */
		commands_put_number(
			host, (uint32_t)(host->fed_missing > 0 ? TINYML_EINVAL : host->fed_missing),
			4);
		commands_put_number(host, host->fed_cycles, 4);
		return TINYML_HOST_OK;
	}
	if (port->reset_layers != NULL) {
		port->reset_layers();
	}
	before = commands_read_cycles(port);
	returned = model->run();
	cycles = commands_read_cycles(port) - before;
	commands_put_number(host, (uint32_t)returned, 4);
	commands_put_number(host, cycles, 4);
	return TINYML_HOST_OK;
}

/* The next bytes of an input that arrives in rows; they have to come in order. */
static int commands_feed(struct tinyml_host *host, const struct tinyml_model *model,
			 uint32_t offset, const uint8_t *data, size_t bytes)
{
	const struct tinyml_host_port *port = host->port;
	const uint32_t whole = model->inputs[0].bytes;
	uint32_t before;

	if (offset == 0u) {
		if (port->reset_layers != NULL) {
			port->reset_layers();
		}
		host->fed_cycles = 0;
		host->fed_missing = model->begin() == 0 ? (int)whole : TINYML_EINVAL;
	}
	if (host->fed_missing <= 0 || offset != whole - (uint32_t)host->fed_missing) {
		return TINYML_HOST_WRONG;
	}
	before = commands_read_cycles(port);
	host->fed_missing = model->feed(data, bytes);
	host->fed_cycles += commands_read_cycles(port) - before;
	return TINYML_HOST_OK;
}

static int commands_write(struct tinyml_host *host, const struct tinyml_model *model,
			  uint32_t offset, uint8_t *data, size_t bytes)
{
	int status = commands_hold(host, model);

	if (status != TINYML_HOST_OK) {
		return status;
	}
	if (offset != 0u && host->interrupted) { /* what was written before may be gone */
		return TINYML_HOST_LOST;
	}
	commands_put_number(host, host->interrupted ? 0u : 1u, 1);
	host->interrupted = false;
	if (model->feed != NULL) {
		return commands_feed(host, model, offset, data, bytes);
	}
	return commands_copy(model->inputs, model->input_count, offset, data, bytes, true)
		       ? TINYML_HOST_OK
		       : TINYML_HOST_WRONG;
}

static int commands_read_outputs(struct tinyml_host *host, const struct tinyml_model *model,
				 const uint8_t *arguments)
{
	uint32_t count = commands_get_number(&arguments[4], 2);

	if (host->held != model) {
		return TINYML_HOST_LOST;
	}
	if (count > TINYML_HOST_PAYLOAD ||
	    !commands_copy(model->outputs, model->output_count, commands_get_number(arguments, 4),
			   &host->answer[host->answer_bytes], count, false)) {
		return TINYML_HOST_WRONG;
	}
	host->answer_bytes += count;
	return TINYML_HOST_OK;
}

static int commands_read_layers(struct tinyml_host *host, const uint8_t *arguments)
{
	const struct tinyml_host_port *port = host->port;
	size_t layers, layer = commands_get_number(arguments, 2);

	if (port->layers == NULL || port->layer_cycles == NULL) {
		return TINYML_HOST_UNKNOWN;
	}
	layers = port->layers();
	if (layers == SIZE_MAX) {
		return TINYML_HOST_LOST;
	}
	commands_put_number(host, (uint32_t)layers, 2);
	for (; layer < layers && ANSWER_ROOM - host->answer_bytes >= 4u; layer++) {
		commands_put_number(host, port->layer_cycles(layer), 4);
	}
	return port->layers() == layers ? TINYML_HOST_OK : TINYML_HOST_LOST;
}

static int commands_pass_to_slot(struct tinyml_host *host, const uint8_t *arguments, size_t bytes)
{
	size_t used;

	if (host->port->slot == NULL) {
		return TINYML_HOST_UNKNOWN;
	}
	commands_release(host); /* the port claims the model itself */
	used = host->port->slot(arguments, bytes, &host->answer[host->answer_bytes],
				ANSWER_ROOM - host->answer_bytes);
	host->answer_bytes += used;
	return used == 0u ? TINYML_HOST_BUSY : TINYML_HOST_OK;
}

/* The counters of a model. It is held, so that parts of them belong together. */
static int commands_read_watch(struct tinyml_host *host, const struct tinyml_model *model,
			       const uint8_t *arguments)
{
	const size_t total = commands_watch_bytes(host->port, model);
	const size_t offset = commands_get_number(&arguments[1], 2);
	const size_t room = TINYML_HOST_PAYLOAD;
	int status;

	if (total == 0u) {
		return TINYML_HOST_UNKNOWN;
	}
	if (offset > total) {
		return TINYML_HOST_WRONG;
	}
	status = commands_hold(host, model);
	if (status != TINYML_HOST_OK) {
		return status;
	}
	commands_put_number(host, (uint32_t)total, 2);
	(void)host->port->watch(model, offset, &host->answer[host->answer_bytes], room);
	host->answer_bytes += total - offset < room ? total - offset : room;
	if (arguments[0] != 0u) {
		(void)host->port->watch(model, 0, NULL, 0);
	}
	return TINYML_HOST_OK;
}

/* A request about what a model learns. It is held, because its last run is part of it. */
static int commands_adapt(struct tinyml_host *host, const struct tinyml_model *model,
			  const uint8_t *arguments, size_t bytes)
{
	int status;

	if (host->port->adapt == NULL || host->port->adapt(model, NULL, 0, NULL, 0) == 0u) {
		return TINYML_HOST_UNKNOWN;
	}
	status = commands_hold(host, model);
	if (status == TINYML_HOST_OK) {
		host->answer_bytes += host->port->adapt(model, arguments, bytes,
							&host->answer[host->answer_bytes],
							ANSWER_ROOM - host->answer_bytes);
	}
	return status;
}

/* Names, shapes and pointers of a model that another thread may replace meanwhile. */
static int commands_describe(struct tinyml_host *host, const struct tinyml_model *model,
			     const uint8_t *arguments, bool is_tensor)
{
	const struct tinyml_host_port *port = host->port;
	const bool claims = host->held != model && port->claim != NULL && port->release != NULL &&
			    port->is_replaced != NULL && port->is_replaced(model);
	int status;

	if (claims && port->claim(model) != 0) {
		return TINYML_HOST_BUSY;
	}
	status = is_tensor ? commands_describe_tensor(host, model, arguments)
			   : commands_describe_model(host, model);
	if (claims) {
		port->release(model);
	}
	return status;
}

/* Requests about a model. */
static int commands_execute_for(struct tinyml_host *host, uint8_t command,
				const struct tinyml_model *model, uint8_t *arguments, size_t bytes)
{
	int status;

	switch (command) {
	case TINYML_HOST_MODEL:
		return commands_describe(host, model, arguments, false);
	case TINYML_HOST_TENSOR:
		return bytes < 2u ? TINYML_HOST_WRONG
				  : commands_describe(host, model, arguments, true);
	case TINYML_HOST_RESET:
		status = commands_hold(host, model);
		if (status == TINYML_HOST_OK) {
			host->interrupted = false;
			if (model->reset != NULL) {
				model->reset();
			}
		}
		return status;
	case TINYML_HOST_WRITE:
		return bytes < 4u ? TINYML_HOST_WRONG
				  : commands_write(host, model, commands_get_number(arguments, 4),
						   &arguments[4], bytes - 4u);
	case TINYML_HOST_RUN:
		return commands_run(host, model);
	case TINYML_HOST_WATCH:
		return bytes < 3u ? TINYML_HOST_WRONG : commands_read_watch(host, model, arguments);
	case TINYML_HOST_ADAPT:
		return commands_adapt(host, model, arguments, bytes);
	default: /* TINYML_HOST_READ */
		return bytes < 6u ? TINYML_HOST_WRONG
				  : commands_read_outputs(host, model, arguments);
	}
}

static int commands_execute(struct tinyml_host *host, uint8_t command, uint8_t *arguments,
			    size_t bytes)
{
	const struct tinyml_model *model;

	switch (command) {
	case TINYML_HOST_HELLO:
		return bytes < 4u ? TINYML_HOST_WRONG : commands_hello(host, arguments);
	case TINYML_HOST_LAYERS:
		return bytes < 2u ? TINYML_HOST_WRONG : commands_read_layers(host, arguments);
	case TINYML_HOST_BYE:
		commands_release(host);
		return TINYML_HOST_OK;
	case TINYML_HOST_SLOT:
		return commands_pass_to_slot(host, arguments, bytes);
	case TINYML_HOST_MODEL:
	case TINYML_HOST_TENSOR:
	case TINYML_HOST_RESET:
	case TINYML_HOST_WRITE:
	case TINYML_HOST_RUN:
	case TINYML_HOST_READ:
	case TINYML_HOST_WATCH:
	case TINYML_HOST_ADAPT:
		model = bytes < 1u ? NULL : host->port->model(arguments[0]);
		return model == NULL ? TINYML_HOST_WRONG
				     : commands_execute_for(host, command, model, arguments + 1,
							    bytes - 1u);
	default:
		return TINYML_HOST_UNKNOWN;
	}
}

void tinyml_host_execute(struct tinyml_host *host, size_t bytes)
{
	int status;

	host->answer[0] = host->request[0];
	host->answer_bytes = 2;
	status = commands_execute(host, host->request[1], &host->request[2], bytes - 2u);
	host->answer[1] = (uint8_t)status;
	if (status != TINYML_HOST_OK) {
		host->answer_bytes = 2;
	}
}

void tinyml_host_idle(struct tinyml_host *host)
{
	commands_release(host);
}
