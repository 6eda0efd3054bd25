/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef QEMU_MPS2_SOC_H_
#define QEMU_MPS2_SOC_H_

#include <cmsis_core_m_defaults.h>

#endif /* QEMU_MPS2_SOC_H_ */
