# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""MaxRoiPool: the largest elements of regions of an image, each pooled to the same number of bins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.shared.operands import not_empty, numbers_from, of_type, present

FAR = 1e6  # a corner further away is as far: it must fit an integer


def regions_of_five(layer: Layer) -> bool:
    """The input has 4 axes, and each region 5 numbers: its batch and two corners."""
    x, rois = layer.input(0).shape, layer.input(1).shape
    return len(x) == 4 and len(rois) == 2 and rois[1] == 5


@dataclass(frozen=True)
class MaxRoiPool(Op):
    """Inputs: x (n, c, h, w), regions (r, 5) as batch, x1, y1, x2, y2."""

    operands = (
        present(2),
        not_empty(0),
        of_type(0, DType.FLOAT32),
        of_type(1, DType.FLOAT32),
        regions_of_five,
        numbers_from(1, "out_h", "out_w"),
    )
    out_h: int = 1
    out_w: int = 1
    scale: float = 1.0

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, rois = given(inputs, 0), given(inputs, 1)
        return (TensorType((rois.shape[0], x.shape[1], self.out_h, self.out_w), x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, rois = given(inputs, 0), given(inputs, 1)
        y = np.zeros(layer.output.shape, np.float32)
        for r, (batch, *corners) in enumerate(rois.astype(np.float32)):
            image = x[int(np.clip(np.nan_to_num(batch), 0, len(x) - 1))]
            left, top, right, bottom = (_nearest(np.float32(v) * np.float32(self.scale)) for v in corners)
            for ph, (y0, y1) in enumerate(_bins(top, bottom, self.out_h, x.shape[2])):
                for pw, (x0, x1) in enumerate(_bins(left, right, self.out_w, x.shape[3])):
                    if y1 > y0 and x1 > x0:
                        y[r, :, ph, pw] = image[:, y0:y1, x0:x1].max(axis=(1, 2))
        return (y,)


def _nearest(value: np.float32) -> int:
    near = np.float32(np.clip(np.nan_to_num(value), -FAR, FAR))
    return int(near + np.float32(0.5 if near >= 0 else -0.5))


def _bins(start: int, end: int, bins: int, extent: int) -> list[tuple[int, int]]:
    size = np.float32(max(end - start + 1, 1)) / np.float32(bins)
    edges = [(int(np.floor(b * size)), int(np.ceil((b + 1) * size))) for b in range(bins)]
    return [(min(max(a + start, 0), extent), min(max(b + start, 0), extent)) for a, b in edges]


class MaxRoiPoolLoops(Kernel[MaxRoiPool]):
    """Loops over regions, channels and bins."""

    name = "region pool loops"

    def emit(self, layer: Layer[MaxRoiPool], sheet: Sheet) -> None:
        op, (batches, channels, height, width) = layer.op, layer.input(0).shape
        scale, far = sheet.number(op.scale), f"{FAR:.1f}f"
        sides = (("left", 1), ("top", 2), ("right", 3), ("bottom", 4))
        axes = (("h", "top", "bottom", op.out_h, height), ("w", "left", "right", op.out_w, width))
        with sheet.loop("r", layer.input(1).shape[0]):
            sheet.line(f"const float *roi = &{sheet.x(1)}[r * 5];")
            sheet.line(f"const float last = {batches - 1}.0f;")
            sheet.line(
                "const int32_t batch = (int32_t)(roi[0] > 0.0f ? (roi[0] < last ? roi[0] : last) : 0.0f);"
            )
            sheet.line("int32_t corner[5];")
            sheet.line()
            with sheet.loop("i", 5, start=1):
                sheet.line(f"float at = roi[i] * {scale};")
                sheet.line()
                sheet.line(f"at = at > {far} ? {far} : at > -{far} ? at : at == at ? -{far} : 0.0f;")
                sheet.line("corner[i] = (int32_t)(at + (at >= 0.0f ? 0.5f : -0.5f));")
            for name, index in sides:
                sheet.line(f"const int32_t {name} = corner[{index}];")
            for name, first, last, bins, _ in axes:
                sheet.line(
                    f"const int32_t extent_{name} = {last} - {first} + 1 > 1 ? {last} - {first} + 1 : 1;"
                )
                sheet.line(f"const float size_{name} = (float)extent_{name} / {bins}.0f;")
            sheet.line()
            with sheet.loop("k", channels), sheet.loop("h", op.out_h), sheet.loop("w", op.out_w):
                sheet.line(f"const float *image = &{sheet.x()}[(batch * {channels} + k) * {height * width}];")
                for name, first, *_ in axes:
                    sheet.line(f"const float end_{name} = (float)({name} + 1) * size_{name};")
                    sheet.line(f"int32_t to_{name} = (int32_t)end_{name};")
                    sheet.line(f"int32_t {name}0 = (int32_t)((float){name} * size_{name}) + {first};")
                sheet.line("float largest = 0.0f;")
                sheet.line("bool any = false;")
                sheet.line()
                for name, first, _, _, extent in axes:
                    sheet.line(f"to_{name} += ((float)to_{name} < end_{name} ? 1 : 0) + {first};")
                    sheet.line(f"to_{name} = to_{name} < {extent} ? to_{name} : {extent};")
                    sheet.line(f"{name}0 = {name}0 > 0 ? {name}0 : 0;")
                with (
                    sheet.block("for (int32_t i = h0; i < to_h; i++) {"),
                    sheet.block("for (int32_t j = w0; j < to_w; j++) {"),
                ):
                    sheet.line(f"const float value = image[i * {width} + j];")
                    sheet.line()
                    sheet.line("largest = !any || value > largest ? value : largest;")
                    sheet.line("any = true;")
                place = f"((r * {channels} + k) * {op.out_h} + h) * {op.out_w} + w"
                sheet.line(f"{sheet.y()}[{place}] = largest;")


register_kernels(MaxRoiPool, MaxRoiPoolLoops())


@onnx_op("MaxRoiPool")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    height, width = (int(extent) for extent in node.attr("pooled_shape"))
    op = MaxRoiPool(height, width, float(node.attr("spatial_scale", 1.0)))
    return [build.add1(op, [node.input(0), node.input(1)])]
