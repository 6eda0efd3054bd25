/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A device behind <tinyml/host.h> on this computer, with two models.
 *
 *	host_device serve [LOSS]      on standard input and output; LOSS: damage one byte of so many
 *	host_device chat BYTES        the same; print a line after so many bytes of answers
 *	host_device fuzz SEED COUNT   so many requests: noise, damaged frames, frames of nonsense
 *
 * Tensors have exactly the memory that they need, so that the sanitizer sees a byte too many. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tinyml/crc32.h>
#include <tinyml/host.h>

static const int32_t three[] = {1, 3}, five[] = {5}, one[] = {1}, many[] = {1, 700};

static struct tinyml_tensor inputs[] = {
	{.name = "x", .shape = three, .bytes = 12, .type = TINYML_FLOAT32, .rank = 2},
	{.name = "q",
	 .shape = five,
	 .bytes = 5,
	 .scale = 0.5f,
	 .zero_point = -3,
	 .type = TINYML_INT8,
	 .rank = 1},
};
static struct tinyml_tensor outputs[] = {
	{.name = "sum", .shape = one, .bytes = 4, .type = TINYML_FLOAT32, .rank = 1},
	{.name = "runs", .shape = one, .bytes = 4, .type = TINYML_INT32, .rank = 1},
};
static struct tinyml_tensor wide_in[] = {
	{.name = "image", .shape = many, .bytes = 700, .type = TINYML_UINT8, .rank = 2}};
static struct tinyml_tensor wide_out[] = {
	{.name = "same", .shape = many, .bytes = 700, .type = TINYML_UINT8, .rank = 2},
	{.name = "not_here", .shape = many, .bytes = 700, .type = TINYML_UINT8, .rank = 2}};

static int32_t runs;

static int run_sum(void)
{
	float x[3], sum = 0;
	int8_t q[5];

	memcpy(x, inputs[0].data, sizeof(x));
	memcpy(q, inputs[1].data, sizeof(q));
	for (int i = 0; i < 3; i++) {
		sum += x[i];
	}
	for (int i = 0; i < 5; i++) {
		sum += 0.5f * (float)(q[i] + 3);
	}
	runs++;
	memcpy(outputs[0].data, &sum, sizeof(sum));
	memcpy(outputs[1].data, &runs, sizeof(runs));
	return 0;
}

static void reset_sum(void)
{
	runs = 0;
}

static int run_same(void)
{
	if (((uint8_t *)wide_in[0].data)[0] == 13u) {
		return TINYML_EINVAL;
	}
	memcpy(wide_out[0].data, wide_in[0].data, wide_in[0].bytes);
	return 0;
}

/* A model whose input is never there as a whole: the sums of its rows. */
static const int32_t rows[] = {1, 7, 100}, seven[] = {7};
static struct tinyml_tensor row_in[] = {
	{.name = "rows", .shape = rows, .bytes = 700, .type = TINYML_UINT8, .rank = 3}};
static struct tinyml_tensor row_out[] = {
	{.name = "sums", .shape = seven, .bytes = 28, .type = TINYML_INT32, .rank = 1}};
/* Another one of the same kind: it subtracts. */
static struct tinyml_tensor other_out[] = {
	{.name = "sums", .shape = seven, .bytes = 28, .type = TINYML_INT32, .rank = 1}};
static struct {
	int32_t sums[7];
	int missing;
} adding, subtracting;

static int begin_rows(void)
{
	memset(&adding, 0, sizeof(adding));
	adding.missing = 700;
	return 0;
}

static int begin_other(void)
{
	memset(&subtracting, 0, sizeof(subtracting));
	subtracting.missing = 700;
	return 0;
}

static int feed_rows(const void *data, size_t bytes)
{
	const uint8_t *from = data;

	if (adding.missing == 0 || bytes > (size_t)adding.missing) {
		return TINYML_EINVAL;
	}
	for (size_t i = 0; i < bytes; i++) {
		adding.sums[(700 - adding.missing--) / 100] += from[i];
	}
	if (adding.missing == 0) {
		memcpy(row_out[0].data, adding.sums, sizeof(adding.sums));
	}
	return adding.missing;
}

