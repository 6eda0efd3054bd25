# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TopK: the k largest (or smallest) elements along an axis, and where they are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np

from tinyml.base import c
from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.counted.top_k import SomeTop
from tinyml.ops.elementwise.cast import cast
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.axis import from_front
from tinyml.ops.shared.operands import axis_exists, present
from tinyml.ops.shared.ranking import best_places, is_number, number_ranks_before, ranks_before


@dataclass(frozen=True)
class TopK(Op):
    """Values, best first, and their indices (int64); of equal ones the first comes first."""

    operands = (present(1), axis_exists)
    k: int = 1
    axis: int = -1
    largest: bool = True

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        return None if axis == self.axis % len(layer.input(0).shape) else (axis, axis)

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        shape = list(x.shape)
        if not 0 <= self.k <= shape[self.axis]:
            raise ModelError(f"cannot take {self.k} of the {shape[self.axis]} elements of {x.name!r}")
        shape[self.axis] = self.k
        quant = x.quant if x.quant is None or not x.quant.per_channel else None
        return (TensorType(tuple(shape), x.dtype, quant), TensorType(tuple(shape), DType.INT64))

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        order = best_places(x, self.axis, self.largest)
        best = np.take(order, range(self.k), axis=self.axis)
        return np.take_along_axis(x, best, axis=self.axis), best.astype(np.int64)


class TopKLoops(Kernel[TopK]):
    """Insertion into a sorted list of k, which is the output itself."""

    name = "top-k loops"

    def emit(self, layer: Layer[TopK], sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        if op.k == 0 or x.elements == 0:
            return
        axis = op.axis % len(x.shape)
        inner = c.contiguous(x.shape)[axis]
        outer = x.elements // (inner * x.shape[axis])
        place = f"j * {inner}" if inner > 1 else "j"
        before = f"(j - 1) * {inner}" if inner > 1 else "j - 1"
        beats_last = ranks_before("v", f"best[{(op.k - 1) * inner}]", x.dtype, op.largest)
        beats_previous = number_ranks_before("v", "w", x.dtype, op.largest)
        walks = {
            "x": c.Walk((x.shape[axis] * inner, 1)),
            "y": c.Walk((op.k * inner, 1)),
        }
        with sheet.loops(c.nest((outer, inner), walks, "o")) as index:
            sheet.line(f"const {x.dtype.c} *in = &{sheet.x()}[{index['x']}];")
            sheet.line(f"{y.dtype.c} *best = &{sheet.y(0)}[{index['y']}];")
            sheet.line(f"int64_t *place = &{sheet.y(1)}[{index['y']}];")
            sheet.line("int32_t count = 0;")
            sheet.line()
            with sheet.loop("i", x.shape[axis]):
                sheet.line(f"const {x.dtype.c} v = in[{f'i * {inner}' if inner > 1 else 'i'}];")
                sheet.line("int32_t j = count;")
                sheet.line()
                with sheet.block(f"if (count == {op.k}) {{"):
                    with sheet.block(f"if (!({beats_last})) {{"):
                        sheet.line("continue;")
                    sheet.line("j--;")
                    sheet.line("count--;")
                sheet.line("count++;")
                number = sheet.block(f"if ({is_number('v')}) {{") if x.dtype.is_float else nullcontext()
                with number, sheet.block("for (; j > 0; j--) {"):
                    sheet.line(f"const {x.dtype.c} w = best[{before}];")
                    sheet.line()
                    with sheet.block(f"if (!({beats_previous})) {{"):
                        sheet.line("break;")
                    sheet.line(f"best[{place}] = w;")
                    sheet.line(f"place[{place}] = place[{before}];")
                sheet.line(f"best[{place}] = v;")
                sheet.line(f"place[{place}] = i;")

    def play(self, layer: Layer[TopK], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        if x.dtype not in PLAYED:
            raise NotPlayableError(f"the player has no top-k of {x.dtype.value}")
        if op.k == 0 or x.elements == 0:
            return
        axis = op.axis % len(x.shape)
        step = c.contiguous(x.shape)[axis]
        members = {
            ".rows": x.elements // (step * x.shape[axis]),
            ".step": step,
            ".depth": x.shape[axis],
            ".count": op.k,
            ".type": x.dtype.code,
            ".largest": int(op.largest),
        }
        sheet.note("tinyml_play_top_k", members, sheet.x(), sheet.y(0), sheet.y(1))


PLAYED = (DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32)
"""Types that the player has."""

register_kernels(TopK, TopKLoops())


@onnx_op("TopK")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """``sorted`` makes no difference: the sorted order is always allowed."""
    x = node.input(0)
    axis = from_front(int(node.attr("axis", -1)), len(x.shape))
    largest = bool(node.attr("largest", 1))
    if node.opset < 10:
        return build.add(TopK(int(node.attr("k")), axis, largest), [x])
    return _top(build, x, node.input(1), axis, largest)


def _top(build: Builder, x: Tensor, k: Tensor, axis: int, largest: bool) -> Sequence[Tensor]:
    """A number that the compiler does not know, or elements of which it does not, give a count."""
    known = build.counted.get(x.name)
    if k.data is not None and (known is None or known.axis != axis):
        return build.add(TopK(int(k.data.reshape(-1)[0]), axis, largest), [x])
    most = x.shape[axis] if k.data is None else min(int(k.data.reshape(-1)[0]), x.shape[axis])
    operands = [x, k, build.count_along(x, axis)]
    values, places, number = build.add(SomeTop(build.bound(most), axis, largest), operands, counts=True)
    build.count(values, axis, number)
    build.count(places, axis, number)
    return values, places


@tflite_op("TOPK_V2")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    values, places = _top(build, x, node.input(1), len(x.shape) - 1, True)
    return [values, cast(build, places, node.outputs[1].dtype)]


@onnx_writer(TopK)
def write_onnx(op: TopK, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    operands = [x[0], out.integers([op.k], "k")]
    results = [tensor.name for tensor in layer.outputs]
    out.node_of("TopK", operands, results, axis=op.axis, largest=int(op.largest), sorted=1)
