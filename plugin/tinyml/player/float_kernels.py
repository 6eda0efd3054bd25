# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The kernels of float32 that a player can call."""

from __future__ import annotations

from tinyml.player import records
from tinyml.player.layout import Layout
from tinyml.player.playable import Playable, own

# Functions of float in the order of their numbers; new ones go to the end. Ten numbers are for the first.
BINARY_FLOAT = ("add", "sub", "mul", "div", "min", "max", "squared_difference", "prelu")
UNARY_FLOAT = (
    "sigmoid",
    "tanh",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "abs",
    "neg",
    "square",
    "reciprocal",
    "floor",
    "clamp",
)
WINDOW = ("window.c", "nest.c")


def _float(number: int, name: str, record: Layout, header: str, family: str) -> Playable:
    return Playable(
        number,
        f"tinyml_{name}",
        record,
        2,
        f"tinyml_play_{name}",
        f"tinyml_check_{name}",
        header,
        (f"{family}/{name}.c", "player/play_weighted_f32.c", "player/window.c"),
    )


ALL = (
    _float(112, "conv_f32", records.CONV_FLOAT, "tinyml/conv.h", "conv"),
    _float(113, "depthwise_conv_f32", records.CONV_FLOAT, "tinyml/depthwise_conv.h", "conv"),
    _float(114, "dense_f32", records.DENSE_FLOAT, "tinyml/dense.h", "dense"),
    own(115, "softmax_f32", records.SOFTMAX_FLOAT, 2, "play_unary_f32.c"),
    own(116, "average_pool_f32", records.POOL_FLOAT, 2, "play_windows_f32.c", "pool_f32", needs=WINDOW),
    own(117, "max_pool_f32", records.POOL_FLOAT, 2, "play_windows_f32.c", "pool_f32", needs=WINDOW),
    *(
        own(118 + i, f"{name}_f32", records.BINARY_FLOAT, 3, "play_binary_f32.c", "binary_f32")
        for i, name in enumerate(BINARY_FLOAT)
    ),
    *(
        own(128 + i, f"{name}_f32", records.UNARY_FLOAT, 2, "play_unary_f32.c", "unary_f32")
        for i, name in enumerate(UNARY_FLOAT)
    ),
)
