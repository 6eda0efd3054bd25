# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Names that onnxruntime's quantiser makes of others: a model that has them already would be mixed up."""

from __future__ import annotations

import onnx

from tinyml.base.errors import ConfigError
from tinyml.quantize.subgraphs import graphs_inside

ENDINGS = (
    "_scale",
    "_zero_point",
    "_quantized",
    "_quantized_scale",
    "_quantized_zero_point",
    "_QuantizeLinear",
    "_QuantizeLinear_Input",
    "_QuantizeLinear_Output",
    "_DequantizeLinear",
    "_DequantizeLinear_Output",
    "_convert",
)


def avoid_reserved_names(model: onnx.ModelProto) -> None:
    """Rename tensors inside the model that are called like another one with such an ending."""
    graph = model.graph
    ends = [value.name for value in (*graph.input, *graph.output)]
    names = {name for node in graph.node for name in (*node.input, *node.output)} | {*ends}
    taken = {name + ending for name in names for ending in ENDINGS} & names
    for name in ends:
        if name in taken:
            raise ConfigError(
                f"the input or output {name!r} has a name that the quantiser uses for another tensor",
                "rename it, or export the model with other names",
            )
    new = {name: f"{name}/own" for name in taken}
    for node in (node for inner in graphs_inside(graph) for node in inner.node):
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
    for named in (*graph.initializer, *graph.value_info):
        named.name = new.get(named.name, named.name)
