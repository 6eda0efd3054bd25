# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ScatterElements and ScatterND: a copy of a tensor with some elements replaced or combined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyml.base import c
from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Tensor, given
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.framework.play_loops import LOOPS, array, merged
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, element_type, onnx_writer
from tinyml.ops.indexing.cache_rows import first_row
from tinyml.ops.indexing.gather import known_indices, position_code
from tinyml.ops.indexing.packed_rows import index_code
from tinyml.ops.indexing.replacement import Replacement, copy_first
from tinyml.ops.indexing.tensor_scatter import TensorScatter
from tinyml.ops.shared.axes import onnx_axis
from tinyml.ops.shared.indices import in_range
from tinyml.ops.shared.operands import axis_exists, integers, not_empty, present, same_type

if TYPE_CHECKING:  # operators can be read from TFLite without importing onnx
    import onnx

COMBINE = {
    "none": ("{u}", None),
    "add": ("{y} + {u}", np.add),
    "mul": ("{y} * {u}", np.multiply),
    "max": ("{u} > {y} ? {u} : {y}", np.maximum),
    "min": ("{u} < {y} ? {u} : {y}", np.minimum),
}
"""How an update is combined with the existing element: in C and in numpy."""


def one_update_per_index(layer: Layer[ScatterElements]) -> bool:
    """Indices and updates have the same shape, with as many axes as the first input and none longer than
    its."""
    x, indices = layer.input(0).shape, layer.input(1).shape
    return (
        indices == layer.input(2).shape
        and len(x) == len(indices)
        and x[layer.op.axis] > 0
        and all(n <= room for a, (n, room) in enumerate(zip(indices, x, strict=True)) if a != layer.op.axis)
    )


def one_piece_per_position(layer: Layer[ScatterND]) -> bool:
    """The updates hold one slice of the first input for each position in the indices."""
    x, indices = layer.input(0).shape, layer.input(1).shape
    return (
        len(indices) >= 1
        and 1 <= indices[-1] <= len(x)
        and layer.input(2).shape == (*indices[:-1], *x[indices[-1] :])
    )


@dataclass(frozen=True)
class _Scatter(Replacement):
    """Inputs: x, indices, updates."""

    updates = 2
    reduction: str = "none"

    @property
    def only_moves(self) -> bool:
        return self.reduction == "none"

    def write(self, y: Array, places: tuple[Array, ...], updates: Array) -> None:
        """Put updates into ``y`` one after the other, so that the last one at a place wins."""
        function = COMBINE[self.reduction][1]
        if function is not None:
            function.at(y, places, updates)
            return
        flat = np.ravel_multi_index(places, y.shape)
        for place, value in zip(flat.reshape(-1), updates.reshape(-1), strict=True):
            y.reshape(-1)[place] = value


@dataclass(frozen=True)
class ScatterElements(_Scatter):
    """y[.., indices[.., i, ..], ..] = updates[.., i, ..] along ``axis``."""

    operands = (present(3), axis_exists, integers(1), same_type(0, 2), one_update_per_index)
    axis: int = 0

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (0, max(layer.input(0).shape[self.axis] - 1, 0)) if index == 1 else None

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        y = np.array(given(inputs, 0), order="C")
        indices = given(inputs, 1)
        places: list[Array] = list(np.indices(indices.shape))
        places[self.axis] = in_range(indices, y.shape[self.axis])
        self.write(y, tuple(places), given(inputs, 2))
        return (y,)


@dataclass(frozen=True)
class ScatterND(_Scatter):
    """The last axis of the indices is a position in y; a piece of the updates goes there."""

    operands = (present(3), integers(1), same_type(0, 2), not_empty(0), one_piece_per_position)

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (0, min(layer.input(0).shape[: layer.input(1).shape[-1]]) - 1) if index == 1 else None

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        y = np.array(given(inputs, 0), order="C")
        indices, updates = given(inputs, 1), given(inputs, 2)
        depth = indices.shape[-1]
        position = in_range(indices, np.asarray(y.shape[:depth], np.int64)).reshape(-1, depth)
        rows = y.reshape(-1, int(np.prod(y.shape[depth:], dtype=np.int64)))
        places = np.ravel_multi_index(tuple(position.T), y.shape[:depth])
        index = np.broadcast_to(places[:, None], (places.size, rows.shape[1]))
        columns = np.broadcast_to(np.arange(rows.shape[1]), index.shape)
        self.write(rows, (index, columns), updates.reshape(index.shape))
        return (rows.reshape(y.shape),)


