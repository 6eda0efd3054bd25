/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Runs the model of test_npu.py with an NPU that answers from a file and writes down its inputs. */

#include "model.h"

#include <stdio.h>
#include <string.h>
#include <tinyml/ethos_u.h>

static FILE *answers, *questions;

static int aligned(const void *pointer)
{
	return (uintptr_t)pointer % TINYML_ETHOS_U_ALIGNMENT == 0;
}

int tinyml_ethos_u_run(const struct tinyml_ethos_u *part, const void *input, void *output,
		       void *scratch)
{
	if (!aligned(part->commands) || !aligned(part->weights) || !aligned(input) ||
	    !aligned(output) || !aligned(scratch) || memcmp(part->commands, "COP1", 4) != 0) {
		return TINYML_EINVAL;
	}
	fwrite(input, 1, part->input_bytes, questions);
	if (scratch != NULL) {
		memset(scratch, 0x55, part->scratch_bytes); /* it is the NPU's own */
	}
	memset(output, 0x55, part->output_bytes);
	return fread(output, 1, part->output_bytes, answers) == part->output_bytes ? 0
										   : TINYML_ENPU;
}

int main(void)
{
	int status;

	answers = fopen("answers", "rb");
	questions = fopen("questions", "wb");
	if (answers == NULL || questions == NULL ||
	    fread(model_input(), 1, MODEL_INPUT_BYTES, stdin) != MODEL_INPUT_BYTES) {
		return 1;
	}
	status = model_run();
	if (status == 0) {
		fwrite(model_output_y(), 1, MODEL_OUTPUT_Y_BYTES, stdout);
		fwrite(model_output_a(), 1, MODEL_OUTPUT_A_BYTES, stdout);
	}
	fclose(questions);
	fclose(answers);
	return -status;
}