static int feed_other(const void *data, size_t bytes)
{
	const uint8_t *from = data;

	if (subtracting.missing == 0 || bytes > (size_t)subtracting.missing) {
		return TINYML_EINVAL;
	}
	for (size_t i = 0; i < bytes; i++) {
		subtracting.sums[(700 - subtracting.missing--) / 100] -= from[i];
	}
	if (subtracting.missing == 0) {
		memcpy(other_out[0].data, subtracting.sums, sizeof(subtracting.sums));
	}
	return subtracting.missing;
}

static const struct tinyml_model models[] = {
	{
		.name = "sum",
		.run = run_sum,
		.reset = reset_sum,
		.inputs = inputs,
		.outputs = outputs,
		.input_count = 2,
		.output_count = 2,
		.sha256 = {1, 2, 3, 4, 5, 6, 7, 8},
		.arena_bytes = 100,
	},
	{
		.name = "same",
		.run = run_same,
		.inputs = wide_in,
		.outputs = wide_out,
		.input_count = 1,
		.output_count = 1,
		.sha256 = {9},
		.arena_bytes = 1400,
	},
	{
		.name = "rows",
		.inputs = row_in,
		.outputs = row_out,
		.input_count = 1,
		.output_count = 1,
		.sha256 = {10},
		.arena_bytes = 28,
		.begin = begin_rows,
		.feed = feed_rows,
	},
	{
		.name = "other",
		.inputs = row_in,
		.outputs = other_out,
		.input_count = 1,
		.output_count = 1,
		.sha256 = {11},
		.arena_bytes = 28,
		.begin = begin_other,
		.feed = feed_other,
	},
	{
		.name = "callers",
		.inputs = wide_in,
		.outputs = wide_out,
		.input_count = 1,
		.output_count = 2,
	},
};

static const struct tinyml_model *model_at(size_t index)
{
	return index < sizeof(models) / sizeof(models[0]) ? &models[index] : NULL;
}

static unsigned long sent, loss, chat;
static uint32_t noise = 1;

static uint32_t random_below(uint32_t limit)
{
	noise ^= noise << 13;
	noise ^= noise >> 17;
	noise ^= noise << 5;
	return noise % limit;
}

static uint8_t damaged(uint8_t byte)
{
	return loss != 0u && random_below((uint32_t)loss) == 0u ? (uint8_t)(byte ^ 16u) : byte;
}

static void send(const uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		putchar(damaged(data[i]));
		if (chat != 0u && (sent + i) % chat == 0u) {
			printf("all is well, %lu\r\n", sent + i);
		}
	}
	sent += bytes;
}

static void count_sent(const uint8_t *data, size_t bytes)
{
	static uint8_t sink;

	for (size_t i = 0; i < bytes; i++) {
		sink ^= data[i]; /* the sanitizer checks that it can be read */
	}
	sent += bytes;
}

static uint32_t cycles(void)
{
	static uint32_t now;

	return now += 1000;
}

static void describe_clock(struct tinyml_host_clock *clock)
{
	*clock = (struct tinyml_host_clock){12000000, 1000, 70000};
}

static const struct tinyml_model *claimed;

static int claim(const struct tinyml_model *model)
{
	if (claimed != NULL || random_below(50) == 0u) {
		return -1;
	}
	claimed = model;
	return 0;
}

static void release(const struct tinyml_model *model)
{
	if (claimed != model) {
		fprintf(stderr, "released what was not claimed\n");
		abort();
	}
	claimed = NULL;
}

static size_t layers(void)
{
	return 300;
}

static uint32_t layer_cycles(size_t layer)
{
	return (uint32_t)layer * 10u;
}

static const struct tinyml_host_port port = {
	.model = model_at,
	.send = send,
	.cycles = cycles,
	.describe_clock = describe_clock,
	.layers = layers,
	.layer_cycles = layer_cycles,
};
static const struct tinyml_host_port fuzzed_port = {
	.model = model_at,
	.send = count_sent,
	.cycles = cycles,
	.describe_clock = describe_clock,
	.claim = claim,
	.release = release,
	.layers = layers,
	.layer_cycles = layer_cycles,
};

