# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Generated inputs, for when the user provides none."""

from __future__ import annotations

import numpy as np

from tinyml.datasets.arrays import pattern
from tinyml.ir import Array, DType, Graph, Node, Tensor

SEED = 20240229


def generated(graph: Graph, count: int) -> list[dict[str, Array]]:
    """A fixed pattern, then uniform, narrow and extreme values in turn; always the same ones."""
    random = np.random.default_rng(SEED)
    tensors = [graph.tensors[name] for name in graph.inputs]
    return [
        {t.name: _values(t, input_range(graph, t), index, random) for t in tensors} for index in range(count)
    ]


def _values(tensor: Tensor, limits: tuple[float, float], index: int, random: np.random.Generator) -> Array:
    low, high = limits
    kind = index % 4
    if kind == 0 and (low, high) == _default_range(tensor):
        return pattern(tensor)
    if kind in (0, 1):
        values = random.uniform(low, high, tensor.shape)
    elif kind == 2:
        values = np.clip(random.normal((low + high) / 2, (high - low) / 16, tensor.shape), low, high)
    else:
        values = random.choice([low, high], tensor.shape)
    if tensor.dtype is DType.BOOL:
        return np.asarray(values > (low + high) / 2)
    values = values if tensor.dtype.is_float else np.rint(values)
    return np.asarray(values, tensor.dtype.numpy)  # an array without axes too, where numpy gives a number


def input_range(graph: Graph, tensor: Tensor) -> tuple[float, float]:
    """The range of an input: from its quantisation, from what an operator tells apart, or from its type.

    What reads an input itself comes before what reads numbers computed from it: an index may be in range, and
    the index after it not.
    """
    own = _range_at_readers(graph, tensor, through_arithmetic=False)
    found = own or _range_at_readers(graph, tensor, through_arithmetic=True)
    return found or _default_range(tensor)


def _range_at_readers(graph: Graph, tensor: Tensor, through_arithmetic: bool) -> tuple[float, float] | None:
    readers = graph.consumers()
    followed = [(tensor.name, node) for node in readers.get(tensor.name, [])]
    while followed:
        name, node = followed.pop()
        y = graph.tensors[node.outputs[0]]
        if (told := _told_apart(graph, node, name)) is not None:
            return told
        further = through_arithmetic and _is_index_arithmetic(graph, node, name)
        if node.op.movement or node.op.kind == "Cast" or further:
            followed += [(y.name, reader) for reader in readers.get(y.name, [])]
        quant = y.quant
        if tensor.dtype.is_float and quant is not None and not quant.per_channel:
            low, high = ((limit - quant.zero_point) * quant.scale for limit in y.dtype.limits)
            return low, high
    return None


def _is_index_arithmetic(graph: Graph, node: Node, name: str) -> bool:
    """Whether integers go through that may become indices: Keras adds rows to those below 0."""
    types = (graph.tensors[name], graph.tensors[node.outputs[0]])
    if any(tensor.dtype.is_float or tensor.dtype is DType.BOOL or tensor.quant for tensor in types):
        return False
    return node.op.kind == "Binary" or (node.op.kind == "Where" and name != node.inputs[0])


def _told_apart(graph: Graph, node: Node, name: str) -> tuple[float, float] | None:
    """The integers that a node has a meaning for, if the tensor is such an operand."""
    for index, operand in enumerate(node.inputs):
        found = node.op.told_apart(graph.layer(node), index) if operand == name else None
        if found is not None:
            return float(found[0]), float(found[1])
    return None


def _default_range(tensor: Tensor) -> tuple[float, float]:
    if tensor.dtype.is_float:
        return -1.0, 1.0
    if tensor.dtype is DType.BOOL:
        return 0.0, 1.0
    low, high = tensor.dtype.limits
    return float(max(low, -128)), float(min(high, 255))
