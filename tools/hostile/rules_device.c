/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The rules of kernels on an emulated core. Marks around the parts find writes outside; what is
 * read outside is found by the memory protection unit of Armv7-M, which forbids what follows a
 * part, or, on other cores, if it changes results. */

#include <string.h>

#include "port.h"
#include "rules.h"

#define KERNELS 256
#define GUARD   32u /* bytes, the least that the unit protects */

#define MPU_TYPE (*(volatile uint32_t *)0xe000ed90u)
#define MPU_CTRL (*(volatile uint32_t *)0xe000ed94u)
#define MPU_RBAR (*(volatile uint32_t *)0xe000ed9cu)
#define MPU_RASR (*(volatile uint32_t *)0xe000eda0u)

#define MPU_ENABLE  5u /* with the default map as background */
#define MPU_REGIONS ((MPU_TYPE >> 8) & 255u)
#define MPU_OF_32   ((4u << 1) | 1u) /* no access: 0 in AP */
#if defined(__ARM_ARCH_7M__) || defined(__ARM_ARCH_7EM__)
#define HAS_UNIT 1
#else
#define HAS_UNIT 0
#endif

uint8_t rules_memory[(RULES_PARTS + 1) * RULES_ROOM] __attribute__((aligned(RULES_AFTER)));
const bool rules_finds_reads = false; /* not all of them */

uint8_t *rules_place(uint32_t part, uint32_t bytes, uint32_t alignment, bool exactly)
{
	/* The part ends where protection can begin, as far as its alignment allows. QEMU checks the
	 * second half of an unaligned access only if it is in another page. */
	const uint32_t end = part * RULES_ROOM + RULES_ROOM - RULES_AFTER;
	(void)exactly; /* it is */
	const uint32_t whole = (bytes + alignment - 1u) & ~(alignment - 1u);

	return rules_memory + end - whole;
}

static uint8_t mark(uint32_t turn)
{
	return turn == 0u ? 0xa5 : 0x3c;
}

void rules_forbid(const struct part *parts, uint32_t turn)
{
	for (uint32_t i = 0; i < RULES_PARTS; i++) {
		if (parts[i].used) {
			memset(parts[i].at - RULES_MARGIN, mark(turn), RULES_MARGIN);
			memset(parts[i].at + parts[i].bytes, mark(turn), RULES_MARGIN);
		}
	}
#if HAS_UNIT
	uint32_t region = 0;

	for (uint32_t i = 0; i < RULES_PARTS; i++) {
		const uint32_t end = (uint32_t)(uintptr_t)parts[i].at + parts[i].bytes;

		if (parts[i].used && region < MPU_REGIONS) {
			MPU_RBAR = ((end + GUARD - 1u) & ~(GUARD - 1u)) | 16u | region++;
			MPU_RASR = MPU_OF_32;
		}
	}
	MPU_CTRL = region > 0u ? MPU_ENABLE : 0u;
	__asm__ volatile("dsb\n\tisb" ::: "memory");
#endif
}

static bool is_marked(const uint8_t *at, uint32_t turn)
{
	for (uint32_t i = 0; i < RULES_MARGIN; i++) {
		if (at[i] != mark(turn)) {
			return false;
		}
	}
	return true;
}

bool rules_allow(const struct part *parts, uint32_t turn)
{
	bool whole = true;

#if HAS_UNIT
	MPU_CTRL = 0;
	__asm__ volatile("dsb\n\tisb" ::: "memory");
	for (uint32_t i = 0; i < MPU_REGIONS; i++) {
		MPU_RBAR = 16u | i;
		MPU_RASR = 0;
	}
#endif
	for (uint32_t i = 0; i < RULES_PARTS; i++) {
		if (parts[i].used) {
			whole = whole && is_marked(parts[i].at - RULES_MARGIN, turn) &&
				is_marked(parts[i].at + parts[i].bytes, turn);
		}
	}
	return whole;
}

static void print_number(uint32_t value, const char *after)
{
	char text[12] = "";
	uint32_t at = sizeof(text) - 1u;

	do {
		text[--at] = (char)('0' + value % 10u);
		value /= 10u;
	} while (value != 0u);
	port_print(&text[at]);
	port_print(after);
}

volatile uint32_t rules_number; /* for those who look at a fault */

int main(void)
{
	static uint32_t counts[KERNELS];

	for (uint32_t i = 0; i < PACKS_COUNT; i++) {
		uint32_t kernel;
		const char *wrong;

		rules_number = PACKS_FIRST + i;
		wrong = rules_try(PACKS_START, PACKS_FIRST + i, &kernel);
		if (wrong != NULL) {
			port_print("call ");
			print_number(PACKS_FIRST + i, ", kernel ");
			print_number(kernel, ": ");
			port_print(wrong);
			port_print("\n");
			port_exit(1);
		}
		counts[kernel]++;
	}
	for (uint32_t i = 0; i < KERNELS; i++) {
		if (counts[i] != 0u) {
			print_number(i, " ");
			print_number(counts[i], "\n");
		}
	}
	port_exit(0);
}
