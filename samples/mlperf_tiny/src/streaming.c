/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every 32 ms: features, a run of the model, a pulse on a pin if it heard the wake word. The first
 * frame gives a pulse in any case, by which the interface board aligns its clock.
 */

#include <string.h>

#include <zephyr/audio/dmic.h>
#include <zephyr/device.h>
#include <zephyr/drivers/gpio.h>
#include <zephyr/kernel.h>

#include <benchmark.h>

#include "inference.h"
#include "mel.h"
#include "streaming.h"
#include "th.h"

#define MICROPHONE  DT_NODELABEL(dmic_dev)
#define RATE_HZ     16000
#define BLOCK_BYTES (MEL_STEP * (int)sizeof(int16_t))
#define BLOCKS      4
#define ROWS        (BENCHMARK_INPUT_ELEMENTS / MEL_BANDS)
#define PER_LINE    16
#define WAKE_WORD   0 /* its score is the first */
#define THRESHOLD   (115.0f + 128.0f) / 256.0f

BUILD_ASSERT(BENCHMARK_INPUT_ELEMENTS % MEL_BANDS == 0, "the model takes rows of 40 features");

static const struct device *const microphone = DEVICE_DT_GET(MICROPHONE);
static const struct gpio_dt_spec detected_pin =
	GPIO_DT_SPEC_GET_OR(DT_ALIAS(mlperf_detected), gpios, {0});
static const struct gpio_dt_spec processing_pin =
	GPIO_DT_SPEC_GET_OR(DT_ALIAS(mlperf_processing), gpios, {0});

K_MEM_SLAB_DEFINE_STATIC(slab, BLOCK_BYTES, BLOCKS, 4);
static uint8_t window[BENCHMARK_INPUT_BYTES] __aligned(4);
static int8_t activations[CONFIG_MLPERF_TINY_FRAMES];
static uint32_t frames;
static uint32_t fresh; /* rows since the last run */
static uint32_t overruns;
static bool listening;

static void set(const struct gpio_dt_spec *pin, int value)
{
	if (pin->port != NULL) {
		(void)gpio_pin_set_dt(pin, value);
	}
}

static void pulse(const struct gpio_dt_spec *pin)
{
	set(pin, 0);
	k_busy_wait(1);
	set(pin, 1);
}

static void prepare(const struct gpio_dt_spec *pin)
{
	if (pin->port != NULL) {
		(void)gpio_pin_configure_dt(pin, GPIO_OUTPUT_ACTIVE);
	}
}

static int configure(void)
{
	struct pcm_stream_cfg stream = {
		.pcm_rate = RATE_HZ,
		.pcm_width = 16,
		.block_size = BLOCK_BYTES,
		.mem_slab = &slab,
	};
	struct dmic_cfg config = {
		.io = {.min_pdm_clk_freq = 1000000,
		       .max_pdm_clk_freq = 3500000,
		       .min_pdm_clk_dc = 40,
		       .max_pdm_clk_dc = 60},
		.streams = &stream,
		.channel = {.req_num_streams = 1,
			    .req_num_chan = 1,
			    .req_chan_map_lo = dmic_build_channel_map(0, 0, PDM_CHAN_LEFT)},
	};

	return device_is_ready(microphone) ? dmic_configure(microphone, &config) : -ENODEV;
}

void th_start_detecting(void)
{
	int status;

	if (listening) {
		th_printf("e-[Already listening]\r\n");
		return;
	}
	prepare(&detected_pin);
	prepare(&processing_pin);
	set(&processing_pin, 0);
	memset(window, 0, sizeof(window));
	mel_reset();
	if (benchmark_model.reset != NULL) {
		benchmark_model.reset();
	}
	frames = 0;
	fresh = 0;
	overruns = 0;
	status = configure();
	if (status == 0) {
		th_timestamp();
		status = dmic_trigger(microphone, DMIC_TRIGGER_START);
	}
	listening = status == 0;
	th_printf(listening ? "Listening.\r\n" : "e-[The microphone failed: %d]\r\n", status);
}

void th_stop_detecting(void)
{
	const uint32_t kept = MIN(frames, ARRAY_SIZE(activations));

	if (!listening) {
		th_printf("Not listening.\r\n");
		return;
	}
	listening = false;
	(void)dmic_trigger(microphone, DMIC_TRIGGER_STOP);
	th_timestamp();
	th_printf("Stopped after %u frames, %u overruns.\r\n", frames, overruns);
	th_printf("target activations: \r\n[");
	for (uint32_t i = 0; i < kept; i++) {
		th_printf("%d%s", activations[i],
			  i + 1 == kept ? "" : ((i + 1) % PER_LINE == 0 ? ",\r\n" : ","));
	}
	th_printf("]\r\n");
}

/* A model with state takes every row once, others the last rows again and again. */
static bool add_row(const int16_t *samples)
{
	const struct tinyml_tensor *const tensor = &benchmark_model.inputs[0];
	const uint32_t row_bytes = tensor->bytes / ROWS;
	float row[MEL_BANDS];

	mel_row(samples, row);
	memmove(window, window + row_bytes, tensor->bytes - row_bytes);
	for (uint32_t i = 0; i < MEL_BANDS; i++) {
		inference_store(tensor, window + tensor->bytes - row_bytes, i, row[i]);
	}
	fresh++;
	if (benchmark_model.reset != NULL && fresh < ROWS) {
		return false;
	}
	fresh = 0;
	return true;
}

static void use(const int16_t *samples)
{
	float score = 0.0f;

	set(&processing_pin, 1);
	if (add_row(samples)) {
		memcpy(benchmark_model.inputs[0].data, window, sizeof(window));
		if (benchmark_model.run() == 0) {
			score = inference_value(&benchmark_model.outputs[0], WAKE_WORD);
		}
	}
	if (score > THRESHOLD || frames == 0) {
		pulse(&detected_pin);
	}
	if (frames < ARRAY_SIZE(activations)) {
		activations[frames] = (int8_t)(CLAMP((int32_t)(score * 256.0f), 0, 255) - 128);
	}
	frames++;
	set(&processing_pin, 0);
}

bool streaming_step(void)
{
	void *block;
	size_t bytes;

	if (!listening) {
		return false;
	}
	const int status = dmic_read(microphone, 0, &block, &bytes, 0);

	if (status == 0) {
		use(block);
		k_mem_slab_free(&slab, block);
	} else if (status == -EIO) { /* blocks came faster than they were used */
		overruns++;
		(void)dmic_trigger(microphone, DMIC_TRIGGER_STOP);
		(void)dmic_trigger(microphone, DMIC_TRIGGER_START);
	}
	return true;
}
