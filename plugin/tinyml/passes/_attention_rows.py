# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the rows of queries, keys, values and outputs come from and go to, past all that only moves them."""

from __future__ import annotations

import math

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Node, Shape
from tinyml.ops.attention.heads import Rows, rows_of
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.quant import NO_CLAMP
from tinyml.ops.transpose import Transpose
from tinyml.passes.editor import Editor


@dataclass(frozen=True)
class Operand:
    """A tensor, and where its rows are."""

    name: str
    rows: Rows
    factor: float = 1.0  # its elements count this often


def source(
    edit: Editor, name: str, lead: Shape, turned: bool = False, scaled: bool = False
) -> Operand | None:
    """The first tensor that has the rows of ``name`` in one piece; its heads are broadcast to ``lead``.

    ``turned``: the matrices are transposed, so that their columns are the rows.
    ``scaled``: factors on the way are left to the one who asks.
    """
    factor = 1.0
    wanted = edit.tensors[name]
    numbers: Array = np.arange(wanted.elements).reshape(wanted.shape)
    if turned:
        numbers = np.swapaxes(numbers, -1, -2)
    numbers = np.broadcast_to(numbers, (*lead, *numbers.shape[-2:])).reshape(-1, *numbers.shape[-2:])
    best: Operand | None = None
    while True:
        here = edit.tensors[name]
        rows = rows_of(numbers) if here.quant == wanted.quant else None
        if rows is not None:
            best = Operand(name, rows, factor)
        node = edit.producer(name)
        number = factor_of(edit, node) if scaled and node is not None else None
        if node is not None and number is not None:
            factor *= number[1]
            name = number[0]
            continue
        taken = _moved(edit, node) if node is not None else None
        if node is None or taken is None:
            return best
        numbers = taken.reshape(-1)[numbers]
        name = node.inputs[0]


def factor_of(edit: Editor, node: Node) -> tuple[str, float] | None:
    """What a node multiplies by a single number, and the number."""
    op, layer = node.op, edit.layer(node)
    if not isinstance(op, Binary) or op.function not in ("mul", "div") or op.clamp != NO_CLAMP:
        return None
    if any(t is None or t.dtype is not DType.FLOAT32 or t.quant is not None for t in layer.inputs):
        return None
    for index in (0, 1) if op.function == "mul" else (1,):
        data, other = layer.input(index).data, layer.input(1 - index)
        if (
            data is not None
            and data.size == 1
            and not other.is_constant
            and other.shape == layer.output.shape
        ):
            number = float(data.reshape(-1)[0])
            usable = math.isfinite(number) and number != 0
            return (other.name, number if op.function == "mul" else 1 / number) if usable else None
    return None


def _moved(edit: Editor, node: Node) -> Array | None:
    """The numbers of the elements of input 0 that are the outputs of a node that only moves them."""
    first = edit.tensors[node.inputs[0]] if node.inputs and node.inputs[0] else None
    others = [edit.tensors[name].data for name in node.inputs[1:] if name]
    if first is None or not node.op.movement or len(node.outputs) != 1:
        return None
    if first.is_constant or any(data is None for data in others):
        return None
    numbers = np.arange(first.elements).reshape(first.shape)
    (taken,) = node.op.evaluate(Layer.of(node, edit.tensors), [numbers, *others])
    return taken


def turned(edit: Editor, name: str) -> tuple[Node, Operand]:
    """A new node that transposes the matrices of a tensor, and its result's rows."""
    rank = len(edit.tensors[name].shape)
    perm = (*range(rank - 2), rank - 1, rank - 2)
    node, result = edit.make(name, Transpose(perm), [edit.tensors[name]])
    rows, elements = result.shape[-2:]
    heads = result.elements // (rows * elements)
    return node, Operand(result.name, Rows(tuple(rows * elements * h for h in range(heads)), elements))


def destination(edit: Editor, node: Node) -> tuple[list[Node], Operand]:
    """The nodes after ``node`` that only move its result and that it can do without, and the last result."""
    (name,) = node.outputs
    shape = edit.tensors[name].shape
    places = np.arange(edit.tensors[name].elements)
    heads = (-1, *shape[-2:])
    rows = rows_of(places.reshape(heads))
    assert rows is not None
    found: list[Node] = []
    best, passed = Operand(name, rows), 0
    while True:
        after = edit.only_reader(name)
        if after is None or not isinstance(after.op, Transpose | Reshape) or after.inputs[0] != name:
            return found[:passed], best
        if edit.tensors[after.outputs[0]].quant != edit.tensors[name].quant:
            return found[:passed], best
        taken = _moved(edit, after)
        assert taken is not None
        goes_to = np.empty(taken.size, np.int64)
        goes_to[taken.reshape(-1)] = np.arange(taken.size)
        places = goes_to[places]
        (name,) = after.outputs
        found.append(after)
        rows = rows_of(places.reshape(heads))
        if rows is not None:
            best, passed = Operand(name, rows), len(found)
