/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* CONFIG_TINYML_HOST: the models of this image for a computer, over a UART. See <tinyml/host.h>. */

#include <tinyml/claim.h>
#include <tinyml/host.h>
#include <tinyml/profile.h>
#include <tinyml/registry.h>
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#ifdef CONFIG_TINYML_WATCH
#include <tinyml/device_watch.h>
#endif
#ifdef CONFIG_TINYML_ADAPT
#include <tinyml/device_adapt.h>
#endif
#ifdef CONFIG_TINYML_SLOTS
#include <tinyml/device_slots.h>
#include <tinyml/slot_receiver.h>
#endif

#if DT_HAS_CHOSEN(tinyml_host)
#define LINE DT_CHOSEN(tinyml_host)
#else
#define LINE DT_CHOSEN(zephyr_console)
#endif

#if defined(CONFIG_SHELL_BACKEND_SERIAL) && DT_HAS_CHOSEN(zephyr_shell_uart)
BUILD_ASSERT(!DT_SAME_NODE(LINE, DT_CHOSEN(zephyr_shell_uart)),
	     "CONFIG_TINYML_HOST and Zephyr's shell cannot have the same UART: choose another one "
	     "for tinyml,host or zephyr,shell-uart in the devicetree, or turn one of them off");
#endif

#ifdef CONFIG_QEMU_ICOUNT /* idle time passes at once there */
#define IDLE_MS SYS_FOREVER_MS
#else
#define IDLE_MS 2000
#endif
#define BABBLE_MS     10000 /* of bytes that are no frames; a frame may take some seconds */
#define QUIET_MS      20    /* without interrupts: how long to poll for the next byte */
#define CLAIM_TIMEOUT K_MSEC(500)

static const struct device *const line = DEVICE_DT_GET(LINE);
static struct tinyml_host host;

static const struct tinyml_model *model_at(size_t index)
{
	TINYML_FOREACH_MODEL(entry)
	{
		if (index-- == 0) {
			return entry->model;
		}
	}
	return NULL;
}

static void send(const uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		uart_poll_out(line, data[i]);
	}
}

#ifdef CONFIG_USERSPACE /* where locks hold nothing but a mutex */
static int claim(const struct tinyml_model *model)
{
	return tinyml_claim(model, CLAIM_TIMEOUT);
}
#else
/* 1 if another thread has claimed the arena since this one has. */
static int claim(const struct tinyml_model *model)
{
	static const struct tinyml_lock *lock;
	static uint32_t claims;
	int error = tinyml_claim(model, CLAIM_TIMEOUT);
	bool others;

	if (error != 0) {
		return error;
	}
	others = model->lock != lock || model->lock->claims != claims + 1u;
	lock = model->lock;
	claims = lock->claims;
	return others ? 1 : 0;
}
#endif

static uint32_t empty_cycles(void)
{
	uint32_t before = tinyml_profile_clock();

	return tinyml_profile_clock() - before;
}

/*
 * Cycles during a known number of instructions, in QEMU. They give the instructions per tick: the
 * frequency in Kconfig is not always that of the emulated clock. Interrupts wait for them, which
 * no device should have to.
 */
