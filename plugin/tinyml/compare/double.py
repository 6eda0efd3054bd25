# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A float model in double precision: how far float32 takes it from the real numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace

import numpy as np

from tinyml.compare.difference import FLOAT_TOLERANCE, Tolerance, compare
from tinyml.ir import Array, DType, Graph, Node, Op, Tensor
from tinyml.ir.interpreter import interpret

ROUNDING = float(np.finfo(np.float32).eps)
"""What one layer may add, relative to its largest value."""

SPREAD = 4
"""Sums in another order are off by more or less: numpy and onnxruntime add in blocks, the C one by one."""


def limit(graph: Graph, samples: Sequence[Mapping[str, Array]]) -> float:
    """How far a float32 output may be from the reference's, relative to its largest value.

    Each of the two is a rounding per layer away from the real result. How much the model enlarges these
    errors is measured: the same graph in float32 and in double precision. The reference's own distance from
    the latter would not do, for it is large as well where an operator is read wrongly.
    """
    least = max(FLOAT_TOLERANCE, ROUNDING * _depth(graph))
    exact = _outputs(graph, samples)
    if exact is None:
        return least
    own = 0.0
    for wanted, values in zip(exact, interpret(graph, samples), strict=True):
        for name, real in zip(graph.outputs, wanted, strict=True):
            if real.dtype.kind == "f":
                own = max(own, compare(values[name], real, None, Tolerance()).distance)
    return max(least, SPREAD * own) if np.isfinite(own) else least


def _depth(graph: Graph) -> int:
    """The longest chain of layers."""
    depths: dict[str, int] = {}
    for node in graph.nodes:
        before = max((depths.get(name, 0) for name in node.inputs), default=0)
        depths.update(dict.fromkeys(node.outputs, before + 1))
    return max(depths.values(), default=0)


def _outputs(graph: Graph, samples: Sequence[Mapping[str, Array]]) -> list[list[Array]] | None:
    """None for a model that is not float throughout, or has an operator without this precision."""
    if any(tensor.quant is not None for tensor in graph.tensors.values()):
        return None
    wide = replace(
        graph,
        tensors={name: _wide(tensor) for name, tensor in graph.tensors.items()},
        nodes=tuple(Node(n.name, _wide_op(n.op), n.inputs, n.outputs) for n in graph.nodes),
        states=tuple(
            replace(s, initial=None if s.initial is None else _wide_array(s.initial)) for s in graph.states
        ),
    )
    try:
        runs = interpret(wide, [{name: _wide_array(x) for name, x in sample.items()} for sample in samples])
    except (ArithmeticError, AssertionError, KeyError, TypeError, ValueError):
        return None
    return [[values[name] for name in graph.outputs] for values in runs]


def _wide(tensor: Tensor) -> Tensor:
    if tensor.dtype is not DType.FLOAT32:
        return tensor
    if tensor.data is not None:
        return Tensor.constant(tensor.name, _wide_array(tensor.data))
    return replace(tensor, dtype=DType.FLOAT64)


def _wide_array(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype == np.float32 else array


def _wide_op(op: Op) -> Op:
    """Casts to float32 become casts to double."""
    if not is_dataclass(op):
        return op
    changes = {field.name: DType.FLOAT64 for field in fields(op) if getattr(op, field.name) is DType.FLOAT32}
    return replace(op, **changes) if changes else op
