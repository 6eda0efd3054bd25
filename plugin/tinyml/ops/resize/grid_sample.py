# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""GridSample: an image sampled at computed positions. Channels first, one to three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.shared.operands import not_empty, present

TAPS = {"nearest": 1, "linear": 2, "bilinear": 2, "cubic": 4, "bicubic": 4}
OUTSIDE = ("zeros", "border", "reflection")


def grid_fits(layer: Layer[GridSample]) -> bool:
    """The grid has the input's batches, as many axes as the input, and one coordinate per spatial axis."""
    x, grid = layer.input(0).shape, layer.input(1).shape
    return len(x) == len(grid) >= 3 and x[0] == grid[0] and grid[-1] == len(x) - 2


@dataclass(frozen=True)
class GridSample(Op):
    """``taps`` neighbours per axis. Inputs: x (n, c, *spatial), grid (n, *outputs, axes)."""

    operands = (present(2), not_empty(0), grid_fits)
    taps: int = 2
    outside: str = "zeros"
    align_corners: bool = False

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, grid = given(inputs, 0), given(inputs, 1)
        return (TensorType((*x.shape[:2], *grid.shape[1:-1]), x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, grid = given(inputs, 0), given(inputs, 1)
        rank = x.ndim - 2
        batches = np.arange(x.shape[0]).reshape(-1, *[1] * (grid.ndim - 2))
        axes = [self._axis(grid[..., rank - 1 - a], x.shape[2 + a]) for a in range(rank)]
        total = np.zeros((x.shape[0], *grid.shape[1:-1], x.shape[1]), np.float64)
        for combination in np.ndindex(*[self.taps] * rank):
            place = tuple(axes[a][0][k] for a, k in enumerate(combination))
            weight = np.prod([axes[a][1][k] for a, k in enumerate(combination)], axis=0)
            places = (np.broadcast_to(batches, weight.shape), *place)
            values = np.moveaxis(x, 1, -1)[places]
            total += values * weight[..., None]
        return (np.moveaxis(total, -1, 1).astype(layer.output.dtype.numpy),)

    def _axis(self, n: Array, size: int) -> tuple[list[Array], list[Array]]:
        """Places and weights of the neighbours on one axis."""
        low, high = (0.0, size - 1.0) if self.align_corners else (-0.5, size - 0.5)
        v = (n + 1) / 2 * (size - 1) if self.align_corners else ((n + 1) * size - 1) / 2
        v = np.rint(v) if self.taps == 1 else v
        if self.outside == "border" and self.taps != 4:  # cubic: neighbours one by one, as PyTorch does
            v = np.where((v < low) | (v > high), np.clip(v, 0, size - 1), v)
        elif self.outside == "reflection":
            v = _reflect(v, low, high)
        base = np.trunc(v) if self.taps == 1 else np.floor(v)
        t = v - base
        weights = {1: [np.ones_like(t)], 2: [1 - t, t], 4: _cubic(t)}[self.taps]
        places = []
        for k in range(self.taps):
            place = base + k - (1 if self.taps == 4 else 0)
            if self.outside == "zeros":
                weights[k] = np.where((place < 0) | (place > size - 1), 0, weights[k])
            elif self.outside == "reflection":
                place = np.trunc(_reflect(place, low, high))
            places.append(np.clip(place, 0, size - 1).astype(np.int64))
        return places, weights


def _reflect(v: Array, low: float, high: float) -> Array:
    """Folded back at the borders as often as needed."""
    span = high - low
    if span <= 0:
        return np.full_like(v, low)
    beyond = np.where(v < low, low - v, v - high)
    folds = np.floor(beyond / span)
    rest = beyond - folds * span
    towards_low = (v < low) == (folds % 2 == 0)
    folded = np.where(towards_low, low + rest, high - rest)
    return np.asarray(np.where(beyond <= 0, v, folded), v.dtype)


def _cubic(t: Array) -> list[Array]:
    a = -0.75

    def near(d: Array) -> Array:
        return np.asarray(((a + 2) * d - (a + 3)) * d * d + 1)

    def far(d: Array) -> Array:
        return np.asarray(((a * d - 5 * a) * d + 8 * a) * d - 4 * a)

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def single_precision(layer: Layer) -> bool:
    """Image and grid are float32."""
    return all(layer.input(i).dtype is DType.FLOAT32 for i in (0, 1))


def three_axes(layer: Layer) -> bool:
    """The image has at most three spatial axes."""
    return len(layer.input(0).shape) <= 5


class GridSampleFloat(Kernel[GridSample]):
    """Neighbours are found once for all channels."""

    name = "tinyml_grid_sample_f32"
    library = Library.PORTABLE
    sources = ("resize/grid_sample_f32.c",)
    constraints = (single_precision, three_axes)

    def emit(self, layer: Layer[GridSample], sheet: Sheet) -> None:
        op, x, grid = layer.op, layer.input(0), layer.input(1)
        sheet.include("<tinyml/sample.h>")
        spatial = x.shape[2:]
        extents = (1,) * (3 - len(spatial)) + spatial
        members = {
            ".batches": x.shape[0],
            ".channels": x.shape[1],
            ".in": "{" + ", ".join(map(str, extents)) + "}",
            ".axes": len(spatial),
            ".positions": int(np.prod(grid.shape[1:-1])),
            ".taps": op.taps,
            ".outside": f"TINYML_OUTSIDE_{op.outside.upper()}",
            ".align_corners": str(op.align_corners).lower(),
        }
        record = sheet.record("struct tinyml_grid_sample", "params", members)
        sheet.call("tinyml_grid_sample_f32", record, sheet.x(0), sheet.x(1), sheet.y())


register_kernels(GridSample, GridSampleFloat())


@onnx_op("GridSample")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    mode = str(node.attr("mode", "linear" if node.opset >= 20 else "bilinear"))
    outside = str(node.attr("padding_mode", "zeros"))
    if mode not in TAPS or outside not in OUTSIDE:
        raise UnsupportedError(
            f"GridSample node {node.name!r}: mode {mode!r} with padding {outside!r} is not known",
            f"modes {', '.join(TAPS)}; padding {', '.join(OUTSIDE)}",
        )
    op = GridSample(TAPS[mode], outside, bool(node.attr("align_corners", 0)))
    return [build.add1(op, [node.input(0), node.input(1)])]
