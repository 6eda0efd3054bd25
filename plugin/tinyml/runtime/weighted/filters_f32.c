/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/maths_bits.h>

#include "filters_tiles_f32.h"

#if TINYML_TILE_VECTORS

void tinyml_limit_f32(float *y, int32_t count, float min, float max)
{
	if (min == -TINYML_INFINITYF && max == TINYML_INFINITYF) {
		return;
	}
	/* clang-format off */
	__asm__ volatile(
		"vdup.32 q1, %[min]\n\t"
		"vdup.32 q2, %[max]\n\t"
		"wlstp.32 lr, %[count], 2f\n"
		"1:\n\t"
		"vldrw.u32 q0, [%[y]]\n\t"
		"vpt.f32 gt, q1, q0\n\t"
		"vmovt q0, q1\n\t"
		"vpt.f32 gt, q0, q2\n\t"
		"vmovt q0, q2\n\t"
		"vstrw.32 q0, [%[y]], #16\n\t"
		"letp lr, 1b\n"
		"2:"
		: [y] "+l"(y)
		: [count] "r"(count), [min] "r"(min), [max] "r"(max)
		: "lr", "q0", "q1", "q2", "cc", "memory");
	/* clang-format on */
}

#elif TINYML_RVV_F32

void tinyml_limit_f32(float *y, int32_t count, float min, float max)
{
	if (min == -TINYML_INFINITYF && max == TINYML_INFINITYF) {
		return;
	}
	for (size_t left = (size_t)count, vl; left > 0; left -= vl, y += vl) {
		vfloat32m8_t values;

		vl = __riscv_vsetvl_e32m8(left);
		values = __riscv_vle32_v_f32m8(y, vl);
		values = __riscv_vfmerge(values, min, __riscv_vmflt(values, min, vl), vl);
		values = __riscv_vfmerge(values, max, __riscv_vmfgt(values, max, vl), vl);
		__riscv_vse32(y, values, vl);
	}
}

#else

void tinyml_limit_f32(float *y, int32_t count, float min, float max)
{
	const float *const end = y + count;

	if (max < TINYML_INFINITYF) {
		for (; y != end; y++) {
			const float value = *y < min ? min : *y;

			*y = value > max ? max : value;
		}
	} else if (min > -TINYML_INFINITYF) {
		for (; y != end; y++) {
			if (*y < min) {
				*y = min;
			}
		}
	}
}

#endif
