/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <zephyr/drivers/pinctrl.h>

/* See pinctrl_soc.h: there are no pins, so there is nothing to configure. */
int pinctrl_configure_pins(const pinctrl_soc_pin_t *pins, uint8_t pin_count, uintptr_t reg)
{
	ARG_UNUSED(pins);
	ARG_UNUSED(pin_count);
	ARG_UNUSED(reg);
	return 0;
}
