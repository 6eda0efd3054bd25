/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Streams of samples: windows that overlap, and a ring between an interrupt and a thread.
 *
 * Nothing here allocates, blocks or calls the operating system. All memory belongs to the caller.
 */

#ifndef TINYML_STREAM_H_
#define TINYML_STREAM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A sliding window over a stream of frames (one frame: the samples of all channels at one moment,
 * or one row of features). It fills up, is used, and then moves on by `step` frames; the rest stays
 * where it is, in a ring.
 */
struct tinyml_sliding {
	void *data;           /* frames * frame_bytes */
	uint32_t frame_bytes; /* bytes of one frame */
	uint32_t frames;      /* length of the window */
	uint32_t step;        /* frames that the window moves on by: 1 to `frames` */
	uint32_t next;        /* where the next frame goes; in a full window, the oldest frame */
	uint32_t filled;      /* frames that are there */
};

/** Take frames until the window is full. Returns how many were taken. */
size_t tinyml_sliding_push(struct tinyml_sliding *window, const void *frames, size_t count);

/** Whether the window can be used. */
static inline bool tinyml_sliding_full(const struct tinyml_sliding *window)
{
	return window->filled == window->frames;
}

/** Copy a full window to `out`, the oldest frame first. */
void tinyml_sliding_copy(const struct tinyml_sliding *window, void *out);

/** Forget the oldest `step` frames of a full window. */
static inline void tinyml_sliding_advance(struct tinyml_sliding *window)
{
	window->filled -= window->step;
}

/** Forget all frames. */
static inline void tinyml_sliding_reset(struct tinyml_sliding *window)
{
	window->next = 0;
	window->filled = 0;
}

/**
 * A ring of bytes between one producer (often an interrupt) and one consumer (often a thread),
 * which need no lock. What does not fit is dropped and counted: neither side ever waits.
 */
struct tinyml_ring {
	uint8_t *data;
	uint32_t size;    /* bytes of `data`; any number up to 2^30 */
	uint32_t written; /* of the producer: place, counted modulo 2 * size */
	uint32_t read;    /* of the consumer: the same */
	uint32_t dropped; /* of the producer: bytes that did not fit */
};

/** Empty ring over an array. */
#define TINYML_RING(array) {.data = (uint8_t *)(array), .size = sizeof(array)}

/**
 * For the producer: append `bytes`, all or nothing, so that samples stay whole. Returns false, and
 * counts the bytes as dropped, if there is not enough room.
 */
bool tinyml_ring_put(struct tinyml_ring *ring, const void *data, uint32_t bytes);

/** For the consumer: take up to `bytes`. Returns how many there were. */
uint32_t tinyml_ring_get(struct tinyml_ring *ring, void *data, uint32_t bytes);

/**
 * For the consumer: look at the oldest bytes without copying them. Returns how many follow `*data`
 * in one piece; what is past the end of the array comes with the next call after a skip.
 */
uint32_t tinyml_ring_peek(const struct tinyml_ring *ring, const void **data);

/** For the consumer: remove bytes that tinyml_ring_peek() has shown. */
void tinyml_ring_skip(struct tinyml_ring *ring, uint32_t bytes);

/** For the consumer: bytes that can be read. */
uint32_t tinyml_ring_used(const struct tinyml_ring *ring);

/** Bytes dropped since the start; may be called from anywhere. It wraps after 2^32. */
uint32_t tinyml_ring_dropped(const struct tinyml_ring *ring);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_STREAM_H_ */
