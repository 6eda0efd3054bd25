# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of sliding windows, shared by convolutions and pools (NHWC, two spatial axes)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array
from tinyml.ops.framework.reading import OnnxNode

Pads = tuple[int, int, int, int]  # top, left, bottom, right
Pair = tuple[int, int]  # height, width


def output_extent(size: int, kernel: int, stride: int, dilation: int, pads: int) -> int:
    return (size + pads - dilation * (kernel - 1) - 1) // stride + 1


def same_pads(size: int, kernel: int, stride: int, dilation: int = 1, lower: bool = False) -> Pair:
    """Padding before and after so that the output has ceil(size / stride) elements."""
    total = max((-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1 - size, 0)
    small, large = total // 2, total - total // 2
    return (large, small) if lower else (small, large)


def windows(x: Array, kernel: Pair, strides: Pair, dilations: Pair, pads: Pads, fill: float) -> Array:
    """All windows of an NHWC array: shape (n, out_h, out_w, kernel_h, kernel_w, c)."""
    top, left, bottom, right = pads
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    span = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(padded, span, axis=(1, 2))
    view = view[:, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]]
    return np.moveaxis(view, 3, 5)


def onnx_pads(
    auto_pad: str,
    pads: Sequence[int],
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[list[int], list[int]]:
    """ONNX's two ways to give padding, as (begins, ends) per spatial axis."""
    rank = len(sizes)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        pairs = [
            same_pads(size, k, s, d, auto_pad == "SAME_LOWER")
            for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True)
        ]
        return [begin for begin, _ in pairs], [end for _, end in pairs]
    if auto_pad == "VALID" or not pads:
        return [0] * rank, [0] * rank
    return list(pads[:rank]), list(pads[rank:])


def tflite_pads(same: bool, sizes: Pair, kernel: Pair, strides: Pair, dilations: Pair = (1, 1)) -> Pads:
    """TFLite's SAME or VALID padding of the two spatial axes."""
    if not same:
        return (0, 0, 0, 0)
    top, bottom = same_pads(sizes[0], kernel[0], strides[0], dilations[0])
    left, right = same_pads(sizes[1], kernel[1], strides[1], dilations[1])
    return (top, left, bottom, right)


@dataclass(frozen=True)
class Along:
    """A window along one axis."""

    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    pads: Pair = (0, 0)  # before and after


@dataclass(frozen=True)
class OnnxWindow:
    """Strides, dilations and pads of the last two spatial axes, and the window along depth."""

    strides: Pair
    dilations: Pair
    pads: Pads
    depth: Along = Along()


def onnx_window(node: OnnxNode, sizes: Sequence[int], kernel: Sequence[int]) -> OnnxWindow:
    """Read the window of a convolution; axes that are missing have an extent of 1 and come first."""
    rank = len(sizes)
    if rank not in (1, 2, 3):
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} has {rank} spatial axes", "one, two or three are supported"
        )
    strides = node.ints("strides", (1,) * rank)
    dilations = node.ints("dilations", (1,) * rank)
    begins, ends = onnx_pads(
        node.attr("auto_pad", "NOTSET"), node.ints("pads"), sizes, kernel, strides, dilations
    )
    given = zip(kernel, strides, dilations, zip(begins, ends, strict=True), strict=True)
    depth, rows, columns = [Along()] * (3 - rank) + [Along(*axis) for axis in given]
    return OnnxWindow(
        (rows.stride, columns.stride),
        (rows.dilation, columns.dilation),
        (rows.pads[0], columns.pads[0], rows.pads[1], columns.pads[1]),
        depth,
    )
