# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers that every kernel is counted on: ``python -m tools.kernel_counts`` runs them.

Kernels compete for a layer by what they are estimated to take, so the figures must hold for layers of all
shapes: long and short sums, few and many channels, rows, columns and single positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tests.support.sketch import Sketch
from tinyml.ir import DType, Graph, Quant, Shape, Tensor
from tinyml.ops.attention.heads import Heads
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.pool.max import MaxPool
from tinyml.ops.quantization.quantize import Quantize
from tools import attention_layers
from tools.attention_layers import ATTENTION

SAFE_SUM = 2**15
"""What the weights of a filter add up to at most: then no kernel refuses the layer for its sums."""


FOUR_BITS_LARGEST = 7
"""Of weights of four bits; no kernel refuses -7 to 7."""


@dataclass(frozen=True)
class Case:
    """A layer to measure: its operator, and the shapes of its input and weights."""

    op: Conv | DepthwiseConv | ConvTranspose | Dense
    x: Shape
    weights: Shape
    per_channel: bool = True
    filled: float = 1.0  # of a float layer: the part of its weights that is not zero
    in_runs: bool = True  # those lie side by side
    bytes: bool = False  # float weights that are bytes times a scale


@dataclass(frozen=True)
class Plain:
    """A layer without weights, on floats."""

    op: Quantize | MaxPool | AveragePool
    x: Shape


