/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A model of updates that drives the runtime's own code: two slots in simulated flash, two clients
 * that send images to them, power that fails in any write or erase, and bits that rot.
 *
 * Everything that a step may change is in `world`, so that a state can be stored and restored. */

#ifndef TESTS_SUPPORT_SLOT_MODEL_H_
#define TESTS_SUPPORT_SLOT_MODEL_H_

#include <setjmp.h>
#include <stdio.h>

#include <tinyml/slots.h>

#define SLOT_MAX   1024u
#define UNITS_MAX  (SLOT_MAX / 8u)
#define FILES      4 /* old, new, one whose self-test fails, the newest */
#define BAD        2
#define NEWEST     3
#define CLIENTS    2
#define ADDRESS    0x60000u
#define PART_BYTES 200u /* what a client sends at once; no multiple of any unit */

/* A kind of flash. */
struct kind {
	const char *name;
	struct {
		uint32_t bytes, count;
	} units[2][2]; /* erase units of each slot: so many of a size, then of another one */
	uint32_t write_bytes;
	uint32_t stream_bytes; /* 0: no stream */
	bool once;             /* it refuses to write a unit twice, as flash with ECC does */
	bool faults;           /* reading what is erased or half written faults */
};

enum unit_state { UNIT_ERASED, UNIT_WRITTEN, UNIT_TORN };

/* What is known about the slots without asking the code under test. */
struct ghost {
	int8_t sent[2];      /* the file whose update finished, or may have; -1: none */
	int8_t kept;         /* the file that was confirmed last; -1: none */
	int8_t kept_in;      /* its region */
	uint8_t maybe_kept;  /* files whose confirmation power failure interrupted */
	uint8_t trials[2];   /* starts on trial */
	bool rejected[2];    /* given up, and not replaced since */
	bool rotten[2];      /* bits have changed, and nothing was sent since */
	int8_t last_sent[2]; /* the file of the last update that began */
};

struct client {
	struct tinyml_update update;
	int8_t file; /* -1: sends nothing */
};

struct world {
	uint8_t content[2][SLOT_MAX];
	uint8_t units[2][UNITS_MAX]; /* enum unit_state of each write unit */
	uint8_t waiting[SLOT_MAX];   /* in the stream's buffer */
	uint32_t waiting_at, waiting_bytes;
	struct tinyml_slots slots;
	struct tinyml_slot model;
	struct client clients[CLIENTS];
	struct ghost ghost;
	bool off;           /* power failed; a start comes next */
	uint8_t cuts, rots; /* so far */
	uint8_t begins;
};

struct file {
	uint8_t *content[2]; /* for each slot */
	uint32_t bytes;
	uint8_t value; /* what the model computes */
};

extern struct world world;
extern struct file files[FILES];
extern const struct kind *kind;
extern uint32_t slot_bytes;
extern jmp_buf power_failure;
extern long operation, cut_at;
extern int tear;
extern const char *doing;     /* in words, for messages */
extern unsigned long resumed; /* updates that went on where another one had stopped */

#define TEARS 5

/* slot_model_flash.c */
extern const struct kind kinds[];
extern const unsigned int kind_count;
void make_flash(const struct kind *made_of);
void blank_flash(void);
void mirror_flash(void); /* after `world` was restored */
bool is_readable(int slot, uint32_t offset, uint32_t bytes);
void expect_reads(const void *start, uint32_t bytes);
void damage(int slot, uint32_t offset, uint8_t bits);

/* slot_model_steps.c */
void power_on(void);
void start(void); /* power on, and open */
void begin(int client, int file, bool resume);
void part(int client);
void finish(int client);
void open_again(void);
void confirm(void);
void reject(void);
bool recover(int file, bool confirm_trial); /* whether a model was on trial */
int file_in_use(void);                      /* -1: none */
void demand(bool fine, const char *what);

/* slot_model_search.c */
void explore(unsigned int begins, unsigned int cuts, unsigned int rots, unsigned int clients);
void print_path(FILE *to);

/* slot_model_sweep.c */
void sweep(bool again, uint32_t distance);
#endif /* TESTS_SUPPORT_SLOT_MODEL_H_ */
