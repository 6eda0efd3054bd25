# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The kernels of float32, and of types beside int8, that a player can call."""

from __future__ import annotations

from dataclasses import replace

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
    *(
        "ceil",
        "round",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
        "atanh",
    ),
    *("erf", "softplus", "softsign", "mish", "gelu", "gelu_tanh", "swish", "hard_sigmoid", "hard_swish"),
    *("leaky_relu", "elu", "celu", "selu", "thresholded_relu", "sign"),
)
IN_EVERY_FIRMWARE = 12
"""So many of them; the others are a part of what firmware can choose."""
REDUCTIONS = (*("sum", "mean", "prod", "l1", "l2", "sum_square", "log_sum", "log_sum_exp", "max", "min"),)
WINDOW = ("window.c", "nest.c")


def _float(number: int, name: str, record: Layout, header: str, family: str) -> Playable:
    shared = ("weighted/filters_f32.c", *(("conv/windows_f32.c",) if family == "conv" else ()))
    return Playable(
        number,
        f"tinyml_{name}",
        record,
        2,
        f"tinyml_play_{name}",
        f"tinyml_check_{name}",
        header,
        (f"{family}/{name}.c", *shared, "player/play_weighted_f32.c", "player/window.c"),
    )


def _float16(number: int, name: str, record: Layout, family: str) -> Playable:
    """The same with float16 weights."""
    own = "conv_f32" if name == "conv_apart_f32" else name
    return Playable(
        number,
        f"tinyml_{name}_f16",
        record,
        2,
        f"tinyml_play_{name}_f16",
        f"tinyml_check_{name}_f16",
        "tinyml/half_weights.h",
        (
            *(f"{family}/{own}_f16.c", "weighted/filters_f32.c", "weighted/filters_f32_f16.c"),
            *(("conv/windows_f32.c",) if family == "conv" else ()),
            *("player/play_half_weights.c", "player/window.c"),
        ),
    )


def _unary(number: int, name: str, always: bool) -> Playable:
    if always:
        return own(number, f"{name}_f32", records.UNARY_FLOAT, 2, "play_unary_f32.c", "unary_f32")
    needs = ("play_unary_f32.c", "nest.c")
    return own(
        *(number, f"{name}_f32", records.UNARY_FLOAT, 2, "play_functions_f32.c", "unary_f32"),
        needs=needs,
        family="elementwise",
    )


def _reduction(number: int, name: str) -> Playable:
    return own(
        *(number, f"reduce_{name}_f32", records.REDUCE_F32, 2, "play_reduce_f32.c", "reduce_f32"),
        family="reduce",
    )


def _cast(number: int, name: str) -> Playable:
    return own(number, name, records.CAST, 2, "play_cast.c", needs=(), family="elementwise")


def _transposed(number: int, name: str, record: Layout) -> Playable:
    return own(number, name, record, 2, "play_conv_transpose.c", needs=("window.c",), family="conv")


def _bytes(number: int, name: str, record: Layout, operands: int, family: str, *sources: str) -> Playable:
    """Weights of one byte each."""
    return Playable(
        number,
        f"tinyml_{name}",
        record,
        operands,
        f"tinyml_play_{name}",
        f"tinyml_check_{name}",
        "tinyml/to_f32.h" if name.endswith("to_f32") else "tinyml/byte_weights.h",
        (f"{family}/{name}.c", *sources, "player/play_byte_weights.c", "player/window.c"),
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
    *(_unary(128 + i, name, i < IN_EVERY_FIRMWARE) for i, name in enumerate(UNARY_FLOAT)),
    *(_reduction(192 + i, name) for i, name in enumerate(REDUCTIONS)),
    own(206, "normalize_f32", records.NORMALIZE_F32, 2, "play_normalize_f32.c", family="normalization"),
    own(207, "arg_reduce", records.ARG_REDUCE, 2, "play_arg_reduce.c", family="reduce"),
    _cast(208, "cast_integers"),
    _cast(209, "cast_to_f32"),
    _cast(210, "cast_from_f32"),
    own(211, "gather", records.GATHER, 3, "play_gather.c", family="indexing"),
    _bytes(212, "conv_f32_s8", records.CONV_F32_S8, 2, "conv"),
    _bytes(213, "dense_f32_s8", records.DENSE_F32_S8, 2, "dense"),
    _bytes(214, "conv_s8_to_f32", records.CONV_S8_TO_F32, 3, "conv", "weighted/filters_s8_to_f32.c"),
    _bytes(215, "dense_s8_to_f32", records.DENSE_S8_TO_F32, 2, "dense", "weighted/filters_s8_to_f32.c"),
    replace(
        _float(322, "conv_apart_f32", records.CONV_APART_F32, "tinyml/conv.h", "conv"),
        sources=(
            *("conv/conv_f32.c", "weighted/filters_f32.c", "conv/windows_f32.c"),
            *("player/play_weighted_f32.c", "player/window.c"),
        ),
    ),
    _float16(331, "conv_f32", records.CONV_FLOAT, "conv"),
    _float16(332, "depthwise_conv_f32", records.CONV_FLOAT, "conv"),
    _float16(333, "dense_f32", records.DENSE_FLOAT, "dense"),
    _float16(334, "conv_apart_f32", records.CONV_APART_F32, "conv"),
    own(216, "matmul_f32", records.MATMUL_F32, 3, "play_matmul.c", family="dense"),
    own(217, "matmul_s8", records.MATMUL_S8, 3, "play_matmul.c", family="dense"),
    own(
        *(223, "matmul_s32", records.MATMUL_F32, 3, "play_matmul.c", "matmul_f32"),
        family="dense",
    ),
    own(
        *(224, "log_softmax_f32", records.SOFTMAX_FLOAT, 2, "play_unary_f32.c", "softmax_f32"),
        family="softmax",
    ),
    own(225, "binary_whole", records.BINARY_WHOLE, 3, "play_binary_whole.c", family="elementwise"),
    _transposed(226, "conv_transpose_f32", records.CONV_TRANSPOSE_F32),
    _transposed(227, "conv_transpose_s8", records.CONV_TRANSPOSE_S8),
    _transposed(228, "conv_transpose_s16", records.CONV_TRANSPOSE_S8),
    own(229, "trees", records.TREES, 3, "play_trees.c", needs=(), family="trees"),
)
