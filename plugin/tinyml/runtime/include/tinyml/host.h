/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Models driven from a computer, over a UART or anything else that carries bytes both ways. The
 * other side is `tinyml.connect()` in Python; `tinyml verify`, `profile`, `evaluate` and `deploy`
 * use it with --serial. On Zephyr, CONFIG_TINYML_HOST=y does all of this. Elsewhere:
 *
 *	static const struct tinyml_host_port port = {.model = my_model, .send = my_send};
 *	static struct tinyml_host host = {.port = &port};
 *
 *	tinyml_host_receive(&host, bytes, count);    whatever arrives, in parts of any size
 *
 * A frame is a packet in COBS (consistent overhead byte stuffing) between two zero bytes, so other
 * output on the same line, which has no zero bytes, does no harm between frames. Integers are
 * little endian.
 *
 *	request: number (1 byte), command (1), arguments, CRC-32 of all of these (4)
 *	answer:  number (1 byte), status (1), results, CRC-32 of all of these (4)
 *
 * An answer has the number of its request. A request that arrives twice in a row is executed once
 * and answered twice. A frame that arrives damaged is answered by number 0, TINYML_HOST_DAMAGED.
 *
 * Threads that print in the middle of an answer spoil it. So the second answer to a request comes
 * twice: as a frame, and then in bytes from 0x80 on, between which any ASCII text may be: 0xc0, the
 * packet in pieces of six bits plus 0x80, the high bits first, 0xc1, and a zero byte.
 *
 *	HELLO  nonce (4)                 -> nonce (4), version (1), payload (2), models (1),
 *	                                    features (1), clock (4), empty (4), loop (4)
 *	MODEL  model (1)                 -> SHA-256 (8), arena (4), inputs (1), outputs (1),
 *	                                    abilities (1), name
 *	TENSOR model (1), output (1), index (1)
 *	                                 -> type (1), rank (1), bytes (4), scale (4),
 *	                                    zero point (4), extents (4 each), name
 *	RESET  model (1)                 -> nothing
 *	WRITE  model (1), offset (4), bytes
 *	                                 -> continued (1); the inputs are one after the other
 *	RUN    model (1)                 -> returned (4), cycles (4)
 *	READ   model (1), offset (4), count (2)
 *	                                 -> bytes of the outputs, which are one after the other
 *	LAYERS first (2)                 -> layers (2), cycles (4 each) of as many as fit
 *	BYE                              -> nothing; the model is released
 *	SLOT   and its own request       -> see <tinyml/slot_receiver.h>
 *	WATCH  model (1), reset (1), offset (2)
 *	                                 -> bytes of the whole (2), those from the offset that fit:
 *	                                    the counters in CBOR, see <tinyml/watch.h>. `reset`:
 *	                                    then start the next period
 *	ADAPT  model (1) and a request of <tinyml/adapt.h>
 *	                                 -> its answer
 *
 * `continued` is 1 if nobody else has used the model since the requests before; its state is as
 * they have left it. Firmware of earlier versions leaves it out.
 *
 * The first byte of the results of HELLO after the nonce is the version in all versions.
 */

#ifndef TINYML_HOST_H_
#define TINYML_HOST_H_

#include <tinyml/tinyml.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TINYML_HOST_VERSION 1

/** The most bytes of a tensor in one frame, at least 64. Two buffers of this size are in RAM. */
#ifndef TINYML_HOST_PAYLOAD
#define TINYML_HOST_PAYLOAD 512
#endif

/** The largest packet: the payload, number, command, model, offset and CRC. */
#define TINYML_HOST_PACKET (TINYML_HOST_PAYLOAD + 12)

enum tinyml_host_command {
	TINYML_HOST_HELLO = 1,
	TINYML_HOST_MODEL,
	TINYML_HOST_TENSOR,
	TINYML_HOST_RESET,
	TINYML_HOST_WRITE,
	TINYML_HOST_RUN,
	TINYML_HOST_READ,
	TINYML_HOST_LAYERS,
	TINYML_HOST_BYE,
	TINYML_HOST_SLOT,
	TINYML_HOST_WATCH,
	TINYML_HOST_ADAPT,
};

