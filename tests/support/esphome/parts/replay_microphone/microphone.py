# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""The platform `replay_microphone`."""

import esphome.codegen as cg
import esphome.config_validation as cv
from esphome.components import audio, microphone
from esphome.const import CONF_FILE, CONF_ID

Replay = cg.esphome_ns.namespace("replay_microphone").class_("Replay", microphone.Microphone, cg.Component)


def _one_channel(config):
    audio.set_stream_limits(
        min_bits_per_sample=16,
        max_bits_per_sample=16,
        min_channels=1,
        max_channels=1,
        min_sample_rate=16000,
        max_sample_rate=16000,
    )(config)
    return config


CONFIG_SCHEMA = cv.All(
    microphone.MICROPHONE_SCHEMA.extend(
        {cv.GenerateID(): cv.declare_id(Replay), cv.Required(CONF_FILE): cv.string}
    ).extend(cv.COMPONENT_SCHEMA),
    _one_channel,
)


async def to_code(config):
    var = cg.new_Pvariable(config[CONF_ID], config[CONF_FILE])
    await cg.register_component(var, config)
    await microphone.register_microphone(var, config)
