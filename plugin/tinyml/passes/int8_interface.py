# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Let the application exchange integers with a quantised model whose interface is float.

Not one of ``PASSES``: it changes the interface, so that the user asks for it (``io: int8``).
"""

from __future__ import annotations

from dataclasses import replace

from tinyml.base.errors import ConfigError
from tinyml.ir import Graph, Node, Tensor
from tinyml.ops.quantization.quantize import Dequantize, Quantize


def int8_interface(graph: Graph) -> Graph:
    """Inputs that are only quantised, and outputs that are only dequantised, become the integers themselves.

    They keep their names. Raises ConfigError if there is no such input or output.
    """
    inner: dict[str, str] = {}  # tensor of integers -> input or output that it becomes
    gone: set[int] = set()
    for port, nodes in (*_inputs(graph), *_outputs(graph)):
        names = {name for node in nodes for name in _integers(node)}
        if not names & inner.keys():
            inner |= dict.fromkeys(names, port)
            gone |= {id(node) for node in nodes}
    ports = (*graph.inputs, *graph.outputs)
    left = [name for name in ports if graph.tensors[name].dtype.is_float and name not in inner.values()]
    if not inner:
        found = ", ".join(f"{name} ({graph.tensors[name].dtype.value})" for name in ports)
        raise ConfigError(
            f"no input or output can become int8: {found}",
            "io int8 is for quantised models with a float interface; quantise a float model first",
        )
    nodes = [_renamed(node, inner) for node in graph.nodes if id(node) not in gone]
    new = [Tensor.of(port, graph.tensors[name].type) for name, port in inner.items()]
    notes = [f"io int8: {', '.join(left)} stays float, because float layers use it"] if left else []
    return replace(graph.with_nodes(nodes, new), notes=(*graph.notes, *notes))


def _integers(node: Node) -> tuple[str, ...]:
    return node.outputs if isinstance(node.op, Quantize) else node.inputs[:1]


def _renamed(node: Node, inner: dict[str, str]) -> Node:
    inputs = tuple(inner.get(name, name) for name in node.inputs)
    outputs = tuple(inner.get(name, name) for name in node.outputs)
    return replace(node, inputs=inputs, outputs=outputs)


def _inputs(graph: Graph) -> list[tuple[str, list[Node]]]:
    """Float inputs that are read by quantisation alone, and only to one type, with its nodes."""
    readers, kept = graph.consumers(), graph.kept()
    found = []
    for name in graph.inputs:
        nodes = readers[name]
        types = {_type(graph.tensors[node.outputs[0]]) for node in nodes}
        plain = all(isinstance(node.op, Quantize) and node.outputs[0] not in kept for node in nodes)
        if name not in kept and plain and len(types) == 1 and None not in types:
            found.append((name, nodes))
    return found


def _outputs(graph: Graph) -> list[tuple[str, list[Node]]]:
    """Outputs that are dequantised from a tensor that is computed and not kept, with that node."""
    producers, readers, kept = graph.producers(), graph.consumers(), graph.kept()
    updates = {state.update for state in graph.states}
    found = []
    for name in graph.outputs:
        node = producers.get(name)
        if node is None or not isinstance(node.op, Dequantize) or readers[name] or name in updates:
            continue
        source = node.inputs[0]
        if source in producers and source not in kept and _type(graph.tensors[source]) is not None:
            found.append((name, [node]))
    return found


def _type(tensor: Tensor) -> tuple[str, float, int] | None:
    """Element type, scale and zero point; None if there is not one of each."""
    if tensor.quant is None or tensor.quant.per_channel:
        return None
    return tensor.dtype.value, tensor.quant.scale, tensor.quant.zero_point
