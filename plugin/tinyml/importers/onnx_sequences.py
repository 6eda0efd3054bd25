# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sequences of ONNX whose number of tensors is known: only their tensors are left in the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Tensor
from tinyml.ops.concat import Concat
from tinyml.ops.framework.reading import MALFORMED, Builder
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axis import from_front
from tinyml.ops.slice import split

Tensors = tuple[Tensor, ...]


@dataclass(frozen=True)
class SequenceNode:
    """A node that makes or reads a sequence; an operand is a tensor, a sequence or absent."""

    op_type: str
    name: str
    operands: Sequence[Tensor | Tensors | None]
    attributes: Mapping[str, Any]

    def sequence(self, index: int) -> Tensors:
        operand = self.operands[index] if index < len(self.operands) else None
        if not isinstance(operand, tuple):
            raise ModelError(f"{self.op_type} node {self.name!r}: input {index} is not a sequence", MALFORMED)
        return operand

    def tensor(self, index: int) -> Tensor:
        operand = self.operands[index] if index < len(self.operands) else None
        if not isinstance(operand, Tensor):
            raise ModelError(f"{self.op_type} node {self.name!r}: input {index} is not a tensor", MALFORMED)
        return operand

    def has(self, index: int) -> bool:
        return index < len(self.operands) and self.operands[index] is not None

    def place(self, index: int, count: int, last: int) -> int:
        """A position in a sequence of ``count`` tensors, up to ``last``; negative ones count from the end."""
        tensor = self.tensor(index)
        if tensor.data is None:
            raise UnsupportedError(
                f"{self.op_type} node {self.name!r}: the position {tensor.name!r} must be a constant",
                "export the model with positions that are known, or with Slice and Gather on a tensor",
            )
        place = int(tensor.data.reshape(-1)[0])
        if not -count <= place <= last:
            raise ModelError(f"{self.op_type} node {self.name!r}: there is no position {place}", MALFORMED)
        return place + count if place < 0 else place


def _split(node: SequenceNode, build: Builder) -> Tensors:
    x = node.tensor(0)
    axis = from_front(int(node.attributes.get("axis", 0)), len(x.shape))
    size = x.shape[axis]
    if build.counted.get(x.name) is not None and build.counted[x.name].axis == axis:
        raise UnsupportedError(
            f"SplitToSequence node {node.name!r}: the number of parts is known at run time alone",
            "export the model with fixed shapes",
        )
    if not node.has(1):
        parts = split(build, x, axis, [1] * size)
        if node.attributes.get("keepdims", 1):
            return tuple(parts)
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        return tuple(build.add1(Reshape(shape), [part]) for part in parts)
    wanted = node.tensor(1)
    if wanted.data is None:
        raise UnsupportedError(
            f"SplitToSequence node {node.name!r}: the sizes {wanted.name!r} must be a constant",
            "export the model with fixed shapes",
        )
    sizes = [int(n) for n in wanted.data.reshape(-1)]
    if wanted.shape == ():
        step = sizes[0]
        if step < 1:
            raise ModelError(f"SplitToSequence node {node.name!r}: a size of {step}", MALFORMED)
        sizes = [min(step, size - start) for start in range(0, size, step)]
    return tuple(split(build, x, axis, sizes))


def _concat(node: SequenceNode, build: Builder) -> Tensor:
    parts: Sequence[Tensor] = node.sequence(0)
    if not parts:
        raise ModelError(f"ConcatFromSequence node {node.name!r}: the sequence is empty", MALFORMED)
    rank = len(parts[0].shape)
    if node.attributes.get("new_axis", 0):
        axis = from_front(int(node.attributes["axis"]), rank + 1)
        parts = [build.add1(Reshape((*p.shape[:axis], 1, *p.shape[axis:])), [p]) for p in parts]
    else:
        axis = from_front(int(node.attributes["axis"]), rank)
    return parts[0] if len(parts) == 1 else build.add1(Concat(axis), list(parts))


def _construct(node: SequenceNode, build: Builder) -> Tensors:
    return tuple(node.tensor(i) for i in range(len(node.operands)))


def _empty(node: SequenceNode, build: Builder) -> Tensors:
    return ()


def _insert(node: SequenceNode, build: Builder) -> Tensors:
    held = node.sequence(0)
    place = node.place(2, len(held), len(held)) if node.has(2) else len(held)
    return (*held[:place], node.tensor(1), *held[place:])


def _erase(node: SequenceNode, build: Builder) -> Tensors:
    held = node.sequence(0)
    last = len(held) - 1
    place = node.place(1, len(held), last) if node.has(1) else last
    return (*held[:place], *held[place + 1 :])


def _at(node: SequenceNode, build: Builder) -> Tensor:
    held = node.sequence(0)
    return held[node.place(1, len(held), len(held) - 1)]


def _length(node: SequenceNode, build: Builder) -> Tensor:
    return build.constant(np.array(len(node.sequence(0)), np.int64))


READERS: dict[str, Callable[[SequenceNode, Builder], Tensor | Tensors]] = {
    "SplitToSequence": _split,
    "ConcatFromSequence": _concat,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceAt": _at,
    "SequenceLength": _length,
}
"""The operators that are resolved here. ``Identity`` passes a sequence on, too."""


def read(node: SequenceNode, build: Builder) -> Tensor | Tensors:
    """What a node gives: a tensor, or the tensors of a sequence."""
    if node.op_type == "Identity":
        return node.sequence(0)
    if node.op_type not in READERS:
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} reads a sequence",
            "sequences are split, indexed and joined: export the model with tensors elsewhere",
        )
    return READERS[node.op_type](node, build)