static uint32_t loop_cycles(void)
{
#if defined(CONFIG_QEMU_TARGET) && (defined(CONFIG_CPU_CORTEX_M) || defined(CONFIG_RISCV))
	unsigned long left = 99999 / 3; /* three instructions in each turn */
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

static void describe_clock(struct tinyml_host_clock *clock)
{
	(void)empty_cycles(); /* the first reading may have to wait for flash */
	clock->hertz = tinyml_profile_clock_hz();
	clock->empty = empty_cycles();
	clock->loop = loop_cycles();
}

#ifdef CONFIG_TINYML_PROFILING
static size_t layers(void)
{
	return tinyml_profile_is_mine() ? tinyml_profile_layers() : SIZE_MAX;
}
#endif

#ifdef CONFIG_TINYML_SLOTS
static bool is_replaced(const struct tinyml_model *model)
{
	return model == &tinyml_slot_model.model;
}

static size_t receive_slot(const uint8_t *request, size_t bytes, uint8_t *answer, size_t room)
{
	static struct tinyml_receiver receiver = {
		.slots = &tinyml_device_slots,
		.slot = &tinyml_slot_model,
	};
	size_t used;

	if (tinyml_claim(&tinyml_slot_model.model, CLAIM_TIMEOUT) != 0) {
		return 0;
	}
	used = tinyml_receiver_request(&receiver, request, bytes, answer, room);
	tinyml_release(&tinyml_slot_model.model);
	return used;
}
#endif

#ifdef CONFIG_TINYML_WATCH
static size_t read_watch(const struct tinyml_model *model, size_t offset, uint8_t *answer,
			 size_t room)
{
	const struct tinyml_watch *watch = tinyml_watch_of(model);

	if (watch == NULL) {
		return 0;
	}
	if (answer == NULL) {
		tinyml_watch_reset(watch);
	}
	return tinyml_watch_encode(watch, offset, answer, room);
}
#endif

#ifdef CONFIG_TINYML_ADAPT
static size_t adapt_model(const struct tinyml_model *model, const uint8_t *request, size_t bytes,
			  uint8_t *answer, size_t room)
{
	const struct tinyml_adapt *adapt = tinyml_adapt_of(model);

	if (adapt == NULL || answer == NULL) {
		return adapt != NULL ? 1 : 0;
	}
	return tinyml_adapt_request(adapt, request, bytes, answer, room);
}
#endif

static const struct tinyml_host_port port = {
	.model = model_at,
	.send = send,
	.cycles = tinyml_profile_clock,
	.describe_clock = describe_clock,
	.claim = claim,
	.release = tinyml_release,
#ifdef CONFIG_TINYML_PROFILING
	.reset_layers = tinyml_profile_reset,
	.layers = layers,
	.layer_cycles = tinyml_profile_cycles,
#endif
#ifdef CONFIG_TINYML_SLOTS
	.is_replaced = is_replaced,
	.slot = receive_slot,
#endif
#ifdef CONFIG_TINYML_WATCH
	.watch = read_watch,
#endif
#ifdef CONFIG_TINYML_ADAPT
	.adapt = adapt_model,
#endif
};

#ifdef CONFIG_UART_INTERRUPT_DRIVEN

/* One frame is on its way at most, and repetitions of it. */
K_MSGQ_DEFINE(received, 1, 2 * TINYML_HOST_PACKET, 1);

static void on_interrupt(const struct device *device, void *unused)
{
	uint8_t data[16];
	int count;

	ARG_UNUSED(unused);
	while (uart_irq_update(device) > 0 && uart_irq_rx_ready(device) > 0) {
		count = uart_fifo_read(device, data, sizeof(data));
		if (count <= 0) {
			return;
		}
		for (int i = 0; i < count; i++) {
			(void)k_msgq_put(&received, &data[i], K_NO_WAIT);
		}
	}
}

static bool start(void)
{
	uint8_t early;

	if (uart_irq_callback_set(line, on_interrupt) != 0) {
		return false;
	}
	uart_irq_rx_enable(line);
	/* A byte that arrived before this caused no interrupt, and some UARTs receive no other
	 * until it has been read. */
	while (uart_poll_in(line, &early) == 0) {
		(void)k_msgq_put(&received, &early, K_NO_WAIT);
	}
	return true;
}

static bool next_byte(uint8_t *byte)
{
	return k_msgq_get(&received, byte, SYS_TIMEOUT_MS(IDLE_MS)) == 0;
}

#else

static bool start(void)
{
	return true;
}

/* Polls while bytes keep coming, and sleeps in between so that other threads run. */
static bool next_byte(uint8_t *byte)
{
	int64_t end = k_uptime_get() + QUIET_MS;

	while (uart_poll_in(line, byte) != 0) {
		if (k_uptime_get() >= end || IS_ENABLED(CONFIG_ARCH_POSIX)) {
			k_msleep(1);
		}
		if (IDLE_MS != SYS_FOREVER_MS && k_uptime_get() >= end + IDLE_MS) {
			return false;
		}
	}
	return true;
}

#endif

static void serve(void *a, void *b, void *c)
{
	uint32_t frames = 0;
	int64_t answered = 0;
	uint8_t byte;

	ARG_UNUSED(a);
	ARG_UNUSED(b);
	ARG_UNUSED(c);
	host.port = &port;
	if (!device_is_ready(line) || !start()) {
		printk("tinyml: the UART of CONFIG_TINYML_HOST does not work\n");
		return;
	}
	for (;;) {
		bool came = next_byte(&byte);

		if (came) {
			tinyml_host_receive(&host, &byte, 1);
		}
		if (host.frames != frames) {
			frames = host.frames;
			answered = k_uptime_get();
		} else if (!came ||
			   (IDLE_MS != SYS_FOREVER_MS && k_uptime_get() - answered >= BABBLE_MS)) {
			tinyml_host_idle(&host);
		}
	}
}

K_THREAD_DEFINE(tinyml_host, CONFIG_TINYML_HOST_STACK_SIZE, serve, NULL, NULL, NULL,
		K_LOWEST_APPLICATION_THREAD_PRIO, 0, 0);
