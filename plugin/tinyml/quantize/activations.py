# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Relu and Clip after a layer: part of the layer, and dropped only where saturation does the same.

onnxruntime's quantiser drops each of them, as if the integers after it ended at its limits. They do not if
the tensor shares the range of others (before a Concat), if the range was extended to contain zero (a Clip
from 1 to 2), if nothing but zero was seen, or on int16. So these nodes are taken out before, and put back
where the integers reach further than the limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import numpy as np
import onnx
from onnx import numpy_helper

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array
from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.quantize.calibrate import Ranges

Constants = Mapping[str, onnx.TensorProto]


@dataclass(frozen=True)
class Hidden:
    """An activation that was taken out, the node before it, and which output of that it limits."""

    node: onnx.NodeProto
    source: str
    place: int


def hide_activations(
    model: onnx.ModelProto, ranges: Ranges, excluded: Collection[str], int16: Collection[str]
) -> list[Hidden]:
    """Take out the activations whose layer is quantised too; ``excluded`` nodes stay float.

    After a layer that keeps its scale, such as a pool, onnxruntime may drop one that saturation replaces:
    the activation's range becomes that of the layer.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    count = Counter(name for node in model.graph.node for name in node.input)
    count.update(value.name for value in model.graph.output)
    producers = {
        name: (node, place)
        for node in model.graph.node
        if quantizing(node.op_type).activations
        and node.name not in excluded
        and not quantizing(node.op_type).matrices  # its state has no such limits
        for place, name in enumerate(node.output)
    }
    hidden = []
    for node in [n for n in model.graph.node if quantizing(n.op_type).limits and n.name not in excluded]:
        if node.input[0] in producers and count[node.input[0]] == 1:
            source, place = producers[node.output[0]] = producers[node.input[0]]
            keeps_scale = quantizing(source.op_type).keeps_scale and not {source.name, node.name} & {*int16}
            if keeps_scale and _ends_within(_limits(node, constants), *_int8(ranges.get(node.output[0]))):
                producers[node.output[0]] = (node, 0)
                continue
            hidden.append(Hidden(node, source.name, place))
            source.output[place] = node.output[0]
    for item in hidden:
        model.graph.node.remove(item.node)
    return hidden


def show_activations(result: onnx.ModelProto, model: onnx.ModelProto, hidden: Collection[Hidden]) -> None:
    """Put them back into the quantised ``result`` where they are needed, with their limits as constants."""
    graph = result.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    known = {tensor.name: tensor for tensor in model.graph.initializer} | constants
    sources = {node.name: node for node in graph.node}
    for item in hidden:
        source, again = sources[item.source], item.node
        after = source.output[item.place]
        readers = [node for node in graph.node if after in node.input]
        if readers and all(_saturates(node, again, known) for node in readers):
            continue
        again.input[0], again.output[0] = f"{again.name}/unlimited", after
        source.output[item.place] = again.input[0]
        sources[again.name] = again
        graph.node.insert(list(graph.node).index(source) + 1, again)
        limits = {name: known[name] for name in again.input if name in known and name not in constants}
        graph.initializer.extend(limits.values())
        constants |= limits


def computed_limits(model: onnx.ModelProto) -> frozenset[str]:
    """Activations whose limits are not constants, which no integer form has."""
    constants = {"", *(tensor.name for tensor in model.graph.initializer)}
    return frozenset(
        node.name
        for node in model.graph.node
        if quantizing(node.op_type).limits and not constants.issuperset(node.input[1:])
    )


def _saturates(reader: onnx.NodeProto, activation: onnx.NodeProto, constants: Constants) -> bool:
    """Whether the integers that ``reader`` makes end within the limits of the activation."""
    if reader.op_type != "QuantizeLinear":
        return False
    scale, zero = (numpy_helper.to_array(constants[name]) for name in reader.input[1:3])
    return _ends_within(_limits(activation, constants), scale, zero)


def _ends_within(limits: tuple[float, float], scale: Array, zero: Array) -> bool:
    ends = np.iinfo(zero.dtype)
    low, high = (np.rint(np.float64(limit) / scale) + np.float64(zero) for limit in limits)
    return bool(low <= ends.min and high >= ends.max)


def _int8(limits: tuple[float, float] | None) -> tuple[Array, Array]:
    """Scale and zero point that onnxruntime's quantiser gives to a range."""
    low, high = (min(limits[0], 0.0), max(limits[1], 0.0)) if limits is not None else (0.0, 0.0)
    scale = np.asarray((high - low) / 255, np.float32)
    if scale < np.finfo(np.float32).tiny:
        return np.asarray(1, np.float32), np.asarray(0, np.int8)
    return scale, np.asarray(np.rint(-128 - low / scale), np.int8)


def _limits(node: onnx.NodeProto, constants: Constants) -> tuple[float, float]:
    if node.op_type == "Relu":
        return 0.0, np.inf
    found = [
        float(numpy_helper.to_array(constants[name]).reshape(())) if name else None
        for name in (*node.input[1:], "", "")
    ]
    return (-np.inf if found[0] is None else found[0], np.inf if found[1] is None else found[1])
