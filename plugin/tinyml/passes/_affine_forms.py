# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Tensors as sums of matrices times other tensors, and functions of such sums: the gates of recurrent cells.

Exporters split, join, reshape and add these sums in many ways. Here only the numbers matter: every element
of a gate is a row of each matrix, however it was moved. In a batch, every sample has the same rows.
"""

from __future__ import annotations

import math

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Graph, Layer, Node, Tensor
from tinyml.ops.concat import Concat
from tinyml.ops.dense.dense import Dense
from tinyml.ops.dense.matmul import MatMul
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.quant import dequantize

MOST_ELEMENTS = 4096
"""Of a tensor that is looked at; gates are smaller."""

DEEPEST = 100
"""Operations from a gate to the products it adds up; a long chain of additions is no gate."""

UNLIMITED = (-math.inf, math.inf)


@dataclass(frozen=True)
class Affine:
    """The sum of matrix times operand, for each operand by name, and ``bias``: what one sample has.

    ``batch`` samples follow each other in each operand and in the result. A constant is one sample.
    """

    matrices: dict[str, Array]
    bias: Array
    batch: int = 1

    def __add__(self, other: Affine) -> Affine:
        joined = dict(self.matrices)
        for name, matrix in other.matrices.items():
            joined[name] = joined[name] + matrix if name in joined else matrix
        return Affine(joined, self.bias + other.bias, self.batch)

    def __neg__(self) -> Affine:
        return Affine({name: -matrix for name, matrix in self.matrices.items()}, -self.bias, self.batch)

    @property
    def elements(self) -> int:
        """Of all samples."""
        return self.batch * self.bias.size

    def taken(self, numbers: Array) -> Affine | None:
        """The elements with these numbers; None if samples mix or differ in what is taken of them."""
        rows = _of_each_sample(numbers, self.batch, self.bias.size)
        if rows is None:
            return None
        matrices = {name: matrix[rows] for name, matrix in self.matrices.items()}
        return Affine(matrices, self.bias[rows], self.batch)

    def for_samples(self, batch: int, size: int) -> Affine | None:
        """A constant as ``batch`` samples of ``size`` elements, if it adds the same to all of them."""
        if self.bias.size == 1:
            return Affine({}, np.broadcast_to(self.bias, (size,)), batch)
        if self.bias.size == batch * size:
            rows = self.bias.reshape(batch, size)
            return Affine({}, rows[0], batch) if np.array_equal(rows, np.tile(rows[0], (batch, 1))) else None
        return Affine({}, self.bias, batch) if self.bias.size == size else None


def _of_each_sample(numbers: Array, batch: int, size: int) -> Array | None:
    """Which of its ``size`` elements every sample gives, from the numbers of the elements of all samples."""
    if numbers.size % batch:
        return None
    rows = numbers.reshape(batch, -1) - size * np.arange(batch)[:, np.newaxis]
    alike = np.array_equal(rows, np.tile(rows[0], (batch, 1)))
    return rows[0] if alike and np.all((rows[0] >= 0) & (rows[0] < size)) else None


@dataclass(frozen=True)
class Gate:
    """A function of each element of a sum."""

    function: str
    of: Affine


class Forms:
    """Finds such forms in a graph."""

    def __init__(self, graph: Graph) -> None:
        self.tensors = graph.tensors
        self.producers = graph.producers()
        self._affine: dict[str, Affine | None] = {}
        self._depth = 0

    def root(self, name: str) -> str:
        """The tensor that ``name`` has the elements of, in another shape."""
        node = self.producers.get(name)
        while node is not None and isinstance(node.op, Reshape):
            name = node.inputs[0]
            node = self.producers.get(name)
        return name

    def maker(self, name: str) -> Node | None:
        return self.producers.get(self.root(name))

    def operands(self, name: str, function: str) -> tuple[str, str] | None:
        """The operands of an unlimited Binary, as they are before they are reshaped."""
        node = self.maker(name)
        if node is None or not isinstance(node.op, Binary) or node.op.function != function:
            return None
        if node.op.clamp != UNLIMITED:
            return None
        first, second = node.inputs
        return self.root(first), self.root(second)

    def argument(self, name: str, function: str) -> str | None:
        """What a function is applied to."""
        node = self.maker(name)
        if node is None or not isinstance(node.op, Unary) or node.op.function != function:
            return None
        return self.root(node.inputs[0])

    def is_zero(self, name: str) -> bool:
        data = self.tensors[name].data
        return data is not None and not np.any(data)

    def gate(self, name: str) -> Gate | None:
        """Elements of a function of a sum."""
        numbers = np.arange(self.tensors[name].elements)
        node = self.producers.get(name)
        while node is not None and (taken := self.moved(node)) is not None:
            numbers = taken.reshape(-1)[numbers]
            node = self.producers.get(node.inputs[0])
        if node is None or not isinstance(node.op, Unary) or node.op.function not in ("sigmoid", "tanh"):
            return None
        of = self.affine(node.inputs[0])
        part = None if of is None else of.taken(numbers)
        return None if part is None else Gate(node.op.function, part)

    def moved(self, node: Node) -> Array | None:
        """The numbers of the elements of input 0 that are the outputs of a node that only moves them."""
        source = self.tensors[node.inputs[0]] if node.inputs and node.inputs[0] else None
        others = [self.tensors[name].data for name in node.inputs[1:] if name]
        if source is None or not node.op.movement or len(node.outputs) != 1:
            return None
        if source.is_constant or any(data is None for data in others):
            return None
        numbers = np.arange(source.elements).reshape(source.shape)
        (taken,) = node.op.evaluate(Layer.of(node, self.tensors), [numbers, *others])
        return taken

    def affine(self, name: str) -> Affine | None:
        """A sum with at least one matrix, or a constant; None for everything else."""
        if name not in self._affine:
            self._depth += 1
            self._affine[name] = self._find(self.tensors[name]) if self._depth <= DEEPEST else None
            self._depth -= 1
        return self._affine[name]

    def _find(self, tensor: Tensor) -> Affine | None:
        if tensor.dtype is not DType.FLOAT32 or tensor.quant is not None or tensor.elements > MOST_ELEMENTS:
            return None
        if tensor.data is not None:
            return Affine({}, tensor.value.reshape(-1).astype(np.float64))
        node = self.producers.get(tensor.name)
        if node is None:
            return None
        if isinstance(node.op, (Dense, MatMul)):
            return self._product(node)
        if isinstance(node.op, Binary):
            return self._sum(node, tensor)
        taken = self.moved(node)
        inner = self.affine(node.inputs[0]) if taken is not None else None
        return None if inner is None or taken is None else inner.taken(taken.reshape(-1))

    def _sum(self, node: Node, output: Tensor) -> Affine | None:
        if node.op.function != "add" or node.op.clamp != UNLIMITED:  # type: ignore[attr-defined]
            return None
        parts = [self.affine(name) for name in node.inputs]
        first, second = parts
        if first is None or second is None:
            return None
        if not first.matrices:
            first, second = second, first
        if first.elements != output.elements:
            return None
        if not second.matrices:
            given = self.tensors[node.inputs[parts.index(second)]].shape
            spread = np.broadcast_to(second.bias.reshape(given), output.shape)
            constant = Affine({}, spread.reshape(-1)).for_samples(first.batch, first.bias.size)
            return None if constant is None else first + constant
        return first + second if _alike(first, second) else None

    def _product(self, node: Node) -> Affine | None:
        """Samples times constant weights: each row is one."""
        x, weights = (self.tensors[name] for name in node.inputs[:2])
        if weights.data is None or len(weights.shape) != 2 or x.dtype is not DType.FLOAT32:
            return None
        matrix = _real(weights) if isinstance(node.op, Dense) else _real(weights).T
        size, width = matrix.shape
        batch, rest = divmod(x.elements, width) if width else (0, 1)
        if rest or not batch or x.is_constant:
            return None
        product = Affine(self._columns(self.root(x.name), matrix, batch), np.zeros(size), batch)
        if isinstance(node.op, Dense):
            if node.op.clamp != UNLIMITED:
                return None
            if len(node.inputs) > 2 and node.inputs[2]:
                given = self.affine(node.inputs[2])
                bias = given if given is None or given.matrices else given.for_samples(batch, size)
                return product + bias if bias is not None and _alike(product, bias) else None
        return product

    def _columns(self, name: str, matrix: Array, batch: int) -> dict[str, Array]:
        """The matrix of each part of an operand that joins several; none for zeros, as a first state is."""
        node = self.producers.get(name)
        if node is None or not isinstance(node.op, Concat):
            return {name: matrix}
        found: dict[str, Array] = {}
        start = 0
        output = self.tensors[name]
        if math.prod(output.shape[: node.op.axis]) != batch:
            return {name: matrix}
        for part in node.inputs:
            end = start + self.tensors[part].elements // batch
            inner, piece = self.root(part), matrix[:, start:end]
            start = end
            if not self.is_zero(inner):
                found[inner] = found[inner] + piece if inner in found else piece
        return found


def _alike(first: Affine, second: Affine) -> bool:
    """Both have as many samples of as many elements."""
    return (first.batch, first.bias.size) == (second.batch, second.bias.size)


def _real(weights: Tensor) -> Array:
    """Constant weights as real numbers; of bytes, the products with their scales."""
    return weights.value if weights.quant is None else dequantize(weights.value, weights.quant)
