/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "advertise.h"

#include <stdio.h>

#include <zephyr/bluetooth/bluetooth.h>
#include <zephyr/bluetooth/conn.h>
#include <zephyr/kernel.h>
#include <zephyr/mgmt/mcumgr/transport/smp_bt.h>
#include <zephyr/sys/util.h>

static const struct bt_data advertised[] = {
	BT_DATA_BYTES(BT_DATA_FLAGS, BT_LE_AD_GENERAL | BT_LE_AD_NO_BREDR),
	BT_DATA_BYTES(BT_DATA_UUID128_ALL, SMP_BT_SVC_UUID_VAL),
};
static const struct bt_data scanned[] = {
	BT_DATA(BT_DATA_NAME_COMPLETE, CONFIG_BT_DEVICE_NAME, sizeof(CONFIG_BT_DEVICE_NAME) - 1u),
};

static void start(struct k_work *work)
{
	const int error = bt_le_adv_start(BT_LE_ADV_CONN_FAST_1, advertised, ARRAY_SIZE(advertised),
					  scanned, ARRAY_SIZE(scanned));

	ARG_UNUSED(work);
	printf("Bluetooth: %s\n", error == 0 ? "advertising" : "cannot advertise");
}

static K_WORK_DEFINE(starting, start);

/* A connection ends advertising. Its memory is free again: the next client may come. */
static void on_recycled(void)
{
	(void)k_work_submit(&starting);
}

BT_CONN_CB_DEFINE(callbacks) = {
	.recycled = on_recycled,
};

void advertise_mcumgr(void)
{
	const int error = bt_enable(NULL);

	if (error != 0) {
		printf("Bluetooth: error %d\n", -error);
		return;
	}
	(void)k_work_submit(&starting);
}
