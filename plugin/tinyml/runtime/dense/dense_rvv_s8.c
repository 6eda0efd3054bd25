/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers with RISC-V's vectors. */

#include <tinyml/dense.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_RVV

#include "../weighted/rvv_nibbles_s8.h"
#include "../weighted/rvv_s8.h"

void tinyml_dense_rvv_s8(const struct tinyml_dense_rvv_s8 *p, const int8_t *x, int8_t *y)
{
	const struct tinyml_rvv_filters filters = TINYML_RVV_FILTERS(p, p->inputs, p->outputs);

	TINYML_ASSERT(p->out_min <= p->out_max);
	for (int32_t row = 0; row < p->rows; row++, x += p->inputs, y += p->outputs) {
		tinyml_rvv_apply(&filters, x, y);
	}
}

void tinyml_dense_nibbles_rvv_s8(const struct tinyml_dense_rvv_s8 *p, const int8_t *x, int8_t *y)
{
	const struct tinyml_rvv_filters filters = TINYML_RVV_FILTERS(p, p->inputs, p->outputs);

	TINYML_ASSERT(p->out_min <= p->out_max);
	for (int32_t row = 0; row < p->rows; row++, x += p->inputs, y += p->outputs) {
		tinyml_rvv_apply_nibbles(&filters, x, y);
	}
}

#endif /* TINYML_CORE_RVV */
