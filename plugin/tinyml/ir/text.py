# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The text form of a graph: for ``--dump-ir``, tests and bug reports. ``text_parser`` reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tinyml.ir import DType, Graph, Node, Op, Quant, Tensor

FEW = 8
"""Longer constants and scales are not printed."""


def dump(graph: Graph) -> str:
    """One line per input and state, one per node, one per output."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    """A graph inside an operator comes below its node, up to a line ``end``."""
    yield f"graph {graph.name}"
    for name in graph.inputs:
        yield f"  input {_typed(graph.tensors[name])}"
    for state in graph.states:
        yield f"  state {_typed(graph.tensors[state.tensor])} <- {state.update}"
    for node in graph.nodes:
        yield f"  {_node(graph, node)}"
        if node.op.inner_graph is not None:
            yield from (f"    {line}" for line in (*_lines(node.op.inner_graph), "end"))
    for name in graph.outputs:
        yield f"  output {name}"


def _node(graph: Graph, node: Node) -> str:
    results = ", ".join(_typed(graph.tensors[name]) for name in node.outputs)
    operands = ", ".join(_operand(graph.tensors[name]) if name else "-" for name in node.inputs)
    attributes = ", ".join(f"{k}={v}" for k, v in attribute_texts(node.op).items())
    return f"{results} = {node.op.kind}({operands}" + (f"; {attributes})" if attributes else ")")


def attribute_texts(op: Op) -> dict[str, str]:
    """The attributes of an operator by name, as they are printed."""
    return {name: _value(value) for name, value in op.attributes().items()}


def _operand(tensor: Tensor) -> str:
    if not tensor.is_constant:
        return tensor.name
    if tensor.elements > FEW:
        return f"const {_type(tensor)}"
    values = " ".join(f"{v:.9g}" if tensor.dtype.is_float else str(v) for v in tensor.value.reshape(-1))
    return f"const {_type(tensor)} {{{values}}}"


def _typed(tensor: Tensor) -> str:
    return f"{tensor.name}: {_type(tensor)}"


def _type(tensor: Tensor) -> str:
    shape = "x".join(str(extent) for extent in tensor.shape) or "scalar"
    return f"{tensor.dtype.value}[{shape}]{_quant(tensor.quant)}"


def _quant(quant: Quant | None) -> str:
    if quant is None:
        return ""
    if quant.per_channel and len(quant.scales) > FEW:
        return f" q(axis {quant.axis}, {len(quant.scales)} scales)"
    if quant.per_channel:
        scales, zeros = " ".join(f"{s:.9g}" for s in quant.scales), " ".join(map(str, quant.zero_points))
        return f" q(axis {quant.axis}, {scales}, {zeros})"
    return f" q({quant.scale:.9g}, {quant.zero_point})"


def _value(value: Any) -> str:
    if isinstance(value, DType):
        return value.value
    if isinstance(value, Quant):
        return _quant(value).strip()
    if isinstance(value, tuple):
        return "x".join(str(item) for item in value)
    return str(value)
