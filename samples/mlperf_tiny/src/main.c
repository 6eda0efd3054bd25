/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A device under test of MLPerf Tiny, on the UART of the console. commands.c speaks with the
 * runner, inference.c has the model, and this file has the device: UART, time and pins.
 */

#include <stdarg.h>
#include <stdio.h>

#include <zephyr/device.h>
#include <zephyr/drivers/gpio.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>

#include <benchmark.h>

#include "commands.h"
#include "inference.h"
#include "streaming.h"
#include "th.h"

#if defined(CONFIG_MLPERF_TINY_AD01)
#define KIND INFERENCE_FLOATS
#elif defined(CONFIG_MLPERF_TINY_VWW01) || defined(CONFIG_MLPERF_TINY_IC01)
#define KIND INFERENCE_PIXELS
#else
#define KIND INFERENCE_VALUES
#endif
#define STREAMING  IS_ENABLED(CONFIG_MLPERF_TINY_SWW01)
#define DATA_BYTES INFERENCE_BYTES(KIND, BENCHMARK_INPUT_ELEMENTS, BENCHMARK_INPUT_BYTES)
#define TYPE_FITS(type)                                                                            \
	((type) == TINYML_FLOAT32 || (type) == TINYML_INT8 || (type) == TINYML_UINT8)

BUILD_ASSERT(TYPE_FITS(BENCHMARK_INPUT_TYPE) && TYPE_FITS(BENCHMARK_OUTPUT_TYPE),
	     "a model of MLPerf Tiny takes and gives float32, int8 or uint8");

static const struct device *const uart = DEVICE_DT_GET(DT_CHOSEN(zephyr_console));
static const struct gpio_dt_spec timestamp_pin =
	GPIO_DT_SPEC_GET_OR(DT_ALIAS(mlperf_timestamp), gpios, {0});
static uint8_t data[DATA_BYTES] __aligned(4);
static uint8_t input[BENCHMARK_INPUT_BYTES] __aligned(4);

K_MSGQ_DEFINE(received, 1, 256, 1);

void th_printf(const char *format, ...)
{
	char text[96];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (const char *next = text; *next != '\0'; next++) {
		uart_poll_out(uart, (unsigned char)*next);
	}
}

void th_timestamp_initialize(void)
{
	th_printf("m-timestamp-mode-%s\r\n",
		  IS_ENABLED(CONFIG_MLPERF_TINY_ENERGY) ? "energy" : "performance");
	if (timestamp_pin.port != NULL) {
		(void)gpio_pin_configure_dt(&timestamp_pin, GPIO_OUTPUT_ACTIVE);
	}
}

void th_timestamp(void)
{
	if (timestamp_pin.port != NULL) { /* the falling edge is the moment */
		(void)gpio_pin_set_dt(&timestamp_pin, 0);
		k_busy_wait(1);
		(void)gpio_pin_set_dt(&timestamp_pin, 1);
	}
	if (!IS_ENABLED(CONFIG_MLPERF_TINY_ENERGY)) {
		th_printf("m-lap-us-%lu\r\n",
			  (unsigned long)k_ticks_to_us_floor64(k_uptime_ticks()));
	}
}

void th_pre(void)
{
}

void th_post(void)
{
}

#ifndef CONFIG_MLPERF_TINY_SWW01
void th_start_detecting(void)
{
	th_printf("e-[start is a command of sww01]\r\n");
}

void th_stop_detecting(void)
{
	th_printf("e-[stop is a command of sww01]\r\n");
}
#endif

#ifdef CONFIG_UART_INTERRUPT_DRIVEN
static void on_interrupt(const struct device *device, void *unused)
{
	uint8_t bytes[16];
	int count;

	ARG_UNUSED(unused);
	while (uart_irq_update(device) > 0 && uart_irq_rx_ready(device) > 0) {
		count = uart_fifo_read(device, bytes, sizeof(bytes));
		if (count <= 0) {
			return;
		}
		for (int i = 0; i < count; i++) {
			(void)k_msgq_put(&received, &bytes[i], K_NO_WAIT);
		}
	}
}

static void listen(void)
{
	uint8_t early;

	(void)uart_irq_callback_set(uart, on_interrupt);
	uart_irq_rx_enable(uart);
	while (uart_poll_in(uart, &early) == 0) { /* some UARTs receive no other until it is read */
		(void)k_msgq_put(&received, &early, K_NO_WAIT);
	}
}

static bool next_byte(uint8_t *byte, k_timeout_t patience)
{
	return k_msgq_get(&received, byte, patience) == 0;
}
#else
static void listen(void)
{
}

static bool next_byte(uint8_t *byte, k_timeout_t patience)
{
	if (uart_poll_in(uart, byte) == 0) {
		return true;
	}
	k_sleep(K_TIMEOUT_EQ(patience, K_FOREVER) ? K_MSEC(1) : patience);
	return false;
}
#endif

int main(void)
{
	static const struct commands_settings settings = {
		.vendor = CONFIG_MLPERF_TINY_VENDOR,
		.model = CONFIG_MLPERF_TINY_ID,
		.data = data,
		.room = sizeof(data),
	};
	uint8_t byte;

	if (!device_is_ready(uart)) {
		return 1;
	}
	inference_start(&benchmark_model, KIND, data, input);
	listen();
	commands_start(&settings);
	for (;;) {
		const bool busy = STREAMING && streaming_step();

		if (next_byte(&byte, busy ? K_MSEC(1) : K_FOREVER)) {
			commands_receive((char)byte);
		}
	}
}
