# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ResizeBilinear: TFLite's bilinear resizing of NHWC images.

Signed integers have ten bits of fraction, and round halves away from zero. uint8 is interpolated in float32,
as stored, and halves go up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_op
from tinyml.ops.resize.tflite import CORNERS, Grid, grid_of
from tinyml.ops.shared.operands import not_empty, numbers_from, of_rank, present

ONE = 1 << 10


@dataclass(frozen=True)
class Neighbours:
    """For each output pixel of an axis: two input pixels, and how far it is from the first."""

    first: Array
    second: Array
    fraction: Array  # float32, or int16 in units of 1 / ONE


def _real(grid: Grid, size: int, wanted: int) -> Neighbours:
    place = np.arange(wanted, dtype=np.float32) * grid.scale(size, wanted)
    if grid.half_pixel_centers:
        half = np.float32(0.5)
        place = (np.arange(wanted, dtype=np.float32) + half) * grid.scale(size, wanted) - half
    first = np.maximum(np.floor(place), 0).astype(np.int64)
    second = np.minimum(np.ceil(place), size - 1).astype(np.int64)
    return Neighbours(first, second, (place - first).astype(np.float32))


def _whole(grid: Grid, size: int, wanted: int) -> Neighbours:
    last = 1 if grid.align_corners and wanted > 1 else 0
    scale = (ONE * (size - last) + (wanted - last) // 2) // (wanted - last)
    place = np.arange(wanted, dtype=np.int64) * scale
    if grid.half_pixel_centers:
        place = place + scale // 2 - ONE // 2
    first = np.maximum(place // ONE, 0)
    second = np.minimum((place + ONE - 1) // ONE, size - 1)
    return Neighbours(first, second, (place - first * ONE).astype(np.int16))


@dataclass(frozen=True)
class ResizeBilinear(Op):
    """Four neighbours, weighted. Input and output are quantised alike, if they are."""

    operands = (present(1), of_rank(0, 4), not_empty(0), numbers_from(1, "height", "width"))
    height: int = 1
    width: int = 1
    grid: Grid = CORNERS
    unsigned: bool = False  # bytes were uint8 in the file: int8 now is 128 less

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType((x.shape[0], self.height, self.width, x.shape[3]), x.dtype, x.quant),)

    def axes(self, x: Tensor) -> tuple[Neighbours, Neighbours]:
        """Rows and columns."""
        find = _real if x.dtype.is_float or self.unsigned else _whole
        return find(self.grid, x.shape[1], self.height), find(self.grid, x.shape[2], self.width)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        if self.unsigned:
            return (self._unsigned(layer, x),)
        real = layer.input(0).dtype.is_float
        wide = x if real else x.astype(np.int64)
        one = np.float32(1) if real else ONE
        rows, columns = self.axes(layer.input(0))
        down = rows.fraction.reshape(1, -1, 1, 1).astype(wide.dtype)
        right = columns.fraction.reshape(1, 1, -1, 1).astype(wide.dtype)
        y = wide[:, rows.first] * (one - down) + wide[:, rows.second] * down
        y = y[:, :, columns.first] * (one - right) + y[:, :, columns.second] * right
        if not real:
            y = np.sign(y) * ((np.abs(y) + ONE * ONE // 2) // (ONE * ONE))
        return (y.astype(x.dtype),)

    def _unsigned(self, layer: Layer, x: Array) -> Array:
        """The four products and their sums in the order of TensorFlow Lite, each rounded to float32."""
        rows, columns = self.axes(layer.input(0))
        stored = x.astype(np.float32) - np.float32(_least(layer.input(0)))
        down, right = rows.fraction.reshape(1, -1, 1, 1), columns.fraction.reshape(1, 1, -1, 1)
        up, left = np.float32(1) - down, np.float32(1) - right
        above, below = stored[:, rows.first], stored[:, rows.second]
        y = above[:, :, columns.first] * up * left + below[:, :, columns.first] * down * left
        y = y + above[:, :, columns.second] * up * right
        y = y + below[:, :, columns.second] * down * right
        return ((y + np.float32(0.5)).astype(np.int64) + _least(layer.input(0))).astype(x.dtype)


def _least(x: Tensor) -> int:
    return x.dtype.limits[0]


def float_or_quantized(layer: Layer[ResizeBilinear]) -> bool:
    """Input and output are float32, or int8 or int16 with the same quantisation."""
    x, y = layer.input(0), layer.output
    return x.dtype is DType.FLOAT32 or (x.dtype in (DType.INT8, DType.INT16) and x.quant == y.quant)


class ResizeBilinearLoops(Kernel[ResizeBilinear]):
    """Loops over the output; tables give the neighbours and fractions of each row and column."""

    name = "bilinear resize loops"
    constraints = (float_or_quantized,)

    def emit(self, layer: Layer[ResizeBilinear], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        dtype = x.dtype
        real = dtype.is_float or op.unsigned
        kind = "float" if real else "int32_t" if dtype is DType.INT8 else "int64_t"
        one = "1.0f" if real else str(ONE)
        tables = {}
        for name, axis in zip(("rows", "columns"), op.axes(x), strict=True):
            places = np.stack([axis.first, axis.second], axis=1).astype(np.int16)
            tables[name] = (sheet.table(name, places), sheet.table(f"{name}_by", axis.fraction))
        channels = x.shape[3]
        loops = [("n", x.shape[0]), ("i", op.height), ("j", op.width), ("c", channels)]
        with sheet.nested(loops):
            i, j, ch = (name if extent > 1 else "0" for name, extent in loops[1:])
            image = f"n * {x.shape[1]} + " if x.shape[0] > 1 else ""
            (rows, down), (columns, right) = tables["rows"], tables["columns"]
            sheet.line(f"const {kind} down = {down}[{i}];")
            sheet.line(f"const {kind} right = {right}[{j}];")
            for name, row in (("above", 0), ("below", 1)):
                start = f"({image}{rows}[{i} * 2 + {row}]) * {x.shape[2] * channels}"
                sheet.line(f"const {dtype.c} *{name} = &{sheet.x()}[{start} + {ch}];")
            for name, column in (("left_at", 0), ("right_at", 1)):
                sheet.line(f"const int32_t {name} = {columns}[{j} * 2 + {column}] * {channels};")
            out = f"{f'(n * {op.height} + {i})' if x.shape[0] > 1 else i} * {op.width * channels}"
            out = f"{sheet.y()}[{out} + {j} * {channels} + {ch}]"
            if op.unsigned:
                _emit_unsigned(sheet, dtype, out)
                return
            for name, at in (("first", "left_at"), ("second", "right_at")):
                value = f"above[{at}] * ({one} - down) + below[{at}] * down"
                sheet.line(f"const {kind} {name} = {value};")
            sheet.line(f"const {kind} sum = first * ({one} - right) + second * right;")
            sheet.line()
            value = "sum"
            if not dtype.is_float:
                half = ONE * ONE // 2
                value = f"({dtype.c})((sum > 0 ? sum + {half} : sum - {half}) / {ONE * ONE})"
            sheet.line(f"{out} = {value};")

    def play(self, layer: Layer[ResizeBilinear], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        if op.unsigned:
            raise NotPlayableError("the player has no bilinear resizing of uint8")
        members: dict[str, object] = {
            ".batches": x.shape[0],
            ".in_h": x.shape[1],
            ".in_w": x.shape[2],
            ".channels": x.shape[3],
            ".out_h": op.height,
            ".out_w": op.width,
            ".type": x.dtype.code,
        }
        for name, axis in zip(("rows", "columns"), op.axes(x), strict=True):
            places = np.stack([axis.first, axis.second], axis=1).astype(np.int16)
            members[f".{name}"] = sheet.table(name, places)
            members[f".{name}_by"] = sheet.table(f"{name}_by", axis.fraction)
        sheet.note("tinyml_play_resize_bilinear", members, sheet.x(), sheet.y())


def _emit_unsigned(sheet: Sheet, dtype: DType, out: str) -> None:
    """Products are volatile: a compiler that fused them with the sums would round ties another way."""
    least = dtype.limits[0]
    shift = f" + {-least}" if least else ""
    sheet.line("volatile float product;")
    sheet.line("float sum;")
    sheet.line()
    for number, (row, down, at, right) in enumerate(
        (
            ("above", "(1.0f - down)", "left_at", "(1.0f - right)"),
            ("below", "down", "left_at", "(1.0f - right)"),
            ("above", "(1.0f - down)", "right_at", "right"),
            ("below", "down", "right_at", "right"),
        )
    ):
        sheet.line(f"product = (float)({row}[{at}]{shift}) * {down};")
        sheet.line(f"product = product * {right};")
        sheet.line(f"sum {'=' if number == 0 else '+='} product;")
    sheet.line(f"{out} = ({dtype.c})((int32_t)(sum + 0.5f){f' - {-least}' if least else ''});")


register_kernels(ResizeBilinear, ResizeBilinearLoops())


@tflite_op("RESIZE_BILINEAR")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    if len(x.shape) != 4:
        raise UnsupportedError(f"{node.op_type} operator {node.name!r} requires an NHWC image")
    op = ResizeBilinear(*grid_of(node), unsigned=x.dtype is DType.UINT8)
    return [build.add1(op, [x], node.outputs[0])]
