/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A device on the host: two slots in simulated NOR flash. */

#ifndef TESTS_SUPPORT_SLOT_SIM_H_
#define TESTS_SUPPORT_SLOT_SIM_H_

#include <setjmp.h>

#include <tinyml/slots.h>

extern struct tinyml_slot model;
extern struct tinyml_slots slots;
extern struct tinyml_flash flash[2];
extern uint8_t *memory; /* both slots */
extern uint32_t slot_bytes;

extern int executed;          /* functions of images that were "called" */
extern bool hangs;            /* the self-test of a model that never returns */
extern jmp_buf power_failure; /* where an interrupted operation goes */
extern int tear;              /* what it has done */
extern long operation;        /* writes and erases so far */
extern long cut_at;           /* the one that power failure ends */
extern long fails_at;         /* the one that returns an error */

uint8_t random_byte(void);

/* End the program with a message unless everything is fine. */
void demand(bool fine, const char *what);

void power_on(void);

struct file {
	uint8_t *content[2]; /* for each slot */
	uint32_t bytes;
	uint8_t value; /* what the model computes */
};

extern int resumed; /* updates that went on where another one had stopped */

/* What a host does: ask what is there, go on with it if that is the start of this image. */
int send(const struct file *file, bool resume);

/* What the model in use computes. */
uint8_t answer(void);

/* From whatever state to a confirmed model. */
void bring(const struct file *file, bool resume);

/* The modes of the program. */
void cuts(const struct file *old, const struct file *new, const struct file *bad);
void stages(const struct file *old, const struct file *new, const struct file *bad);
void marks(const struct file *old, const struct file *new);
void faults(const struct file *old, const struct file *new);
void fuzz(const struct file *files, size_t count, unsigned long wanted);
void make_noise(uint32_t seed);

#endif /* TESTS_SUPPORT_SLOT_SIM_H_ */
