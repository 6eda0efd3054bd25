/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* QEMU has no pins to route, but Zephyr's UART driver selects PINCTRL, which requires these names.
 */

#ifndef QEMU_MPS2_PINCTRL_SOC_H_
#define QEMU_MPS2_PINCTRL_SOC_H_

#include <stdint.h>

typedef uint32_t pinctrl_soc_pin_t;

#define Z_PINCTRL_STATE_PINS_INIT(node_id, prop) {0}

#endif /* QEMU_MPS2_PINCTRL_SOC_H_ */
