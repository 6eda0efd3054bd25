# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators along axes: loops over the axes that stay, and inside them loops over the reduced axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Constraint, Layer, Op, Shape, Tensor
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.framework.reading import Builder, OnnxNode
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axis import from_front
from tinyml.ops.shared.operands import axis_exists, present


@dataclass(frozen=True)
class AlongAxis(Op):
    """An operator along one axis, which is counted from the front."""

    operands: ClassVar[tuple[Constraint, ...]] = (present(1), axis_exists)
    axis: int = 0

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return replace(self, axis=perm.index(self.axis))


def normalized(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, in order, each once."""
    return tuple(sorted({from_front(axis, max(rank, 1)) for axis in axes}))


def onnx_axis(node: OnnxNode, rank: int, default: int) -> int:
    """The attribute ``axis``, counted from the front."""
    return normalized([int(node.attr("axis", default))], rank)[0]


def flattened_before_13(node: OnnxNode, build: Builder, apply: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Softmax and related operators: one axis since opset 13; before that, all axes from this one on."""
    x = node.input(0)
    rank = len(x.shape)
    if node.opset >= 13:
        return apply(x, onnx_axis(node, rank, -1))
    axis = onnx_axis(node, rank, 1) if rank > 1 else 0
    if axis == rank - 1:
        return apply(x, axis)
    rows = count(x.shape, range(axis))
    flat = build.add1(Reshape((rows, count(x.shape, range(axis, rank)))), [x])
    return build.add1(Reshape(x.shape), [apply(flat, 1)])


def kept_shape(shape: Shape, axes: Sequence[int]) -> Shape:
    """``shape`` with extent 1 along ``axes``."""
    return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))


def count(shape: Shape, axes: Sequence[int]) -> int:
    """The number of elements that are reduced to one."""
    total = 1
    for axis in axes:
        total *= shape[axis]
    return total


@dataclass(frozen=True)
class Split:
    """Loop nests over a tensor: the outer ones over the axes that stay, the inner ones over ``axes``."""

    shape: Shape
    axes: tuple[int, ...]

    def outer(self) -> c.Nest:
        """Operands: ``x`` the tensor itself, ``y`` the same with extent 1 along the axes."""
        kept = kept_shape(self.shape, self.axes)
        return c.nest(
            kept, {"x": c.Walk(c.contiguous(self.shape)), "y": c.Walk(c.contiguous(kept))}, prefix="i"
        )

    def inner(self) -> c.Nest:
        stays = [axis for axis in range(len(self.shape)) if axis not in self.axes]
        return c.nest(kept_shape(self.shape, stays), {"x": c.Walk(c.contiguous(self.shape))}, prefix="k")

    def at(self, base: c.Operand, step: c.Operand) -> c.Expr:
        """The index of an element ``step`` steps along the axis, where there is one, from ``base``."""
        (axis,) = self.axes
        stride = c.contiguous(self.shape)[axis]
        return c.Expr(base) + c.Expr(step) * stride


@contextmanager
def inner_loop(sheet: Sheet, split: Split, base: c.Operand) -> Iterator[c.Expr]:
    """One pass over the gathered elements; yields the index of the element, ``base`` included."""
    with sheet.loops(split.inner()) as index:
        yield c.Expr(base) + index["x"]
