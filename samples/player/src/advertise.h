/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ADVERTISE_H_
#define ADVERTISE_H_

/** Let clients of MCUmgr find and connect to this device over Bluetooth LE. */
void advertise_mcumgr(void);

#endif /* ADVERTISE_H_ */
