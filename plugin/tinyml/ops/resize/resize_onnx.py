# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Resized tensors as ONNX: Resize where it looks at the same elements, else a Gather for each axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import Layer, Shape
from tinyml.ops.framework.writing import NO_LIMITS, OnnxWriter, onnx_writer
from tinyml.ops.resize.axis import COORDINATES, ROUNDINGS, Axis, Sampling, nearest
from tinyml.ops.resize.bilinear import ResizeBilinear
from tinyml.ops.resize.resize import ResizeNearest, ResizeWeighted
from tinyml.ops.resize.tflite import ResizePixels
from tinyml.ops.shared.take import Picks, write_picks

ALWAYS_KNOWN = tuple(c for c in COORDINATES if c not in ("tf_half_pixel_for_nn", "tf_crop_and_resize"))
"""Opset 13 removed the first; the second has regions."""


@onnx_writer(ResizeNearest)
def write_nearest(op: ResizeNearest, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    _write_nearest(op, layer, x, y, out, op.sampling)


@onnx_writer(ResizePixels)
def write_pixels(op: ResizePixels, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    _write_nearest(op, layer, x, y, out, Sampling(coordinates="asymmetric", rounding="floor"))


def _write_nearest(
    op: ResizeNearest | ResizePixels,
    layer: Layer,
    x: list[str],
    y: str,
    out: OnnxWriter,
    first: Sampling,
) -> None:
    """Sizes alone say how; the first way with the same elements is taken."""
    shape, sizes = layer.input(0).shape, layer.output.shape
    wanted = op.picks(shape)
    found = next((s for s in _samplings(first) if _picks(shape, sizes, s) == wanted), None)
    if found is None:
        write_picks(op, layer, x, y, out)
        return
    words = {"coordinate_transformation_mode": found.coordinates, "nearest_mode": found.rounding}
    out.node("Resize", [x[0], "", "", out.integers(sizes, "sizes")], y, mode="nearest", **words)


def _samplings(first: Sampling) -> Iterator[Sampling]:
    if first.coordinates in ALWAYS_KNOWN:
        yield first
    for coordinates in ALWAYS_KNOWN:
        for rounding in ROUNDINGS:
            yield Sampling(coordinates=coordinates, rounding=rounding)


def _picks(shape: Shape, sizes: Sequence[int], sampling: Sampling) -> tuple[Picks, ...]:
    return tuple(nearest(Axis(n, n / size), size, sampling) for size, n in zip(shape, sizes, strict=True))


@onnx_writer(ResizeWeighted)
def write_weighted(op: ResizeWeighted, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    how = op.sampling
    if how.coordinates not in ALWAYS_KNOWN:
        raise UnsupportedError(f"a tensor resized with the coordinates {how.coordinates} cannot be quantised")
    words = {
        "mode": how.mode,
        "coordinate_transformation_mode": how.coordinates,
        "cubic_coeff_a": how.cubic,
        "exclude_outside": int(how.exclude_outside),
        "antialias": int(how.antialias),
    }
    out.node("Resize", [x[0], "", *_extents(op.axes, layer.input(0).shape, out)], y, **words)


def _extents(axes: Sequence[Axis], shape: Shape, out: OnnxWriter) -> list[str]:
    """Scales, or sizes that give these scales."""
    pairs = list(zip(axes, shape, strict=True))
    if all(np.float32(axis.scale) == np.float32(axis.size / size) for axis, size in pairs):
        return ["", out.integers([axis.size for axis in axes], "sizes")]
    scales = np.asarray([axis.scale for axis in axes], np.float32)
    if any(
        math.floor(np.float32(size) * scale) != axis.size
        for (axis, size), scale in zip(pairs, scales, strict=True)
    ):
        raise UnsupportedError("a tensor resized to other extents than its scales give cannot be quantised")
    return [out.constant(scales, "scales")]


@onnx_writer(ResizeBilinear)
def write_bilinear(op: ResizeBilinear, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    grid = op.grid
    coordinates = (
        "align_corners" if grid.align_corners else "half_pixel" if grid.half_pixel_centers else "asymmetric"
    )
    batch, height, width, channels = layer.output.shape
    operands = ["", "", out.integers([batch, channels, height, width], "sizes")]
    words = {"mode": "linear", "coordinate_transformation_mode": coordinates}
    out.spatial(x[0], y, 4, NO_LIMITS, "Resize", operands, **words)
