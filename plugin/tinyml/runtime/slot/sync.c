/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Between writing code and running it: the core's caches. */

#include <tinyml/slot.h>

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' && TINYML_SLOT_THUMB >= 2

/* Registers of the System Control Space, at the same address on every Cortex-M with caches. On
 * others the bits of CCR are zero. Tests put other memory in their place. */
#ifndef TINYML_SLOT_REGISTER
#define TINYML_SLOT_REGISTER(offset) (*(volatile uint32_t *)(0xe000e000u + (offset)))
#endif

#define CCR       TINYML_SLOT_REGISTER(0xd14u)
#define CCR_DC    (1u << 16)                   /* the data cache is on */
#define CCR_IC    (1u << 17)                   /* the instruction cache is on */
#define ICIMVAU   TINYML_SLOT_REGISTER(0xf58u) /* invalidate a line of instructions */
#define DCCIMVAC  TINYML_SLOT_REGISTER(0xf70u) /* clean and invalidate a line of data */
#define BPIALL    TINYML_SLOT_REGISTER(0xf78u) /* forget all branches */
#define LINE      32u
#define barrier() __asm__ volatile("dsb 0xf\nisb 0xf" ::: "memory")

void tinyml_slot_sync(const void *start, uint32_t bytes)
{
	uint32_t first = (uint32_t)(uintptr_t)start & ~(LINE - 1u);
	uint32_t end = (uint32_t)(uintptr_t)start + bytes;
	uint32_t caches = CCR;

	barrier();
	/* Data first: instructions are fetched from where dirty lines go to. */
	for (uint32_t line = first; (caches & CCR_DC) != 0u && line < end; line += LINE) {
		DCCIMVAC = line;
	}
	barrier();
	for (uint32_t line = first; (caches & CCR_IC) != 0u && line < end; line += LINE) {
		ICIMVAU = line;
	}
	if ((caches & CCR_IC) != 0u) {
		BPIALL = 0;
	}
	barrier();
}

#elif defined(__riscv)

void tinyml_slot_sync(const void *start, uint32_t bytes)
{
	(void)start;
	(void)bytes;
#ifndef TINYML_SLOT_NO_FENCE_I /* for cores that do not know this instruction */
	/* fence.i, which assemblers accept by name only with Zifencei in -march */
	__asm__ volatile("fence\n.4byte 0x0000100f" ::: "memory");
#endif
}

#else

void tinyml_slot_sync(const void *start, uint32_t bytes)
{
	(void)start;
	(void)bytes;
}

#endif