def _combined(layer: Layer[_Scatter], element: str, update: str) -> str:
    """The C expression that an element becomes."""
    op, dtype = layer.op, layer.output.dtype
    if op.reduction in ("add", "mul") and dtype.is_integer:
        wide = "uint64_t" if dtype.bytes == 8 else "uint32_t"  # wraps, like the elements themselves
        text = COMBINE[op.reduction][0].format(y=f"({wide}){element}", u=f"({wide}){update}")
        return f"({dtype.c})({text})"
    return COMBINE[op.reduction][0].format(y=element, u=update)


def _played(layer: Layer[Any]) -> dict[str, object]:
    """Members of struct tinyml_play_scatter_how."""
    dtype, index = layer.output.dtype, layer.input(1).dtype
    if index not in (DType.INT32, DType.INT64):
        raise NotPlayableError(f"the player has no scatter with indices of {index.value}")
    if layer.op.reduction != "none" and dtype in (DType.FLOAT64, DType.UINT64):
        raise NotPlayableError(f"the player has no scatter that changes elements of {dtype.value}")
    return {
        ".how.bytes": dtype.bytes,
        ".how.type": dtype.code,
        ".how.index": index.code,
        ".how.function": list(COMBINE).index(layer.op.reduction),
    }


class ScatterElementsLoops(InPlace[ScatterElements]):
    """Loops over the indices, in order."""

    name = "scatter-elements loops"

    def emit(self, layer: Layer[ScatterElements], sheet: Sheet) -> None:
        op, indices, y = layer.op, layer.input(1), layer.output
        copy_first(sheet)
        strides = list(c.contiguous(y.shape))
        step = strides[op.axis]
        strides[op.axis] = 0
        walks = {"y": c.Walk(tuple(strides)), "i": c.Walk(c.contiguous(indices.shape))}
        with sheet.loops(c.nest(indices.shape, walks)) as at:
            place = index_code(sheet, indices, f"{sheet.x(1)}[{at['i']}]", y.shape[op.axis])
            offset = "k" if step == 1 else f"k * {step}"
            sheet.line(f"const int32_t k = {place};")
            sheet.line(f"{y.dtype.c} *to = &{sheet.y()}[{at['y']} + {offset}];")
            sheet.line()
            update = f"{sheet.x(2)}[{at['i']}]"
            sheet.line(f"*to = {_combined(layer, '*to', update)};")

    def play(self, layer: Layer[ScatterElements], sheet: Sheet) -> None:
        op, indices, y = layer.op, layer.input(1), layer.output
        copy_first(sheet)
        if indices.elements == 0:
            return
        strides = list(c.contiguous(y.shape))
        step = strides[op.axis]
        strides[op.axis] = 0
        extents, (steps, _) = merged(indices.shape, strides, c.contiguous(indices.shape))
        members = {
            **array("extents", extents, 1),
            **array("steps", steps, 0),
            ".size": y.shape[op.axis],
            ".step": step,
            **_played(layer),
        }
        sheet.note("tinyml_play_scatter_elements", members, sheet.x(2), sheet.x(1), sheet.y())