enum tinyml_host_status {
	TINYML_HOST_OK = 0,
	TINYML_HOST_DAMAGED, /* the frame was: send it again */
	TINYML_HOST_UNKNOWN, /* no such command in this firmware */
	TINYML_HOST_WRONG,   /* arguments that are cut off or out of range */
	TINYML_HOST_BUSY,    /* another thread uses the model */
	TINYML_HOST_LOST,    /* the model was released after it was filled: fill it again */
};

/** Bits of `features` and `abilities`. */
#define TINYML_HOST_HAS_LAYERS 1u
#define TINYML_HOST_HAS_SLOTS  2u
#define TINYML_HOST_CAN_RUN    1u
#define TINYML_HOST_CAN_RESET  2u
#define TINYML_HOST_HAS_WATCH  8u /* counters of what it sees and decides */
#define TINYML_HOST_TAKES_ROWS 4u /* it computes while its input is written, in order */
#define TINYML_HOST_CAN_LEARN  16u

/** How long something takes, in cycles of the port's clock. */
struct tinyml_host_clock {
	uint32_t hertz; /* 0: there is no clock */
	uint32_t empty; /* between two readings */
	uint32_t loop;  /* for 99,999 instructions; 0: not known */
};

/** What a platform provides. All but the first two may be NULL. */
struct tinyml_host_port {
	/** The model with this index; NULL past the last one. */
	const struct tinyml_model *(*model)(size_t index);
	void (*send)(const uint8_t *data, size_t bytes);

	/** A reading of the clock, and its properties. */
	uint32_t (*cycles)(void);
	void (*describe_clock)(struct tinyml_host_clock *clock);

	/** Keep other threads away from a model. Negative if another one has it; 0 if nobody had it
	 * since it was released here, 1 if somebody may have. */
	int (*claim)(const struct tinyml_model *model);
	void (*release)(const struct tinyml_model *model);

	/** Whether another thread may replace a model, as in a slot: it is claimed to be described.
	 */
	bool (*is_replaced)(const struct tinyml_model *model);

	/** Cycles of the layers of the last run. */
	void (*reset_layers)(void);
	size_t (*layers)(void); /* SIZE_MAX if they are another thread's */
	uint32_t (*layer_cycles)(size_t layer);

	/** A request for <tinyml/slot_receiver.h>; returns the bytes of the answer, 0 if another
	 * thread uses the model. */
	size_t (*slot)(const uint8_t *request, size_t bytes, uint8_t *answer, size_t room);

	/** The counters of a model as CBOR, from an offset; returns the bytes of the whole, 0 if it
	 * has none. With an answer of NULL, the next period starts. */
	size_t (*watch)(const struct tinyml_model *model, size_t offset, uint8_t *answer,
			size_t room);

	/** A request for tinyml_adapt_request(); returns the bytes of the answer, 0 if the model
	 * learns nothing. Without an answer, 1 if it does. */
	size_t (*adapt)(const struct tinyml_model *model, const uint8_t *request, size_t bytes,
			uint8_t *answer, size_t room);
};

/** A conversation. Only `port` is the caller's to set; everything else starts as zero. */
struct tinyml_host {
	const struct tinyml_host_port *port;
	const struct tinyml_model *held; /* claimed, because it was filled or reset */
	const struct tinyml_model *held_last;
	bool interrupted; /* somebody else may have used it since */
	uint8_t request[TINYML_HOST_PACKET];
	uint8_t answer[TINYML_HOST_PACKET];
	size_t request_bytes;
	size_t answer_bytes;
	uint32_t fed_cycles; /* of a model whose input arrives in rows, since its first bytes */
	int fed_missing;     /* bytes that it still wants, or the error of the last ones */
	uint32_t frames;     /* that have arrived undamaged */
	uint32_t last_crc;   /* of the request that the answer belongs to */
	uint8_t last_number;
	uint8_t code; /* COBS: of the current block, 0 before the first */
	uint8_t left; /* bytes of the block that are missing */
	bool overflow;
};

/** Bytes from the line. Requests are executed and answered before this returns. */
void tinyml_host_receive(struct tinyml_host *host, const uint8_t *data, size_t bytes);

/** Call it after a second or so without any bytes, and when bytes come but `frames` stays the same
 * for longer: releases the model, in case the computer is gone. */
void tinyml_host_idle(struct tinyml_host *host);

/* --- for the files of the runtime ------------------------------------------------------------ */

/** Execute a request without its CRC; puts number, status and results into `answer`. */
void tinyml_host_execute(struct tinyml_host *host, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_HOST_H_ */
