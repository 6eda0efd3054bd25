/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A plugin for QEMU's code generator: counts how often every block of code is executed and how
 * often it is left by a jump, separately for each phase of a program.
 *
 * Arguments: begin=ADDRESS (a phase starts where this address is executed), end=ADDRESS (and ends
 * there), out=FILE. The file has a line for each block and phase,
 *
 *     block PHASE ADDRESS INSTRUCTIONS EXECUTED TAKEN
 *
 * and one for each phase with the extra bus transfers that unaligned loads cost a Cortex-M:
 *
 *     unaligned PHASE TRANSFERS
 *
 * Distributions do not ship qemu-plugin.h, so the few declarations we use stand here. They have
 * been the same in all versions of the interface; PLUGIN_API is the one that QEMU at hand takes. */

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

struct qemu_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

enum registers { NO_REGISTERS };
enum access { READS = 1 };

typedef void (*translated_fn)(uint64_t id, struct qemu_plugin_tb *tb);
typedef void (*executed_fn)(unsigned int cpu, void *data);
typedef void (*accessed_fn)(unsigned int cpu, uint32_t info, uint64_t address, void *data);
typedef void (*exit_fn)(uint64_t id, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated_fn function);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, executed_fn function,
					  enum registers registers, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, accessed_fn function,
				      enum registers registers, enum access access, void *data);
void qemu_plugin_register_atexit_cb(uint64_t id, exit_fn function, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
unsigned int qemu_plugin_mem_size_shift(uint32_t info);

EXPORTED int qemu_plugin_version = PLUGIN_API;

#define BUCKETS    4096u
#define MAX_PHASES 4096
#define OUTSIDE    -1

struct count {
	int phase;
	uint64_t executed, taken;
};

struct block {
	uint64_t begin, end;
	size_t instructions;
	struct count *counts; /* by rising phase */
	size_t used, room;
	struct block *next;
};

static struct block *blocks[BUCKETS];
static uint64_t unaligned[MAX_PHASES];
static struct count *last; /* of the block that was executed just now, if in a phase */
static uint64_t last_end;
static int phase = OUTSIDE, phases;
static uint64_t begin_address, end_address;
static const char *out_name = "blocks.txt";

static void *checked(void *memory)
{
	if (memory == NULL) {
		abort();
	}
	return memory;
}

/* The same code may be translated again, or only its beginning: that is another block. */
static struct block *find(uint64_t begin, uint64_t end, size_t instructions)
{
	struct block **at = &blocks[begin / 2 % BUCKETS];

	for (; *at != NULL; at = &(*at)->next) {
		if ((*at)->begin == begin && (*at)->instructions == instructions) {
			return *at;
		}
	}
	*at = checked(calloc(1, sizeof(**at)));
	(*at)->begin = begin;
	(*at)->end = end;
	(*at)->instructions = instructions;
	return *at;
}

static struct count *count_of(struct block *block)
{
	if (block->used == 0 || block->counts[block->used - 1].phase != phase) {
		if (block->used == block->room) {
			block->room = 2 * block->room + 2;
			block->counts = checked(
				realloc(block->counts, block->room * sizeof(*block->counts)));
		}
		block->counts[block->used++] = (struct count){.phase = phase};
	}
	return &block->counts[block->used - 1];
}

static void executed(unsigned int cpu, void *data)
{
	struct block *block = data;

	(void)cpu;
	if (last != NULL && last_end != block->begin) {
		last->taken++;
	}
	last = NULL;
	if (block->begin == begin_address) {
		phase = phases < MAX_PHASES ? phases++ : MAX_PHASES - 1;
	} else if (block->begin == end_address) {
		phase = OUTSIDE;
	}
	if (phase != OUTSIDE) {
		last = count_of(block);
		last->executed++;
		last_end = block->end;
	}
}

static void loaded(unsigned int cpu, uint32_t info, uint64_t address, void *data)
{
	const unsigned int shift = qemu_plugin_mem_size_shift(info);

	(void)cpu;
	(void)data;
	if (phase == OUTSIDE) {
		return;
	}
	if ((address & 1u) != 0u && shift >= 1u) { /* byte, half, byte: or two bytes */
		unaligned[phase] += shift == 1u ? 1u : 2u;
	} else if ((address & 2u) != 0u && shift >= 2u) {
		unaligned[phase]++;
	}
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb)
{
	const size_t count = qemu_plugin_tb_n_insns(tb);
	const struct qemu_plugin_insn *final = qemu_plugin_tb_get_insn(tb, count - 1);
	const uint64_t end = qemu_plugin_insn_vaddr(final) + qemu_plugin_insn_size(final);
	struct block *block = find(qemu_plugin_tb_vaddr(tb), end, count);

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, NO_REGISTERS, block);
	for (size_t i = 0; i < count; i++) {
		qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), loaded,
						 NO_REGISTERS, READS, NULL);
	}
}

static void finish(uint64_t id, void *data)
{
	FILE *out = checked(fopen(out_name, "w"));

	(void)id;
	(void)data;
	for (int i = 0; i < phases && i < MAX_PHASES; i++) {
		fprintf(out, "unaligned %d %" PRIu64 "\n", i, unaligned[i]);
	}
	for (size_t i = 0; i < BUCKETS; i++) {
		for (const struct block *block = blocks[i]; block != NULL; block = block->next) {
			for (size_t k = 0; k < block->used; k++) {
				const struct count *count = &block->counts[k];

				fprintf(out, "block %d %" PRIx64 " %zu %" PRIu64 " %" PRIu64 "\n",
					count->phase, block->begin, block->instructions,
					count->executed, count->taken);
			}
		}
	}
	fclose(out);
}

EXPORTED int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "begin=", 6) == 0) {
			begin_address = strtoull(argv[i] + 6, NULL, 16);
		} else if (strncmp(argv[i], "end=", 4) == 0) {
			end_address = strtoull(argv[i] + 4, NULL, 16);
		} else if (strncmp(argv[i], "out=", 4) == 0) {
			out_name = checked(strdup(argv[i] + 4));
		}
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, finish, NULL);
	return 0;
}
