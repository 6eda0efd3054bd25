/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A detector's last operator in TensorFlow Lite Micro's interpreter, on the harness's bare
 * Cortex-M4: prints the clock before and after one run, the bytes of its arena, and what it found.
 * See micro_boxes.py. */

#include <cstdint>
#include <cstring>
#include <new>

#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"

extern "C" {
#include "clock.h"
#include "port.h"

extern const unsigned char model_data[], boxes_data[], scores_data[];
extern const unsigned boxes_bytes, scores_bytes;
}

/* As much as the board has, beside the stack. */
alignas(16) static uint8_t arena[3600 * 1024];

static void print_number(const char *name, uint32_t value)
{
	char text[12], *first = text + sizeof(text) - 1;

	*first = '\0';
	do {
		*--first = (char)('0' + value % 10u);
		value /= 10u;
	} while (value > 0u);
	port_print(name);
	port_print(" ");
	port_print(first);
	port_print("\n");
}

extern "C" int main(void)
{
	alignas(tflite::MicroInterpreter) static char room[sizeof(tflite::MicroInterpreter)];
	tflite::MicroMutableOpResolver<1> operators;
	port_stamp before, after;

	operators.AddDetectionPostprocess();
	tflite::MicroInterpreter *micro = new (room) tflite::MicroInterpreter(
		tflite::GetModel(model_data), operators, arena, sizeof(arena));
	if (micro->AllocateTensors() != kTfLiteOk) {
		port_print("tensors do not fit\n");
		port_exit(1);
	}
	memcpy(micro->input(0)->data.raw, boxes_data, boxes_bytes);
	memcpy(micro->input(1)->data.raw, scores_data, scores_bytes);
	clock_start();
	clock_read(&before);
	const TfLiteStatus status = micro->Invoke();

	clock_read(&after);
	if (status != kTfLiteOk) {
		port_print("the operator failed\n");
		port_exit(1);
	}
	const uint32_t found = (uint32_t)micro->output(3)->data.f[0];

	print_number("before", before.fine);
	print_number("after", after.fine);
	print_number("arena", (uint32_t)micro->arena_used_bytes());
	for (uint32_t i = 0; i < found; i++) {
		print_number("class", (uint32_t)micro->output(1)->data.f[i]);
	}
	port_exit(0);
}
