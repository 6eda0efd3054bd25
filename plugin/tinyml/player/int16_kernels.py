# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The kernels of int16 and of uint8 that a player can call."""

from __future__ import annotations

from tinyml.player import records
from tinyml.player.layout import Layout
from tinyml.player.playable import Playable, own

# Functions of two tensors in the order of their numbers.
BINARY = ("mul", "mul_once", "prelu", "prelu_once", "rescaled_sum", "squared", "sum_once", "max", "min")


def _weighted(number: int, name: str, record: Layout, operands: int, folder: str) -> Playable:
    return Playable(
        number,
        f"tinyml_{name}",
        record,
        operands,
        f"tinyml_play_{name}",
        f"tinyml_check_{name}",
        "tinyml/conv_s16.h",
        (f"{folder}/{name}.c", "player/play_weighted_s16.c", "player/window.c"),
        family="int16",
    )


def _function(number: int, name: str, record: Layout, check: str = "") -> Playable:
    return own(number, name, record, 2, "play_functions_s16.c", check, family="int16")


def _binary(number: int, name: str, kind: str, family: str) -> Playable:
    check = name if name in ("linear", "sum_once") else "binary"
    return own(
        *(number, f"{name}_{kind}", records.BINARY, 3, f"play_binary_{kind}.c", f"{check}_{kind}"),
        family=family,
    )


ALL = (
    _weighted(230, "conv_s16", records.CONV_S16, 3, "conv"),
    _weighted(231, "dense_s16", records.DENSE_S16, 2, "dense"),
    Playable(
        232,
        "tinyml_softmax_s16",
        records.SOFTMAX_S16,
        2,
        "tinyml_play_softmax_s16",
        "tinyml_check_softmax_s16",
        "tinyml/softmax.h",
        ("softmax/softmax_s16.c", "player/play_softmax_s16.c", "player/nest.c"),
        named_in_play=True,
        family="int16",
    ),
    _function(233, "leaky_s16", records.LEAKY_S16),
    _function(234, "sigmoid_s16", records.SIGMOID_S16),
    _function(235, "tanh_s16", records.SIGMOID_S16, "sigmoid_s16"),
    _function(236, "table_s16", records.LOOKUP),
    _function(237, "quantize_s16", records.QUANTIZE),
    _function(238, "dequantize_s16", records.DEQUANTIZE),
    _function(239, "requantize", records.REQUANTIZE),
    *(_binary(240 + i, name, "u8", "uint8") for i, name in enumerate(("linear", *BINARY))),
    *(_binary(250 + i, name, "s16", "int16") for i, name in enumerate(BINARY)),
)
