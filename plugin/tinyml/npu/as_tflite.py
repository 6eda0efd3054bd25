# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A graph, or a part of it, as a TFLite file, which is what Vela reads.

Layers that TFLite can express exactly, up to the rounding, become its operators. All others become custom
operators, which stay on the CPU.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Graph, Layer, Tensor
from tinyml.npu import element_calls, window_calls
from tinyml.npu.layer_calls import NotWritable, Own, quantized
from tinyml.npu.tflite_writer import TYPES, Call, Part, Value, write

WRITERS = {**window_calls.WRITERS, **element_calls.WRITERS}


def name_of(tensor: int) -> str:
    """The name of a tensor in the file of a part."""
    return f"t{tensor}"


@dataclass(frozen=True)
class Written:
    """A graph in the terms of TFLite. Tensors and operators have their numbers in the file."""

    part: Part
    operators: tuple[tuple[int, ...], ...]  # of each node of the graph
    inexact: frozenset[int]  # the nodes that the file rounds in another way

    @property
    def content(self) -> bytes:
        return write(self.part)

    def tensor(self, number: int) -> str:
        """The name of a tensor in the graph."""
        return self.part.values[number].name

    def cut(self, operators: Collection[int], inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """A file with some operators, whose tensors are called after their numbers."""
        names = {value.name: name_of(i) for i, value in enumerate(self.part.values)} | {"": ""}
        calls = [
            replace(call, inputs=[names[n] for n in call.inputs], outputs=[names[n] for n in call.outputs])
            for call in (self.part.calls[i] for i in operators)
        ]
        used = {name for call in calls for name in (*call.inputs, *call.outputs)}
        values = [replace(value, name=names[value.name]) for value in self.part.values]
        kept = [value for value in values if value.name in used]
        return write(Part(kept, calls, [name_of(t) for t in inputs], [name_of(t) for t in outputs]))


def written(graph: Graph) -> Written:
    """The graph without its states, each of which is one more input."""
    values: dict[str, Value] = {}
    calls: list[Call] = []
    operators: list[tuple[int, ...]] = []
    inexact = set()
    for number, layer in enumerate(graph.layers()):
        made, own = _calls(layer)
        operators.append(tuple(range(len(calls), len(calls) + len(made))))
        calls += made
        values |= {value.name: value for value in own.values}
        if not own.exact or getattr(layer.op, "round_once", False):
            inexact.add(number)
    used = dict.fromkeys(name for call in calls for name in (*call.inputs, *call.outputs) if name)
    listed = [values.get(name) or _value(graph.tensors[name]) for name in used]
    inputs = [*graph.inputs, *(state.tensor for state in graph.states)]
    outputs = [name for name in used if name in graph.kept()]
    part = Part(listed, calls, [name for name in inputs if name in used], outputs)
    return Written(part, tuple(operators), frozenset(inexact))


def _calls(layer: Layer[Any]) -> tuple[list[Call], Own]:
    """The operators of a layer, and the tensors that the graph does not have."""
    own = Own(layer)
    writer = WRITERS.get(type(layer.op))
    if writer is not None and quantized(layer.inputs[0], *layer.outputs):
        try:
            return list(writer(layer, own)), own
        except NotWritable:
            pass
    names = [t.name for t in layer.inputs if t is not None]
    call = Call("CUSTOM", names, [t.name for t in layer.outputs], custom=layer.op.kind)
    return [call], Own(layer)


def _value(tensor: Tensor) -> Value:
    """Custom operators may have any type; where the file has none for it, it does not matter."""
    dtype = tensor.dtype.value if tensor.dtype.value in TYPES else "float32"
    if tensor.is_constant and dtype == tensor.dtype.value:
        return Value(tensor.name, tensor.shape, dtype, tensor.quant, tensor.value)
    return Value(tensor.name, tensor.shape, dtype, tensor.quant if dtype != "float32" else None)