static void give_memory(struct tinyml_tensor *tensors, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		tensors[i].data = calloc(1, tensors[i].bytes);
	}
}

static int serve(void)
{
	static struct tinyml_host host = {.port = &port};
	uint8_t data[256];
	ssize_t count;

	printf("*** Booting ***\r\n");
	fflush(stdout);
	while ((count = read(0, data, sizeof(data))) > 0) {
		for (ssize_t i = 0; i < count; i++) {
			data[i] = damaged(data[i]);
		}
		tinyml_host_receive(&host, data, (size_t)count);
		fflush(stdout);
	}
	return 0;
}

/* --- fuzzing --------------------------------------------------------------------------------- */

/* A byte as they are common in requests. */
static uint8_t plausible_byte(void)
{
	return (uint8_t)(random_below(3) != 0u ? random_below(12) : random_below(256));
}

/* A frame with a correct CRC around any command and arguments; returns its length. */
static size_t make_frame(uint8_t *frame)
{
	uint8_t packet[TINYML_HOST_PACKET + 40];
	size_t bytes = 2u + random_below(random_below(8) == 0u ? TINYML_HOST_PACKET + 30u : 16u);
	size_t used = 0, at = 0;
	uint32_t crc;

	for (size_t i = 0; i < bytes; i++) {
		packet[i] = plausible_byte();
	}
	crc = tinyml_crc32(0, packet, bytes);
	for (unsigned int i = 0; i < 4u; i++) {
		packet[bytes++] = (uint8_t)(crc >> (8u * i));
	}
	for (;;) {
		size_t n = 0;

		while (n < 254u && at + n < bytes && packet[at + n] != 0u) {
			n++;
		}
		frame[used++] = (uint8_t)(n + 1u);
		memcpy(&frame[used], &packet[at], n);
		used += n;
		at += n;
		if (at >= bytes) {
			break;
		}
		at += n < 254u;
	}
	frame[used++] = 0;
	return used;
}

static int fuzz(uint32_t seed, unsigned long count)
{
	struct tinyml_host *host = calloc(1, sizeof(*host));
	uint8_t data[2 * TINYML_HOST_PACKET];
	unsigned long executed = 0;

	noise = seed * 2654435761u + 1u;
	host->port = &fuzzed_port;
	for (unsigned long i = 0; i < count; i++) {
		uint32_t kind = random_below(8);
		size_t bytes = kind == 0u ? random_below(sizeof(data)) : make_frame(data);

		for (size_t j = 0; kind == 0u && j < bytes; j++) {
			data[j] = plausible_byte();
		}
		if (kind == 1u) {
			data[random_below((uint32_t)bytes)] ^= (uint8_t)(1u << random_below(8));
		}
		if (kind == 2u) {
			tinyml_host_idle(host);
		}
		tinyml_host_receive(host, data, bytes);
		if (kind == 3u) {
			tinyml_host_receive(host, data, bytes); /* the same again */
		}
		executed += host->answer_bytes > 6u;
		if (host->answer_bytes > sizeof(host->answer)) {
			abort();
		}
	}
	printf("%lu inputs, %lu with results, %lu bytes sent\n", count, executed, sent);
	free(host);
	return 0;
}

int main(int argc, char **argv)
{
	give_memory(inputs, 2);
	give_memory(outputs, 2);
	give_memory(wide_in, 1);
	give_memory(row_out, 1);
	give_memory(other_out, 1);
	give_memory(wide_out, 1); /* and not the second one: the caller's */
	if (argc == 4 && strcmp(argv[1], "fuzz") == 0) {
		return fuzz((uint32_t)strtoul(argv[2], NULL, 0), strtoul(argv[3], NULL, 0));
	}
	if (argc == 3 && strcmp(argv[1], "chat") == 0) {
		chat = strtoul(argv[2], NULL, 0);
		return serve();
	}
	loss = argc == 3 ? strtoul(argv[2], NULL, 0) : 0u;
	return serve();
}