def _same(height: int, width: int) -> tuple[int, int, int, int]:
    """Padding that keeps the extents of an input with stride 1."""
    return ((height - 1) // 2, (width - 1) // 2, height // 2, width // 2)


def _points(height: int, width: int, ins: int, outs: int, stride: int = 1, once: bool = False) -> Case:
    return Case(Conv((stride, stride), round_once=once), (1, height, width, ins), (outs, 1, 1, ins))


def _windows(x: Shape, kernel: tuple[int, int], outs: int, stride: int = 1, groups: int = 1) -> Case:
    op = Conv((stride, stride) if x[0] > 1 else (1, stride), pads=_same(*kernel), groups=groups)
    return Case(op, (1, *x), (outs, *kernel, x[2] // groups))


def _planes(
    x: Shape, kernel: tuple[int, int], stride: int = 1, multiplier: int = 1, padded: bool = True
) -> Case:
    pads = _same(*kernel) if padded else (0, 0, 0, 0)
    op = DepthwiseConv((stride, stride) if x[0] > 1 else (1, stride), pads=pads)
    return Case(op, (1, *x), (1, *kernel, x[2] * multiplier))


def _dense(ins: int, outs: int, rows: int = 1, per_channel: bool = True, once: bool = False) -> Case:
    return Case(Dense(round_once=once), (rows, ins), (outs, ins), per_channel)


def _sparse(ins: int, outs: int, filled: float, in_runs: bool, of_bytes: bool, rows: int = 1) -> Case:
    return Case(Dense(), (rows, ins), (outs, ins), True, filled, in_runs, of_bytes)


POINTWISE = {
    f"pointwise_{h}x{w}x{ins}_to_{outs}": _points(h, w, ins, outs)
    for h, w, ins, outs in (
        (12, 12, 8, 16),
        (24, 24, 8, 8),
        (16, 16, 16, 8),
        (6, 6, 24, 96),
        (6, 6, 96, 24),
        (8, 8, 32, 32),
        (10, 10, 16, 48),
        (5, 5, 64, 64),
        (25, 5, 64, 64),
        (3, 3, 128, 128),
        (4, 4, 16, 128),
        (3, 3, 256, 64),
        (2, 2, 320, 32),
        (2, 2, 128, 256),
        (6, 6, 13, 17),
        (4, 4, 3, 5),
        (9, 9, 40, 20),
        (7, 7, 112, 7),
        (1, 1, 64, 32),
        (1, 1, 256, 64),
        (1, 1, 40, 120),
        (1, 2, 96, 48),
        (1, 3, 48, 64),
        (1, 49, 64, 64),
        (1, 20, 12, 24),
        (1, 7, 130, 34),
        (2, 2, 4, 4),
        (3, 3, 8, 8),
        (4, 4, 192, 8),
        (8, 8, 96, 8),
        (4, 4, 8, 192),
        (2, 2, 160, 40),
        (1, 1, 128, 32),
        (1, 1, 16, 8),
    )
}
WINDOWS = {
    "pointwise_strided": _points(8, 8, 16, 32, 2),
    "pointwise_strided_wide": _points(10, 10, 48, 24, 2),
    "pointwise_once": _points(8, 8, 32, 32, once=True),
    "pointwise_once_narrow": _points(12, 12, 8, 16, once=True),
    "first_of_images": _windows((16, 16, 3), (3, 3), 8, 2),
    "first_of_large_images": _windows((48, 48, 3), (3, 3), 16, 2),
    "first_of_grey_images": _windows((28, 28, 1), (5, 5), 6),
    "first_of_audio": Case(Conv((2, 2), pads=(4, 1, 5, 1)), (1, 25, 10, 1), (32, 10, 4, 1)),
    "square_8": _windows((12, 12, 8), (3, 3), 8),
    "square_16": _windows((8, 8, 16), (3, 3), 16),
    "square_16_to_32": _windows((16, 16, 16), (3, 3), 32, 2),
    "square_32_to_64": _windows((8, 8, 32), (3, 3), 64, 2),
    "square_64": _windows((4, 4, 64), (3, 3), 64),
    "square_5x5": _windows((8, 8, 12), (5, 5), 20),
    "square_7x7": _windows((14, 14, 4), (7, 7), 8, 2),
    "square_2x2": _windows((8, 8, 10), (2, 2), 10),
    "square_whole": Case(Conv(), (1, 4, 4, 16), (24, 4, 4, 16)),
    "square_once": Case(Conv(pads=(1, 1, 1, 1), round_once=True), (1, 8, 8, 16), (16, 3, 3, 16)),
    "square_dilated": Case(Conv(dilations=(2, 2), pads=(2, 2, 2, 2)), (1, 10, 10, 8), (8, 3, 3, 8)),
    "groups_of_two": _windows((8, 8, 16), (3, 3), 16, groups=2),
    "groups_of_eight": _windows((10, 10, 32), (3, 3), 32, groups=8),
    "row_3_of_16": _windows((1, 32, 16), (1, 3), 16),
    "row_5_of_8": _windows((1, 40, 8), (1, 5), 24),
    "row_8_of_64": _windows((1, 24, 64), (1, 8), 64),
    "row_9_of_32": _windows((1, 64, 32), (1, 9), 32),
    "row_16_of_4": _windows((1, 128, 4), (1, 16), 16),
    "row_3_of_1": _windows((1, 200, 1), (1, 3), 8),
    "row_32_of_1": _windows((1, 256, 1), (1, 32), 16, 4),
    "row_3_of_96": _windows((1, 20, 96), (1, 3), 40),
    "row_5_strided": _windows((1, 60, 24), (1, 5), 24, 2),
    "row_whole": Case(Conv(), (1, 1, 12, 20), (30, 1, 12, 20)),
    "column_3_of_16": _windows((32, 1, 16), (3, 1), 16),
    "column_5_of_40": Case(Conv(), (1, 5, 1, 40), (32, 5, 1, 40)),
    "column_7_whole": Case(Conv(), (1, 7, 1, 16), (16, 7, 1, 16)),
    "column_9_whole": Case(Conv(), (1, 9, 1, 16), (16, 9, 1, 16)),
    "column_3_whole": Case(Conv(), (1, 3, 1, 32), (12, 3, 1, 32)),
    "square_whole_small": Case(Conv(), (1, 3, 3, 8), (8, 3, 3, 8)),
    "three_positions": Case(Conv(pads=(0, 0, 0, 0)), (1, 5, 1, 24), (24, 3, 1, 24)),
}
DEPTHWISE = {
    "depthwise_8": _planes((12, 12, 8), (3, 3)),
    "depthwise_16_large": _planes((24, 24, 16), (3, 3)),
    "depthwise_32": _planes((8, 8, 32), (3, 3)),
    "depthwise_64": _planes((10, 5, 64), (3, 3)),
    "depthwise_64_large": _planes((25, 5, 64), (3, 3)),
    "depthwise_128": _planes((6, 6, 128), (3, 3)),
    "depthwise_256": _planes((3, 3, 256), (3, 3)),
    "depthwise_3": _planes((32, 32, 3), (3, 3)),
    "depthwise_31_small": _planes((3, 3, 31), (3, 3)),
    "depthwise_48_small": _planes((3, 3, 48), (3, 3)),
    "depthwise_17_small": _planes((4, 4, 17), (3, 3)),
    "depthwise_odd": _planes((9, 7, 13), (3, 3)),
    "depthwise_strided": _planes((8, 8, 32), (3, 3), 2),
    "depthwise_strided_large": _planes((24, 24, 24), (3, 3), 2),
    "depthwise_4x4_channels_96": _planes((4, 4, 96), (3, 3)),
    "depthwise_four": _planes((2, 2, 64), (3, 3)),
    "depthwise_single": _planes((3, 3, 32), (3, 3), padded=False),
    "depthwise_5x5": _planes((8, 8, 16), (5, 5)),
    "depthwise_5x5_wide": _planes((6, 6, 72), (5, 5)),
    "depthwise_5x5_strided": _planes((16, 16, 24), (5, 5), 2),
    "depthwise_7x7": _planes((10, 10, 20), (7, 7)),
    "depthwise_2x2": _planes((9, 9, 16), (2, 2), padded=False),
    "depthwise_stream": _planes((9, 1, 48), (9, 1), padded=False),
    "depthwise_of_three": _planes((7, 1, 48), (5, 1), padded=False),
    "depthwise_column": _planes((40, 1, 32), (5, 1)),
    "depthwise_row": _planes((1, 20, 16), (1, 3)),
    "depthwise_row_of_64": _planes((1, 49, 64), (1, 9)),
    "depthwise_doubled": _planes((8, 8, 8), (3, 3), multiplier=2),
    "depthwise_first": _planes((25, 10, 1), (10, 4), multiplier=8),
    "depthwise_once": Case(DepthwiseConv(pads=(1, 1, 1, 1), round_once=True), (1, 8, 8, 32), (1, 3, 3, 32)),
    "depthwise_dilated": Case(
        DepthwiseConv(dilations=(2, 2), pads=(2, 2, 2, 2)), (1, 10, 10, 16), (1, 3, 3, 16)
    ),
}
DENSE = {
    f"dense_{ins}_to_{outs}{'' if rows == 1 else f'_{rows}_rows'}{'' if each else '_one_scale'}": _dense(
        ins, outs, rows, each
    )
    for each in (True, False)
    for ins, outs, rows in (
        (32, 10, 1),
        (64, 16, 1),
        (128, 64, 1),
        (640, 32, 1),
        (640, 128, 1),
        (128, 8, 1),
        (8, 128, 1),
        (37, 21, 1),
        (13, 3, 1),
        (256, 2, 1),
        (1000, 12, 1),
        (3, 40, 1),
        (16, 1, 1),
        (192, 4, 1),
        (64, 4, 1),
        (100, 5, 1),
        (20, 4, 1),
        (512, 1, 1),
        (40, 2, 1),
        (400, 48, 1),
        (64, 64, 8),
        (48, 20, 3),
        (32, 96, 16),
        (21, 36, 5),
    )
}
DENSE |= {"dense_once": _dense(128, 64, once=True), "dense_once_small": _dense(32, 10, once=True)}
SPARSE = {
    "mel_257_to_40": _sparse(257, 40, 0.05, True, True),
    "mel_129_to_20": _sparse(129, 20, 0.06, True, True),
    "mel_257_to_64_rows": _sparse(257, 64, 0.04, True, True, 4),
    "mel_float_257_to_40": _sparse(257, 40, 0.05, True, False),
    "mel_float_512_to_80": _sparse(512, 80, 0.03, True, False, 2),
    "runs_64_to_32": _sparse(64, 32, 0.4, True, False),
    "pruned_64_to_32": _sparse(64, 32, 0.3, False, False),
    "pruned_256_to_64": _sparse(256, 64, 0.1, False, False),
    "pruned_100_to_10_rows": _sparse(100, 10, 0.5, False, False, 6),
}
REAL = {
    "real_pointwise_of_1": _points(8, 8, 1, 4),
    "real_pointwise_of_4": _points(12, 12, 4, 4),
    "real_pointwise_of_16": _points(5, 5, 16, 8),
    "real_pointwise_single": _points(1, 1, 32, 10),
    "real_pointwise_grouped": Case(Conv(groups=4), (1, 6, 6, 4), (4, 1, 1, 1)),
    "real_square_of_1": _windows((8, 8, 1), (3, 3), 4),
    "real_square_strided": _windows((16, 16, 1), (3, 3), 8, 2),
    "real_square_of_3": _windows((8, 8, 3), (3, 3), 8),
    "real_square_of_8": _windows((6, 6, 8), (3, 3), 16),
    "real_square_small": _windows((4, 4, 2), (3, 3), 3),
    "real_row_of_3": _windows((1, 40, 3), (1, 4), 8),
    "real_row_of_8": _windows((1, 32, 8), (1, 3), 8),
    "real_depthwise_4": _planes((8, 8, 4), (3, 3)),
    "real_depthwise_16": _planes((6, 6, 16), (3, 3)),
    "real_depthwise_strided": _planes((16, 16, 8), (3, 3), 2),
    "real_depthwise_row": _planes((1, 20, 8), (1, 5)),
    "real_depthwise_single": _planes((6, 6, 3), (1, 1)),
    "real_depthwise_doubled": _planes((6, 6, 4), (3, 3), multiplier=2),
    "real_dense_16_to_4": _dense(16, 4),
    "real_dense_64_to_10": _dense(64, 10),
    "real_dense_128_to_32": _dense(128, 32),
    "real_dense_400_to_12": _dense(400, 12),
    "real_dense_32_to_16_rows": _dense(32, 16, 4),
    "real_dense_5_to_3": _dense(5, 3),
    **{
        f"{name}_{kind}": replace(case, op=replace(case.op, clamp=limits))
        for kind, limits in (("relu", (0.0, math.inf)), ("relu6", (0.0, 6.0)))
        for name, case in (
            ("real_pointwise_of_1", _points(8, 8, 1, 4)),
            ("real_pointwise_of_16", _points(5, 5, 16, 8)),
            ("real_square_of_8", _windows((6, 6, 8), (3, 3), 16)),
            ("real_square_of_4", _windows((4, 4, 4), (3, 3), 6)),
            ("real_row_of_8", _windows((1, 32, 8), (1, 3), 8)),
            ("real_depthwise_6", _planes((4, 4, 6), (3, 3))),
            ("real_depthwise_16", _planes((6, 6, 16), (3, 3))),
            ("real_dense_64_to_10", _dense(64, 10)),
        )
    },
}


def _spread(x: Shape, kernel: tuple[int, int], outs: int, stride: int, pad: int = 0) -> Case:
    outputs = tuple((e - 1) * stride + k - 2 * pad for e, k in zip(x[:2], kernel, strict=True))
    op = ConvTranspose((stride, stride), pads=(pad, pad), outputs=outputs)
    return Case(op, (1, *x), (outs, *kernel, x[2]))


SPREAD = {
    "spread_2x2": _spread((6, 6, 32), (2, 2), 32, 2),
    "spread_3x3": _spread((8, 8, 16), (3, 3), 16, 2),
    "spread_4x4": _spread((5, 5, 24), (4, 4), 12, 2, 1),
    "spread_4x4_wide": _spread((4, 4, 64), (4, 4), 32, 2, 1),
    "spread_3x3_dense": _spread((10, 10, 12), (3, 3), 20, 1, 1),
    "spread_2x2_narrow": _spread((8, 8, 32), (2, 2), 16, 2),
    "spread_3x3_padded": _spread((5, 7, 16), (3, 3), 24, 2, 1),
    "spread_4x4_deep": _spread((3, 3, 128), (4, 4), 64, 2, 1),
    "spread_4x4_large": _spread((12, 12, 8), (4, 4), 8, 2, 1),
    "spread_3x3_wide": _spread((7, 7, 40), (3, 3), 20, 1, 1),
    "spread_5x5": _spread((4, 4, 48), (5, 5), 24, 2, 2),
    "spread_few": _spread((9, 9, 6), (3, 3), 4, 2),
    "spread_single": _spread((1, 1, 100), (4, 4), 16, 1),
}
GROUPED = {
    f"groups_{groups}_of_{ins}_to_{outs}_{height}x{width}": _windows(
        (height, width, groups * ins), (kernel, kernel), groups * outs, stride, groups
    )
    for groups, ins, outs, height, width, kernel, stride in (
        (8, 2, 3, 8, 8, 3, 1),
        (16, 2, 1, 9, 9, 3, 1),
        (16, 3, 4, 6, 6, 3, 1),
        (32, 3, 4, 8, 8, 3, 1),
        (16, 4, 4, 5, 5, 3, 1),
        (4, 6, 2, 5, 5, 3, 1),
        (2, 7, 2, 6, 6, 3, 1),
        (4, 8, 8, 10, 10, 3, 1),
        (2, 32, 32, 6, 6, 3, 1),
        (8, 16, 16, 7, 7, 3, 2),
        (4, 12, 12, 12, 12, 3, 2),
        (32, 2, 3, 6, 6, 1, 1),
        (3, 20, 20, 8, 8, 1, 1),
        (4, 24, 12, 7, 7, 1, 1),
        (2, 48, 24, 6, 6, 1, 1),
    )
}
SPREAD_BYTES = {f"{name}_of_bytes": case for name, case in SPREAD.items()}
INT16_LINES = (
    *("depthwise_16_large", "depthwise_64_large", "depthwise_128", "depthwise_17_small"),
    *("depthwise_2x2", "depthwise_row"),
)
"""Layers whose outputs are walked in lines."""

INT16 = {
    f"int16_{name}": case
    for name, case in [
        *list(POINTWISE.items())[::8],
        *list(WINDOWS.items())[::6],
        *list(DEPTHWISE.items())[::6],
        *((name, DEPTHWISE[name]) for name in INT16_LINES),
        *list(DENSE.items())[::8],
        *list(GROUPED.items())[::8],
        *SPREAD.items(),
    ]
}
"""Layers with int16 activations."""

WHOLE = ("depthwise_single", "depthwise_stream")  # kernels that cover their input keep bytes
FOUR_BITS = {
    f"four_bits_{name}": case
    for name, case in [
        *list(POINTWISE.items())[::3],
        *list(WINDOWS.items())[::4],
        *list(WINDOWS.items())[1::2],
        *((name, WINDOWS[name]) for name in ("first_of_grey_images", "row_3_of_1")),
        *((name, case) for name, case in list(DEPTHWISE.items())[::2] if name not in WHOLE),
        ("depthwise_160", _planes((6, 6, 160), (3, 3))),
        ("depthwise_240_strided", _planes((8, 8, 240), (3, 3), 2)),
        ("depthwise_128_large", _planes((12, 12, 128), (3, 3))),
        ("depthwise_192", _planes((5, 5, 192), (3, 3))),
        ("depthwise_120_large", _planes((10, 10, 120), (3, 3))),
        ("depthwise_144_strided", _planes((7, 7, 144), (3, 3), 2)),
        ("depthwise_5x5_of_48", _planes((12, 12, 48), (5, 5))),
        ("depthwise_5x5_of_96_strided", _planes((6, 6, 96), (5, 5), 2)),
        ("depthwise_5x5_of_64", _planes((8, 8, 64), (5, 5))),
        ("depthwise_7x7_of_40", _planes((10, 10, 40), (7, 7))),
        *list(DENSE.items())[::4],
        *SPREAD.items(),
    ]
}
"""Layers whose weights have four bits: kernels for bytes do not compete for these."""

QUANTIZED = {
    f"quantize_{'x'.join(map(str, x))}_{dtype.value}_{'even' if even else 'away'}": Plain(
        Quantize(dtype, Quant.per_tensor(0.0123, 0), even), x
    )
    for x in ((1, 40), (1, 257), (4, 33), (1, 8, 8, 3), (1, 49, 10, 1), (1, 24, 24, 3), (1, 1960))
    for dtype in (DType.INT8, DType.INT16)
    for even in (True, False)
}
"""Floats that become integers."""

POOLED = {
    f"{name}_pool_{kernel[0]}x{kernel[1]}_of_{'x'.join(map(str, x))}": Plain(
        op(kernel, strides, (1, 1), pads), (1, *x)
    )
    for name, op in (("max", MaxPool), ("average", AveragePool))
    for x, kernel, strides, pads in (
        ((12, 3, 8), (3, 3), (3, 3), (0, 0, 0, 0)),
        ((42, 1, 16), (3, 1), (3, 1), (0, 0, 0, 0)),
        ((16, 16, 16), (2, 2), (2, 2), (0, 0, 0, 0)),
        ((9, 9, 3), (3, 3), (2, 2), (1, 1, 1, 1)),
        ((10, 10, 32), (3, 3), (1, 1), (1, 1, 1, 1)),
        ((7, 7, 64), (7, 7), (1, 1), (0, 0, 0, 0)),
        ((5, 13, 10), (2, 3), (1, 2), (0, 1, 1, 1)),
        ((1, 60, 24), (1, 4), (1, 4), (0, 0, 0, 0)),
        ((6, 6, 128), (2, 2), (1, 1), (0, 0, 0, 0)),
        ((14, 14, 5), (5, 5), (3, 3), (2, 2, 2, 2)),
    )
}
"""Pools of floats."""

FEW = {
    f"few_{outs}_of_{height}x{width}x{groups * ins}_{kernel}x{kernel}_{groups}": replace(
        case, op=replace(case.op, few=True)
    )
    for groups, ins, outs, height, width, kernel, stride in (
        (1, 64, 1, 8, 8, 3, 1),
        (1, 16, 1, 16, 16, 3, 1),
        (1, 4, 2, 12, 12, 3, 1),
        (1, 2, 1, 22, 22, 3, 2),
        (1, 8, 1, 14, 14, 5, 1),
        (1, 32, 1, 10, 10, 1, 1),
        (1, 24, 2, 9, 9, 1, 1),
        (1, 6, 3, 11, 11, 1, 1),
        (1, 96, 1, 5, 5, 1, 1),
        (1, 1, 4, 12, 12, 3, 1),
        (1, 3, 8, 20, 20, 3, 2),
        (8, 2, 3, 8, 8, 3, 1),
        (16, 3, 4, 6, 6, 3, 1),
        (16, 3, 1, 7, 7, 1, 1),
        (8, 7, 1, 10, 10, 1, 1),
    )
    for case in [_windows((height, width, groups * ins), (kernel, kernel), groups * outs, stride, groups)]
    if isinstance(case.op, Conv)
}
"""For kernels for few filters, or for groups of few channels."""

SHORT = {
    "short_2_of_32x32x3_3x3": Case(Conv((2, 2), pads=_same(3, 3), few=True), (1, 32, 32, 3), (2, 3, 3, 3)),
    "short_8_of_24x24x3_3x3": Case(Conv((2, 2), pads=_same(3, 3), few=True), (1, 24, 24, 3), (8, 3, 3, 3)),
    "short_4_of_14x14x2_3x3": Case(Conv(pads=_same(3, 3), few=True), (1, 14, 14, 2), (4, 3, 3, 2)),
    "short_16_of_1x64x6_1x5": Case(Conv(few=True), (1, 1, 64, 6), (16, 1, 5, 6)),
    "short_5_of_12x12x1_5x5": Case(Conv(pads=_same(5, 5), few=True), (1, 12, 12, 1), (5, 5, 5, 1)),
    "short_4_of_8x8x4": Case(Conv(few=True), (1, 8, 8, 4), (4, 1, 1, 4)),
    "short_7_of_10x10x3": Case(Conv(few=True), (1, 10, 10, 3), (7, 1, 1, 3)),
    "short_rows_4x4_to_4": Case(Dense(few=True), (4, 4), (4, 4)),
    "short_rows_16x16_to_4": Case(Dense(few=True), (16, 16), (4, 16)),
    "short_rows_49x8_to_24": Case(Dense(few=True), (49, 8), (24, 8)),
    "short_rows_20x32_to_6": Case(Dense(few=True), (20, 32), (6, 32)),
}
"""For kernels for filters with few elements."""

GROUPS: Mapping[str, Mapping[str, Case | Plain | Heads]] = {
    "pointwise": POINTWISE,
    "windows": WINDOWS,
    "depthwise": DEPTHWISE,
    "dense": DENSE,
    "sparse": SPARSE,
    "real": REAL,
    "four_bits": FOUR_BITS,
    "grouped": GROUPED,
    "few": FEW,
    "short": SHORT,
    "spread": SPREAD_BYTES,
    "int16": INT16,
    "quantized": QUANTIZED,
    "pooled": POOLED,
    "attention": ATTENTION,
}
"""Each group is one image."""

CASES: Mapping[str, Case | Plain | Heads] = {
    name: case for group in GROUPS.values() for name, case in group.items()
}


def sketched(names: Iterable[str], copies: Mapping[str, int] | None = None) -> Graph:
    """Independent layers, named after their case; with ``copies``, each so often."""
    sketch = Sketch(seed=5)
    outputs = []
    for name in names:
        case, times = CASES[name], copies[name] if copies else 1
        if isinstance(case, Plain):
            x = sketch.input(case.x, DType.FLOAT32)
            outputs += [sketch.add(case.op, x) for _ in range(times)]
            continue
        if isinstance(case, Heads):
            outputs += attention_layers.sketched(sketch, case, times)
            continue
        real = name in SPARSE or name in REAL
        quant = None if real else Quant.per_tensor(0.05, 3)
        dtype = DType.FLOAT32 if real else DType.INT8
        if name in INT16:
            quant, dtype = Quant.per_tensor(0.0002, 0), DType.INT16
        x = sketch.input(case.x, dtype, quant)
        for _ in range(times):
            weights, bias = _weights_of(name)(sketch, case)
            result = None if real else Quant.per_tensor(0.1, -7)
            result = Quant.per_tensor(0.0004, 0) if name in INT16 else result
            outputs.append(sketch.add(case.op, x, weights, bias, quant=result))
    return sketch.graph(*outputs)


def _weights_of(name: str) -> Callable[[Sketch, Case], tuple[Tensor, Tensor]]:
    if name in FOUR_BITS:
        return _four_bit_weights
    if name in INT16:
        return _weights_for_int16
    return _sparse_weights if name in SPARSE else _real_weights if name in REAL else _weights


def _real_weights(sketch: Sketch, case: Case) -> tuple[Tensor, Tensor]:
    values = sketch.rng.normal(0, 1, case.weights).astype(np.float32)
    return sketch.constant(values), sketch.real(case.weights[case.op.channel_axis])


def _four_bit_weights(sketch: Sketch, case: Case) -> tuple[Tensor, Tensor]:
    return _weights(sketch, case, FOUR_BITS_LARGEST)


def _weights_for_int16(sketch: Sketch, case: Case) -> tuple[Tensor, Tensor]:
    weights, _ = _weights(sketch, case)
    return weights, sketch.bias(case.weights[case.op.channel_axis], dtype="int64")


def _weights(sketch: Sketch, case: Case, most: int = 127) -> tuple[Tensor, Tensor]:
    axis = case.op.channel_axis
    channels = case.weights[axis]
    size = int(np.prod(case.weights)) // channels
    largest = min(int(np.clip(SAFE_SUM // size, 8, 127)), most)
    values = sketch.rng.integers(-largest, largest + 1, case.weights).astype(np.int8)
    scales = [float(s) for s in sketch.rng.uniform(0.005, 0.02, channels if case.per_channel else 1)]
    quant = (
        Quant(tuple(scales), (0,) * channels, axis) if case.per_channel else Quant.per_tensor(scales[0], 0)
    )
    return sketch.build.constant(values, "w", quant), sketch.bias(channels)


def _sparse_weights(sketch: Sketch, case: Case) -> tuple[Tensor, Tensor]:
    outs, ins = case.weights
    count = max(1, round(case.filled * ins))
    values = np.zeros((outs, ins), np.float32)
    for row in values:
        first = int(sketch.rng.integers(0, ins - count + 1))
        places = np.arange(first, first + count) if case.in_runs else sketch.rng.permutation(ins)[:count]
        row[places] = (
            sketch.rng.integers(1, 127, count) / 64 if case.bytes else sketch.rng.normal(2, 0.3, count)
        )
    return sketch.constant(values), sketch.real(outs)