class ScatterNDLoops(InPlace[ScatterND]):
    """Loops over the positions, in order, and over the elements of a piece."""

    name = "scatter-nd loops"

    def emit(self, layer: Layer[ScatterND], sheet: Sheet) -> None:
        indices, y = layer.input(1), layer.output
        copy_first(sheet)
        depth = indices.shape[-1]
        row = int(np.prod(y.shape[depth:], dtype=np.int64))
        with sheet.loop("i", indices.elements // depth):
            position_code(sheet, y, indices, 0, "i")
            sheet.line()
            with sheet.loop("j", row):
                sheet.line(f"{y.dtype.c} *to = &{sheet.y()}[place + j];")
                sheet.line()
                sheet.line(f"*to = {_combined(layer, '*to', f'{sheet.x(2)}[i * {row} + j]')};")

    def play(self, layer: Layer[ScatterND], sheet: Sheet) -> None:
        indices, y = layer.input(1), layer.output
        copy_first(sheet)
        if layer.input(2).elements == 0:
            return
        depth = indices.shape[-1]
        if depth > LOOPS:
            raise NotPlayableError(f"its positions have {depth} indices, the player's at most {LOOPS}")
        rest = [0] * (LOOPS - depth)
        sizes, steps = [*y.shape[:depth], *rest], [*c.contiguous(y.shape)[:depth], *rest]
        members = {
            ".count": indices.elements // depth,
            ".elements": int(np.prod(y.shape[depth:], dtype=np.int64)),
            ".depth": depth,
            **{f".sizes.{i}": size for i, size in enumerate(sizes)},
            **{f".steps.{i}": step for i, step in enumerate(steps)},
            **_played(layer),
        }
        sheet.note("tinyml_play_scatter", members, sheet.x(2), sheet.x(1), sheet.y())


register_kernels(ScatterElements, ScatterElementsLoops())
register_kernels(ScatterND, ScatterNDLoops())


def _combines(node: onnx.NodeProto) -> bool:
    return any(a.name == "reduction" and a.s not in (b"", b"none") for a in node.attribute)


quantizes("ScatterElements", "ScatterND", moves=True, one_scale=True, stays_float=_combines)


def _reduction(node: OnnxNode, x: Tensor) -> str:
    name = str(node.attr("reduction", "none"))
    if name not in COMBINE:
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r}: reduction {name!r} is not known", ", ".join(COMBINE)
        )
    if name != "none" and x.dtype is DType.BOOL:
        raise UnsupportedError(f"{node.op_type} node {node.name!r}: cannot {name} booleans")
    return name


@onnx_op("ScatterElements", "Scatter")
def read_scatter_elements(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    axis = onnx_axis(node, len(x.shape), 0)
    updates, reduction = node.input(2), _reduction(node, x)
    start = first_row(build, x, node.input(1), updates, axis) if reduction == "none" else None
    if start is not None:
        return [build.add1(TensorScatter(axis), [x, updates, start])]
    indices = known_indices(build, node.input(1), x.shape[axis])
    return [build.add1(ScatterElements(reduction, axis), [x, indices, updates])]


@onnx_op("ScatterND")
def read_scatter_nd(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, indices = node.input(0), node.input(1)
    sizes = np.asarray(x.shape[: indices.shape[-1]], np.int64)
    operands = [x, known_indices(build, indices, sizes), node.input(2)]
    return [build.add1(ScatterND(_reduction(node, x)), operands)]


@tflite_op("SCATTER_ND")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """Scatter into zeros; updates to the same place are added."""
    indices, updates = node.input(0), node.input(1)
    if updates.quant is not None or updates.dtype is DType.BOOL:
        raise UnsupportedError(
            f"SCATTER_ND operator {node.name!r}: quantised numbers and booleans are not supported"
        )
    shape = [int(extent) for extent in node.const(2).reshape(-1)]
    zeros = build.constant(np.zeros(shape, updates.dtype.numpy), f"{node.name}/zeros")
    sizes = np.asarray(shape[: indices.shape[-1]], np.int64)
    return [build.add1(ScatterND("add"), [zeros, known_indices(build, indices, sizes), updates])]


@onnx_writer(ScatterElements)
def write_onnx_elements(op: ScatterElements, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.node("ScatterElements", x, y, axis=op.axis, reduction=op.reduction)


@onnx_writer(ScatterND)
def write_onnx_nd(op: ScatterND, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    whole = x[1]
    if layer.input(1).dtype is not DType.INT64:
        whole = out.node("Cast", [x[1]], to=element_type(DType.INT64))
    out.node("ScatterND", [x[0], whole, x[2]], y, reduction=op.reduction)
