# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models with operators from outside, which onnxruntime does not know: they stay float.

Before the model is quantised, such nodes are cut out: what they read becomes an output, and what they compute
an input, whose values numpy computes for every sample. Afterwards they are put back, between quantised parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace

import onnx
from onnx import helper

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.datasets.reader import Samples
from tinyml.ir import Graph
from tinyml.ir.interpreter import interpret
from tinyml.ops.framework.registration import is_from_outside, outside_faults
from tinyml.quantize.subgraphs import in_order

KNOWN_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
"""Those of onnxruntime."""


@dataclass(frozen=True)
class Cut:
    """What was taken out of a model, and which inputs and outputs it left behind."""

    nodes: tuple[onnx.NodeProto, ...] = ()
    domains: tuple[onnx.OperatorSetIdProto, ...] = ()
    inputs: tuple[tuple[str, str], ...] = ()  # each with the name of the tensor in our own graph
    ends: tuple[onnx.ValueInfoProto, ...] = ()  # the outputs of the whole model

    @property
    def kinds(self) -> str:
        return ", ".join(sorted({node.op_type for node in self.nodes}))

    def warnings(self) -> tuple[str, ...]:
        """What to know about the figures of the report."""
        if not self.nodes:
            return ()
        return (
            f"{self.kinds}: computed in float, by the operators' own numpy functions. The figures of layers "
            "after them do not contain the errors of those before them; `tinyml verify` compares the whole",
        )


NOTHING = Cut()


def cut(model: onnx.ModelProto, graph: Graph) -> Cut:
    """Take the nodes that onnxruntime does not know out of ``model``; ``graph`` is its import."""
    functions = {(function.domain, function.name) for function in model.functions}
    own = [
        deepcopy(node)
        for node in model.graph.node
        if node.domain not in KNOWN_DOMAINS and (node.domain, node.op_type) not in functions
    ]
    if not own:
        return NOTHING
    if graph.states:
        raise UnsupportedError(
            f"a model that keeps state cannot be quantised with operators of your own ({own[0].op_type})",
            "quantise it in the training framework",
        )
    made = dict(_outputs(own, graph))
    known = {value.name for value in model.graph.output} | {t.name for t in model.graph.initializer}
    computed = {name for node in model.graph.node if node not in own for name in node.output}
    read = dict.fromkeys(name for node in own for name in node.input if name in computed - known)
    ends = tuple(deepcopy(value) for value in model.graph.output)
    kept = [value for value in ends if value.name not in made]
    del model.graph.output[:]
    model.graph.output.extend([*kept, *(helper.make_empty_tensor_value_info(name) for name in read)])
    if not model.graph.output:
        raise ModelError("the model consists of operators of your own: nothing can be quantised")
    for node in own:
        model.graph.node.remove(node)
    for name, tensor in made.items():
        shape = graph.tensors[tensor].shape
        model.graph.input.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))
    unknown = {node.domain for node in own} - {domain for domain, _ in functions}
    domains = tuple(deepcopy(entry) for entry in model.opset_import if entry.domain in unknown)
    for entry in domains:
        model.opset_import.remove(entry)
    return Cut(tuple(own), domains, tuple(made.items()), ends)


def _outputs(own: Sequence[onnx.NodeProto], graph: Graph) -> Iterator[tuple[str, str]]:
    """The outputs of such nodes in the file, and the same tensors in the graph: both have one order."""
    read = [node for node in graph.nodes if is_from_outside(type(node.op))]
    if len(read) != len(own):
        raise UnsupportedError(
            f"the reader of {own[0].op_type} makes several operators of one node",
            "quantise the model in the training framework",
        )
    for node, layer in zip(own, read, strict=True):
        for name, tensor in zip(node.output, layer.outputs, strict=False):
            if name and not graph.tensors[tensor].dtype.is_float:
                raise UnsupportedError(
                    f"{node.op_type} computes {graph.tensors[tensor].dtype.value} numbers, not float",
                    "quantise the model in the training framework",
                )
            if name:
                yield name, tensor


def completed(samples: Samples, graph: Graph, parts: Cut) -> Samples:
    """The samples with the values of the inputs that ``cut`` added."""
    if not parts.inputs:
        return samples
    with outside_faults():
        runs = [interpret(graph, [sample])[0] for sample in samples.inputs]
    inputs = tuple(
        {**sample, **{name: run[tensor] for name, tensor in parts.inputs}}
        for sample, run in zip(samples.inputs, runs, strict=True)
    )
    return replace(samples, inputs=inputs)


def restore(model: onnx.ModelProto, parts: Cut) -> None:
    """Put the nodes back."""
    if not parts.nodes:
        return
    graph = model.graph
    made = dict(parts.inputs)
    inputs = [value for value in graph.input if value.name not in made]
    for values, whole in ((graph.input, inputs), (graph.output, list(parts.ends))):
        del values[:]
        values.extend(whole)
    nodes = in_order([*graph.node, *parts.nodes])
    del graph.node[:]
    graph.node.extend(nodes)
    model.opset_import.extend(parts.domains)
