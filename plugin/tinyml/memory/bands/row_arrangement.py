# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arranged: an input that the application feeds in rows, in the order of the layer that reads it.

ONNX models have channels first and transpose their input. The application feeds the elements in the order
after that transposition, so nothing is left to do: this operator only states the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Graph, Layer, Node, Op, Shape, Tensor, TensorType, View, given
from tinyml.ir.row_order import RowOrder
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.shared.operands import present


@dataclass(frozen=True)
class Arranged(Op):
    """x, which arrives in another order than the model file states."""

    operands = (present(1),)
    movement: ClassVar[bool] = True
    order: RowOrder
    shape: Shape

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (replace(given(inputs, 0).type, shape=self.shape),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (self.order.arranged(given(inputs, 0)).reshape(self.shape),)

    def views(self, layer: Layer) -> tuple[View, ...]:
        return (View(layer.output.name, layer.input(0).name),)


class InOrder(Kernel[Arranged]):
    """Nothing: the application feeds the elements in this order."""

    name = "rows in their order"

    def emit(self, layer: Layer[Arranged], sheet: Sheet) -> None:
        raise NotImplementedError("it shares the memory of the input")


register_kernels(Arranged, InOrder())


def with_arrangement(graph: Graph, moves: Sequence[Node]) -> Graph:
    """The graph with ``moves``, the layers that read the input first, replaced by the order of its rows.

    They stay if they only reshape the input, or if they do more than give its axes another order.
    """
    (name,) = graph.inputs
    x = graph.tensors[name]
    places = np.arange(x.elements).reshape(x.shape)
    for node in moves:
        (places,) = node.op.evaluate(graph.layer(node), [places])
    if not moves or np.array_equal(places.reshape(-1), np.arange(x.elements)):
        return graph
    order = order_between(places, x.shape)
    if order is None:
        return graph
    last = moves[-1]
    arranged = replace(last, op=Arranged(order, places.shape), inputs=(name,))
    nodes = [arranged if node is last else node for node in graph.nodes if node not in moves[:-1]]
    return graph.with_nodes(nodes, [])


def row_order(graph: Graph) -> RowOrder | None:
    """The order in which the input of a model arrives; None if it is that of the model file."""
    return next((node.op.order for node in graph.nodes if isinstance(node.op, Arranged)), None)


def order_between(places: Array, shape: Shape) -> RowOrder | None:
    """The order in which ``places`` has the numbers of the elements of an input of ``shape``.

    None if it is more than another order of axes. Axes of 1 keep their order among themselves.
    """
    extents = places.shape
    long = [axis for axis, extent in enumerate(extents) if extent > 1]
    steps = {axis: int(places.take(1, axis).flat[0]) for axis in long}
    expected = np.zeros(extents, np.int64)
    for axis, step in steps.items():
        expected += np.expand_dims(
            np.arange(extents[axis]) * step, [i for i in range(places.ndim) if i != axis]
        )
    if not np.array_equal(expected, places):
        return None
    by_step = sorted(long, key=lambda axis: -steps[axis])  # the axes in the order of the input
    own = [axis for axis, extent in enumerate(shape) if extent > 1]
    if [shape[axis] for axis in own] != [extents[axis] for axis in by_step]:  # it splits or joins axes
        others = [axis for axis, extent in enumerate(extents) if extent == 1]
        return RowOrder(extents, tuple([*others, *by_step].index(axis) for axis in range(places.ndim)))
    source = dict(zip(by_step, own, strict=True))
    if len(shape) == len(extents):
        units = iter([axis for axis, extent in enumerate(shape) if extent == 1])
        axes = tuple(source[axis] if axis in source else next(units) for axis in range(places.ndim))
    else:
        moved = iter([source[axis] for axis in long])
        axes = tuple(next(moved) if axis in own else axis for axis in range(len(shape)))
    return RowOrder(tuple(shape[axis] for axis in axes), axes)
