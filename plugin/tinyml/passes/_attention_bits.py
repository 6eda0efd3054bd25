# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Tensors each of whose elements depends on one bit, or a few: exporters make masks of bits in many ways.

What computes the tensor is evaluated for each value of the bits instead of being recognised, so the way does
not matter; which bit decides about an element is found by moving the numbers of bits in their place.
"""

from __future__ import annotations

import enum
import itertools

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Node, Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.where import Where
from tinyml.passes.editor import Editor

MOST_BITS = 2
MOST_NODES = 64
MOST_ELEMENTS = 1 << 22
"""Of a tensor."""


class Reach(enum.Enum):
    """Where bits are looked for."""

    TRUTHS = enum.auto()  # tensors of bool that are computed from others than bool
    INPUTS = enum.auto()  # inputs of the model, whose numbers are taken to be zeros and ones
    NEAREST = enum.auto()  # the last tensors of bool


@dataclass(frozen=True)
class Cases:
    """The elements of a tensor for each combination of its bits, which count from the first one up.

    A bit is an element of another tensor, of which the number is at the place of the element that it decides.
    """

    bits: tuple[tuple[str, Array], ...]
    values: tuple[Array, ...]


def cases_of(edit: Editor, name: str, reach: Reach) -> Cases | None:
    """None if an element depends on anything else, or on more than a few bits."""
    return _Walk(edit, reach).cases(name)


class _Walk:
    def __init__(self, edit: Editor, reach: Reach) -> None:
        self._edit = edit
        self._reach = reach
        self._found: dict[str, Cases | None] = {}
        self._states = {state.tensor for state in edit.states}

    def cases(self, name: str) -> Cases | None:
        if name not in self._found:
            within = len(self._found) <= MOST_NODES
            self._found[name] = self._cases(self._edit.tensors[name]) if within else None
        return self._found[name]

    def _cases(self, tensor: Tensor) -> Cases | None:
        if tensor.data is not None:
            return Cases((), (tensor.data,))
        if not 0 < tensor.elements <= MOST_ELEMENTS:
            return None
        node = self._edit.producer(tensor.name)
        if tensor.dtype is DType.BOOL:
            further = node is not None and self._reach is not Reach.NEAREST
            return (self._through(node) if further and node is not None else None) or _bits(tensor)
        if node is not None:
            return self._through(node)
        own = tensor.quant is None and tensor.name not in self._states
        return _bits(tensor) if own and self._reach is Reach.INPUTS else None

    def _through(self, node: Node) -> Cases | None:
        if len(node.outputs) != 1:
            return None
        layer = self._edit.layer(node)
        if _compares(layer):  # numbers that are compared are not only zeros and ones
            return None
        if node.op.movement:
            return self._moved(node, layer)
        if not (node.op.elementwise or isinstance(node.op, Where)) or "" in node.inputs:
            return None
        operands = [self.cases(name) for name in node.inputs]
        found = [operand for operand in operands if operand is not None]
        return _combined(layer, found) if len(found) == len(operands) else None

    def _moved(self, node: Node, layer: Layer) -> Cases | None:
        others = [None if t is None else t.data for t in layer.inputs[1:]]
        missing = [
            t for t, data in zip(layer.inputs[1:], others, strict=True) if t is not None and data is None
        ]
        inner = self.cases(node.inputs[0])
        if inner is None or missing:
            return None

        def moved(array: Array) -> Array:
            return np.asarray(node.op.evaluate(layer, [array, *others])[0])

        bits = tuple((name, moved(numbers)) for name, numbers in inner.bits)
        return Cases(bits, tuple(moved(values) for values in inner.values))


def _compares(layer: Layer) -> bool:
    truth = layer.output.dtype is DType.BOOL and isinstance(layer.op, Binary)
    return truth and any(t is not None and t.dtype is not DType.BOOL for t in layer.inputs)


def _bits(tensor: Tensor) -> Cases:
    numbers = np.arange(tensor.elements).reshape(tensor.shape)
    zeros = np.zeros(tensor.shape, tensor.dtype.numpy)
    return Cases(((tensor.name, numbers),), (zeros, np.ones_like(zeros)))


def _combined(layer: Layer, operands: list[Cases]) -> Cases | None:
    """The result of a function of the elements at each place."""
    shape = layer.output.shape
    bits: list[tuple[str, Array]] = []
    places: list[list[int]] = []  # of the bits of each operand
    for operand in operands:
        places.append([])
        for name, own in operand.bits:
            numbers = np.broadcast_to(own, shape)
            same = [i for i, (n, other) in enumerate(bits) if n == name and np.array_equal(numbers, other)]
            places[-1].append(same[0] if same else len(bits))
            if not same:
                bits.append((name, numbers))
    if len(bits) > MOST_BITS:
        return None
    values = []
    for choice in itertools.product((0, 1), repeat=len(bits)):
        chosen = choice[::-1]  # the first bit changes first
        arrays = [
            operand.values[sum(chosen[place] << i for i, place in enumerate(own))]
            for operand, own in zip(operands, places, strict=True)
        ]
        with np.errstate(all="ignore"):
            values.append(np.broadcast_to(layer.computed(arrays)[0], shape))
    return Cases(tuple(bits), tuple(values))
