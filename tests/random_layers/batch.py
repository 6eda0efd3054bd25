# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Many random layers as one graph, with inputs and with the outputs that numpy computes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tests.random_layers.attention import attention_input, attention_layer
from tests.random_layers.blocked import blocked_layer
from tests.random_layers.boxes import boxes_layer
from tests.random_layers.loops import loops_layer, round_scale_layer
from tests.random_layers.plain import plain_layer, usual_pool_layer, volume_layer
from tests.random_layers.recurrent import recurrent_layer
from tests.random_layers.recurrent_float import recurrent_float_layer
from tests.support.layer_kinds import as_kind, random_values
from tests.support.weighted_layers import WIDE, Layers, Weighted, sample
from tinyml.ir import Array, Graph, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense

SIZE = 100
"""Layers in a batch: enough to make the start of a machine cheap, few enough for its memory."""

SHARES = {
    "int8": 0.42,
    "four_bits": 0.15,
    "into_float": 0.05,
    "int16": 0.1,
    "float32": 0.05,
    "sparse": 0.02,
    "computed": 0.03,
    "plain": 0.15,
    "recurrent": 0.03,
    "transposed_four_bits": 0.0,  # only by name: a tenth of the layers with four bits are transposed
    "blocked": 0.0,  # only by name
    "float16": 0.0,  # float layers with such weights
    "boxes": 0.0,  # the ends of detectors
    "transposed": 0.0,  # the same with int8
    "transposed_int16": 0.0,  # and with int16 activations
    "transposed_float32": 0.0,  # whose kernel is loops in the model's own C
    "limited_float32": 0.0,  # floats with a least and mostly a largest value
    "grouped": 0.0,  # convolutions with int8 in 2 to 32 groups
    "few": 0.0,  # convolutions of few filters, or of groups of few channels, as kernels for these see them
    "few_int16": 0.0,  # the same with int16 activations
    "short": 0.0,  # convolutions and dense layers whose filters have few elements
    "volumes": 0.0,  # windows of convolutions with three spatial axes
    "usual_pools": 0.0,  # as networks that people train have them
    "recurrent_float": 0.0,  # only by name
    "loops": 0.0,  # whose kernels are loops in the model's own C
    "attention": 0.0,  # on bytes and floats, with masks, positions and biases
    "real_float32": 0.0,  # floats whose weights are not bytes times a scale
    "round_scales": 0.0,  # those that quantise, by powers of two
}

TYPES = {
    "few_int16": "int16",
    "transposed_int16": "int16",
    "transposed_float32": "float32",
    "limited_float32": "float32",
    "real_float32": "float16",
}
"""Kinds that say more than the types of a layer."""

WITHOUT_WEIGHTS = {"plain": plain_layer, "volumes": volume_layer, "usual_pools": usual_pool_layer}


@dataclass(frozen=True)
class Batch:
    """Layers that have nothing to do with one another; ``expected`` is by output name."""

    graph: Graph
    inputs: Mapping[str, Array]
    expected: Mapping[str, Array]

    def only(self, names: Collection[str]) -> Batch:
        """The same with fewer layers."""
        nodes = tuple(node for node in self.graph.nodes if node.name in names)
        used = {name for node in nodes for name in (*node.inputs, *node.outputs)}
        graph = replace(
            self.graph,
            tensors={name: tensor for name, tensor in self.graph.tensors.items() if name in used},
            nodes=nodes,
            inputs=tuple(name for name in self.graph.inputs if name in used),
            outputs=tuple(name for name in self.graph.outputs if name in used),
        )
        return Batch(graph, {n: self.inputs[n] for n in graph.inputs}, self.expected)


def batch(seed: int, number: int, size: int = SIZE, kind: str | None = None) -> Batch:
    """The batch ``number`` of a campaign; always the same for the same arguments."""
    rng = np.random.default_rng((seed, number))
    kinds = [kind] * size if kind else rng.choice(list(SHARES), size, p=list(SHARES.values()))
    once = bool(rng.random() < 0.5)  # as in a model from ONNX, or twice as in one from TFLite; never both
    graph = Graph("layers", {}, (), (), ())
    for index, kind in enumerate(map(str, kinds)):
        graph = _joined(graph, _layer(rng, kind, f"{kind}_{number}_{index}", once))
    inputs = {name: _input(rng, graph.tensors[name]) for name in graph.inputs}
    expected: dict[str, Array] = {}
    for node in graph.nodes:
        values = [inputs.get(name, graph.tensors[name].data) if name else None for name in node.inputs]
        expected |= zip(node.outputs, node.op.evaluate(graph.layer(node), values), strict=True)
    return Batch(graph, inputs, expected)


def _input(rng: np.random.Generator, tensor: Tensor) -> Array:
    found = attention_input(rng, tensor)
    return random_values(rng, tensor) if found is None else found


