/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Tensors and their values on Zephyr's shell. */

#include "shell_tensors.h"

#include <float.h>

#include <tinyml/values.h>

static const char *const type_names[] = {
	[TINYML_FLOAT32] = "float32", [TINYML_FLOAT64] = "float64", [TINYML_INT8] = "int8",
	[TINYML_UINT8] = "uint8",     [TINYML_INT16] = "int16",     [TINYML_UINT16] = "uint16",
	[TINYML_INT32] = "int32",     [TINYML_UINT32] = "uint32",   [TINYML_INT64] = "int64",
	[TINYML_UINT64] = "uint64",   [TINYML_BOOL] = "bool",
};

/*
 * Six digits after the point, and a power of ten where they would show nothing or too much; printf
 * may lack floating-point support.
 */
static void print_real(const struct shell *sh, double value)
{
	double size = value < 0.0 ? -value : value;
	int power = 0;
	uint64_t millionths;

	if (value != value || size > DBL_MAX) {
		shell_fprintf(sh, SHELL_NORMAL, "%s",
			      value != value ? "nan" : (value < 0.0 ? "-inf" : "inf"));
		return;
	}
	if (size != 0.0 && (size >= 1e9 || size < 1e-3)) {
		for (; size >= 10.0; power++) {
			size /= 10.0;
		}
		for (; size < 1.0; power--) {
			size *= 10.0;
		}
	}
	millionths = (uint64_t)(size * 1e6 + 0.5);
	shell_fprintf(sh, SHELL_NORMAL, "%s%u.%06u", value < 0.0 && millionths != 0u ? "-" : "",
		      (unsigned int)(millionths / 1000000u), (unsigned int)(millionths % 1000000u));
	if (power != 0) {
		shell_fprintf(sh, SHELL_NORMAL, "e%d", power);
	}
}

/* All digits; printf may not know 64 bits. */
static void print_integer(const struct shell *sh, uint64_t size, bool is_negative)
{
	char digits[21];
	size_t at = sizeof(digits) - 1u;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + size % 10u);
		size /= 10u;
	} while (size > 0u);
	shell_fprintf(sh, SHELL_NORMAL, "%s%s", is_negative ? "-" : "", &digits[at]);
}

void tinyml_print_tensor(const struct shell *sh, const char *kind,
			 const struct tinyml_tensor *tensor)
{
	shell_fprintf(sh, SHELL_NORMAL, "%s %s: ", kind, tensor->name);
	for (size_t i = 0; i < tensor->rank; i++) {
		shell_fprintf(sh, SHELL_NORMAL, "%s%d", i == 0 ? "" : "x", (int)tensor->shape[i]);
	}
	shell_fprintf(sh, SHELL_NORMAL, " %s, %u bytes", type_names[tensor->type],
		      (unsigned int)tensor->bytes);
	if (tensor->scale != 0.0f) {
		shell_fprintf(sh, SHELL_NORMAL, ", scale ");
		print_real(sh, (double)tensor->scale);
		shell_fprintf(sh, SHELL_NORMAL, ", zero point %d", (int)tensor->zero_point);
	}
	shell_fprintf(sh, SHELL_NORMAL, "\n");
}

void tinyml_print_element(const struct shell *sh, const struct tinyml_tensor *tensor, size_t index)
{
	const uint8_t *at = (const uint8_t *)tensor->data + index * tinyml_type_bytes(tensor->type);

	shell_fprintf(sh, SHELL_NORMAL, " ");
	switch (tensor->type) {
	case TINYML_FLOAT32:
		print_real(sh, (double)*(const float *)(const void *)at);
		break;
	case TINYML_FLOAT64:
		print_real(sh, *(const double *)(const void *)at);
		break;
	case TINYML_INT8:
		shell_fprintf(sh, SHELL_NORMAL, "%d", *(const int8_t *)at);
		break;
	case TINYML_INT16:
		shell_fprintf(sh, SHELL_NORMAL, "%d", *(const int16_t *)(const void *)at);
		break;
	case TINYML_UINT16:
		shell_fprintf(sh, SHELL_NORMAL, "%u", *(const uint16_t *)(const void *)at);
		break;
	case TINYML_INT32:
		shell_fprintf(sh, SHELL_NORMAL, "%d", (int)*(const int32_t *)(const void *)at);
		break;
	case TINYML_INT64: {
		int64_t value = *(const int64_t *)(const void *)at;

		print_integer(sh, value < 0 ? 0u - (uint64_t)value : (uint64_t)value, value < 0);
		break;
	}
	case TINYML_UINT32:
		shell_fprintf(sh, SHELL_NORMAL, "%u",
			      (unsigned int)*(const uint32_t *)(const void *)at);
		break;
	case TINYML_UINT64:
		print_integer(sh, *(const uint64_t *)(const void *)at, false);
		break;
	default:
		shell_fprintf(sh, SHELL_NORMAL, "%u", *at);
		break;
	}
}
