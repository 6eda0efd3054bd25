/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* An accelerometer that replays a recording. It starts with the first trigger, fetch or stream. */

#define DT_DRV_COMPAT tinyml_replay_accel

#include "replay_accel.h"

#include <errno.h>

#include <zephyr/pm/device.h>

/* Announce every sample that is due. */
static void replay_accel_work(struct k_work *work)
{
	struct replay_accel_data *data = CONTAINER_OF(work, struct replay_accel_data, work);

	while (data->handler != NULL && data->played < data->due) {
		data->played++;
		data->handler(data->dev, data->trigger);
	}
	if (IS_ENABLED(CONFIG_SENSOR_ASYNC_API)) {
		replay_accel_stream(data);
	}
}

static void replay_accel_measured(struct k_timer *timer)
{
	struct replay_accel_data *data = CONTAINER_OF(timer, struct replay_accel_data, timer);
	const struct replay_accel_config *config = data->dev->config;

	if (++data->due == *config->samples) {
		k_timer_stop(timer);
	}
	(void)k_work_submit(&data->work);
}

void replay_accel_start(const struct device *dev)
{
	const struct replay_accel_config *config = dev->config;
	struct replay_accel_data *data = dev->data;
	const k_timeout_t period = K_USEC(USEC_PER_SEC / config->rate);

	if (!data->started) {
		data->started = true;
		k_timer_start(&data->timer, period, period);
	}
}

static int replay_accel_attr_set(const struct device *dev, enum sensor_channel channel,
				 enum sensor_attribute attribute, const struct sensor_value *value)
{
	const struct replay_accel_config *config = dev->config;

	ARG_UNUSED(channel);
	if (attribute != SENSOR_ATTR_SAMPLING_FREQUENCY) {
		return -ENOTSUP;
	}
	return value->val1 == (int32_t)config->rate && value->val2 == 0 ? 0 : -EINVAL;
}

static int replay_accel_trigger_set(const struct device *dev, const struct sensor_trigger *trigger,
				    sensor_trigger_handler_t handler)
{
	struct replay_accel_data *data = dev->data;

	if (trigger->type != SENSOR_TRIG_DATA_READY) {
		return -ENOTSUP;
	}
	data->trigger = trigger;
	data->handler = handler;
	replay_accel_start(dev);
	return 0;
}

static int replay_accel_sample_fetch(const struct device *dev, enum sensor_channel channel)
{
	const struct replay_accel_config *config = dev->config;
	struct replay_accel_data *data = dev->data;
	/* Without a trigger, the latest sample. */
	const uint32_t count = data->handler != NULL ? data->played : data->due;

	if (channel != SENSOR_CHAN_ALL && channel != SENSOR_CHAN_ACCEL_XYZ) {
		return -ENOTSUP;
	}
	replay_accel_start(dev);
	if (data->handler == NULL && data->due == *config->samples) {
		return -ENODATA;
	}
	if (count == 0) {
		return -EAGAIN;
	}
	for (size_t i = 0; i < REPLAY_ACCEL_AXES; i++) {
		data->fetched[i] = config->recording[(count - 1) * REPLAY_ACCEL_AXES + i];
	}
	return 0;
}

static int replay_accel_channel_get(const struct device *dev, enum sensor_channel channel,
				    struct sensor_value *value)
{
	const struct replay_accel_data *data = dev->data;
	size_t first = 0;
	size_t count = 1;

	switch (channel) {
	case SENSOR_CHAN_ACCEL_X:
	case SENSOR_CHAN_ACCEL_Y:
	case SENSOR_CHAN_ACCEL_Z:
		first = (size_t)(channel - SENSOR_CHAN_ACCEL_X);
		break;
	case SENSOR_CHAN_ACCEL_XYZ:
		count = REPLAY_ACCEL_AXES;
		break;
	default:
		return -ENOTSUP;
	}
	for (size_t i = 0; i < count; i++) {
		value[i].val1 = data->fetched[first + i] / 1000;
		value[i].val2 = data->fetched[first + i] % 1000 * 1000;
	}
	return 0;
}

static DEVICE_API(sensor, replay_accel_api) = {
	.attr_set = replay_accel_attr_set,
	.trigger_set = replay_accel_trigger_set,
	.sample_fetch = replay_accel_sample_fetch,
	.channel_get = replay_accel_channel_get,
#ifdef CONFIG_SENSOR_ASYNC_API
	.submit = replay_accel_submit,
	.get_decoder = replay_accel_get_decoder,
#endif
};

static int replay_accel_init(const struct device *dev)
{
	struct replay_accel_data *data = dev->data;

	data->dev = dev;
	k_timer_init(&data->timer, replay_accel_measured, NULL);
	k_work_init(&data->work, replay_accel_work);
	return 0;
}

#ifdef CONFIG_PM_DEVICE
/* A suspended sensor measures nothing; the recording goes on where it stopped. */
static int replay_accel_pm_action(const struct device *dev, enum pm_device_action action)
{
	const struct replay_accel_config *config = dev->config;
	struct replay_accel_data *data = dev->data;

	switch (action) {
	case PM_DEVICE_ACTION_SUSPEND:
		k_timer_stop(&data->timer);
		return 0;
	case PM_DEVICE_ACTION_RESUME:
		if (data->started && data->due < *config->samples) {
			data->started = false;
			replay_accel_start(dev);
		}
		return 0;
	default:
		return -ENOTSUP;
	}
}
#endif

#define RECORDING(inst)         UTIL_CAT(tinyml_recording_, DT_NODE_FULL_NAME_TOKEN(DT_DRV_INST(inst)))
#define RECORDING_SAMPLES(inst) UTIL_CAT(RECORDING(inst), _samples)

#define REPLAY_ACCEL(inst)                                                                         \
	extern const int16_t RECORDING(inst)[];                                                    \
	extern const uint32_t RECORDING_SAMPLES(inst);                                             \
	static struct replay_accel_data replay_accel_data_##inst;                                  \
	static const struct replay_accel_config replay_accel_config_##inst = {                     \
		.recording = RECORDING(inst),                                                      \
		.samples = &RECORDING_SAMPLES(inst),                                               \
		.rate = DT_INST_PROP(inst, sampling_frequency),                                    \
	};                                                                                         \
	PM_DEVICE_DT_INST_DEFINE(inst, replay_accel_pm_action);                                    \
	SENSOR_DEVICE_DT_INST_DEFINE(inst, replay_accel_init, PM_DEVICE_DT_INST_GET(inst),         \
				     &replay_accel_data_##inst, &replay_accel_config_##inst,       \
				     POST_KERNEL, CONFIG_SENSOR_INIT_PRIORITY, &replay_accel_api);

DT_INST_FOREACH_STATUS_OKAY(REPLAY_ACCEL)