def _layer(rng: np.random.Generator, kind: str, name: str, once: bool) -> Graph:
    if kind in WITHOUT_WEIGHTS:
        node, tensors = WITHOUT_WEIGHTS[kind](rng, name)
        by_name = {tensor.name: tensor for tensor in tensors}
        return Graph("layers", by_name, (node,), node.inputs, node.outputs)
    if kind == "recurrent":
        return recurrent_layer(rng, name)
    if kind == "recurrent_float":
        return recurrent_float_layer(rng, name)
    if kind == "blocked":
        return blocked_layer(rng, name)
    if kind == "loops":
        return loops_layer(rng, name)
    if kind == "attention":
        return attention_layer(rng, name)
    if kind == "round_scales":
        return round_scale_layer(rng, name)
    if kind == "boxes":
        return boxes_layer(rng, name)
    made = Layers(rng)
    case = sample(rng, replace(WIDE, kinds=("transposed",)) if kind.startswith("transposed") else WIDE)
    if kind == "grouped":
        case = _in_groups(rng, sample(rng, replace(WIDE, kinds=("conv",))))
    if kind.startswith("few"):
        case = _few(rng, sample(rng, replace(WIDE, kinds=("conv",))))
    while kind == "computed" and isinstance(case.op, Dense | ConvTranspose):
        case = sample(rng, WIDE)  # these need constant weights, or are another operator
    if kind == "short":
        case = _short(rng, sample(rng, replace(WIDE, kinds=("conv", "conv", "dense"))))
    if kind.endswith("four_bits"):
        case = _with_four_bits(rng, case)
    made.weighted(name, case, once)
    found = as_kind(made.graph(), TYPES.get(kind, kind))
    return _within_limits(rng, found) if kind == "limited_float32" else found


def _within_limits(rng: np.random.Generator, graph: Graph) -> Graph:
    """The same layer, whose outputs are limited as those of ReLU6 are, or of ReLU."""
    (node,) = graph.nodes
    assert isinstance(node.op, Convolution | ConvTranspose | Dense)
    most = float(rng.choice([6.0, 6.0, 1.0, np.inf]))
    return replace(graph, nodes=(replace(node, op=replace(node.op, clamp=(0.0, most))),))


def _in_groups(rng: np.random.Generator, case: Weighted) -> Weighted:
    """The same convolution with more groups of fewer channels."""
    assert isinstance(case.op, Conv)
    groups, ins, outs = (int(rng.choice(list(n))) for n in ((2, 3, 4, 8, 16, 32), range(1, 10), range(1, 10)))
    shape = (*case.x[:3], groups * ins)
    weights = (groups * outs, *case.weights[1:3], ins)
    return replace(case, op=replace(case.op, groups=groups), x=shape, weights=weights)


def _few(rng: np.random.Generator, case: Weighted) -> Weighted:
    """The same convolution with few filters, or in groups of few channels."""
    if rng.random() < 0.5:
        case = _in_groups(rng, case)
    else:
        filters, ins = int(rng.choice((1, 1, 1, 2, 3))), int(rng.choice((1, 2, 3, 4, 5, 8, 16, 21, 64)))
        if rng.random() < 0.5:
            case = replace(case, x=(*case.x[:3], ins))
        case = replace(case, weights=(filters, *case.weights[1:3], case.x[3]))
    assert isinstance(case.op, Conv)
    groups = case.x[3] // case.weights[3]
    return replace(case, op=replace(case.op, groups=groups, few=True))


def _short(rng: np.random.Generator, case: Weighted) -> Weighted:
    """The same layer with few channels, and up to a dozen filters."""
    filters, ins = int(rng.integers(1, 13)), int(rng.choice((1, 2, 2, 3, 3, 3, 4, 4, 5, 6, 8, 11, 16)))
    assert isinstance(case.op, Conv | Dense)
    op = replace(case.op, few=True)
    if isinstance(op, Conv):
        op = replace(op, groups=1, dilations=(op.dilations[0], 1))
    return replace(case, op=op, x=(*case.x[:-1], ins), weights=(filters, *case.weights[1:-1], ins))


def _with_four_bits(rng: np.random.Generator, case: Weighted) -> Weighted:
    """The same layer with weights of sixteen values or fewer, mostly those of int4."""
    low = int(rng.choice([-8, -8, -8, -7, -4, -15, 0, 3])) + case.zero
    high = low + int(rng.choice([15, 15, 15, 14, 6, 0]))
    low, high = max(low, -128), min(high, 127)
    return replace(case, lowest=low, largest=max(low, high), scale=case.scale / rng.choice([1, 4, 16]))


def _joined(graph: Graph, more: Graph) -> Graph:
    return replace(
        graph,
        tensors={**graph.tensors, **more.tensors},
        nodes=graph.nodes + more.nodes,
        inputs=graph.inputs + more.inputs,
        outputs=graph.outputs + more.outputs,
    )
