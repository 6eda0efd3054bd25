# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""RoiAlign: regions of an image, each pooled to the same number of bins. Channels first."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.shared.indices import in_range
from tinyml.ops.shared.operands import integers, not_empty, numbers_from, present


def regions_fit(layer: Layer[RoiAlign]) -> bool:
    """The input has 4 axes, each region 4 numbers, and there is one batch number for each region."""
    x, rois, batches = (layer.input(i).shape for i in range(3))
    return len(x) == 4 and len(rois) == 2 and rois[1] == 4 and batches == rois[:1]


@dataclass(frozen=True)
class RoiAlign(Op):
    """Inputs: x (n, c, h, w), regions (r, 4) as x1, y1, x2, y2, and the batch of each region."""

    operands = (
        present(3),
        not_empty(0),
        integers(2),
        regions_fit,
        numbers_from(1, "out_h", "out_w"),
        numbers_from(0, "samples"),
    )
    out_h: int = 1
    out_w: int = 1
    samples: int = 0
    scale: float = 1.0
    half_pixel: bool = True
    largest: bool = False

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (0, layer.input(0).shape[0] - 1) if index == 2 else None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, rois = given(inputs, 0), given(inputs, 1)
        return (TensorType((rois.shape[0], x.shape[1], self.out_h, self.out_w), x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, rois, batches = (given(inputs, i) for i in range(3))
        y = np.zeros(layer.output.shape, np.float64)
        inside = in_range(batches, len(x))
        for r, (roi, batch) in enumerate(zip(rois.astype(np.float64), inside, strict=True)):
            cols = self._samples(roi[0], roi[2], self.out_w)
            rows = self._samples(roi[1], roi[3], self.out_h)
            for oy, ox in np.ndindex(self.out_h, self.out_w):
                parts = [self._parts(x[batch], v, u) for v in rows[oy] for u in cols[ox]]
                if not parts:
                    continue
                values = np.array([p.max(axis=0) if self.largest else p.sum(axis=0) for p in parts])
                y[r, :, oy, ox] = values.max(axis=0) if self.largest else values.mean(axis=0)
        return (y.astype(layer.output.dtype.numpy),)

    def _samples(self, start: float, end: float, bins: int) -> list[list[float]]:
        """The places that each bin looks at, on one axis."""
        shift = 0.5 if self.half_pixel else 0.0
        first, extent = start * self.scale - shift, (end - start) * self.scale
        extent = extent if self.half_pixel else max(extent, 1.0)
        size = extent / bins
        count = self.samples or max(0, math.ceil(size))
        return [[first + (b + (i + 0.5) / count) * size for i in range(count)] for b in range(bins)]

    def _parts(self, image: Array, v: float, u: float) -> Array:
        """What the four neighbours of a place contribute, per channel."""
        _, height, width = image.shape
        if not (-1 <= v <= height and -1 <= u <= width):
            return np.zeros((4, image.shape[0]))
        v, u = min(max(v, 0), height - 1), min(max(u, 0), width - 1)
        i, j = int(v), int(u)
        below, right = min(i + 1, height - 1), min(j + 1, width - 1)
        b, a = v - i, u - j
        corners = [(i, j, (1 - b) * (1 - a)), (i, right, (1 - b) * a)]
        corners += [(below, j, b * (1 - a)), (below, right, b * a)]
        return np.array([image[:, row, col] * weight for row, col, weight in corners])


def expected_types(layer: Layer) -> bool:
    """Image and regions are float32, batch indices int64."""
    wanted = (DType.FLOAT32, DType.FLOAT32, DType.INT64)
    return all(layer.input(i).dtype is dtype for i, dtype in enumerate(wanted))


class RoiAlignFloat(Kernel[RoiAlign]):
    """Bilinear samples, averaged (or the largest of them)."""

    name = "tinyml_roi_align_f32"
    library = Library.PORTABLE
    sources = ("resize/roi_align_f32.c",)
    constraints = (expected_types,)

    def emit(self, layer: Layer[RoiAlign], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        sheet.include("<tinyml/sample.h>")
        members = {
            ".regions": layer.output.shape[0],
            ".batches": x.shape[0],
            ".channels": x.shape[1],
            ".in_h": x.shape[2],
            ".in_w": x.shape[3],
            ".out_h": op.out_h,
            ".out_w": op.out_w,
            ".samples": op.samples,
            ".scale": sheet.number(op.scale),
            ".half_pixel": str(op.half_pixel).lower(),
            ".largest": str(op.largest).lower(),
        }
        record = sheet.record("struct tinyml_roi_align", "params", members)
        operands = ", ".join(sheet.x(i) for i in range(3))
        sheet.line(f"tinyml_roi_align_f32(&{record}, {operands}, {sheet.y()});")


register_kernels(RoiAlign, RoiAlignFloat())


@onnx_op("RoiAlign")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    op = RoiAlign(
        int(node.attr("output_height", 1)),
        int(node.attr("output_width", 1)),
        int(node.attr("sampling_ratio", 0)),
        float(node.attr("spatial_scale", 1.0)),
        node.attr("coordinate_transformation_mode", default) == "half_pixel",
        node.attr("mode", "avg") == "max",
    )
    return [build.add1(op, [node.input(i) for i in range(3)])]
