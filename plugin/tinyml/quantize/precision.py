# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers with int16 activations among int8 ones: which tensors are int16, and where the types meet.

A layer is inaccurate because the tensors that it reads or writes are rounded too coarsely. So these tensors
become int16, and every layer that reads or writes one of them computes on int16. Weights stay int8. Between
the types, integers are rescaled to integers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import onnx

from tinyml.base.lazy_dataclass import dataclass
from tinyml.importers.states import Remembered
from tinyml.ops.framework.quantization_facts import FLOAT, quantizing
from tinyml.quantize.biases import without_channels
from tinyml.quantize.calibrate import Ranges
from tinyml.quantize.layers import FloatLayer
from tinyml.quantize.loop_results import Integers

INT8, INT16 = np.dtype(np.int8), np.dtype(np.int16)

Override = dict[str, Any]
"""Options for onnxruntime's quantiser about one tensor."""


@dataclass(frozen=True)
class Precision:
    """What is not int8: layers in float, layers with int16 activations, weights of four bits."""

    floats: tuple[FloatLayer, ...] = ()
    int16: tuple[FloatLayer, ...] = ()
    int4: frozenset[str] = frozenset()
    float16: frozenset[str] = frozenset()  # layers with float16 weights, in a model that is float otherwise


def int16_nodes(
    model: onnx.ModelProto,
    ranges: Ranges,
    layers: Iterable[FloatLayer],
    int16: Iterable[FloatLayer],
    never: Collection[str],
    states: Iterable[Remembered] = (),
    given: Iterable[str] = (),
) -> set[str]:
    """Nodes that compute on int16 if the activations around ``int16`` are; none of ``never``.

    ``given`` tensors are int16 where they come from.
    """
    pairs = [{state.input, state.output} for state in states]
    together = {node: layer.nodes for layer in layers for node in layer.nodes}
    tensors = {name for name in given if name in ranges}
    for layer in int16:
        tensors |= {name for name in (*layer.inputs, layer.output) if name in ranges}
    while True:
        found = {
            name
            for node in model.graph.node
            if quantizing(node.op_type).activations and node.name not in never and _touches(node, tensors)
            for name in together.get(node.name, (node.name,))
        }
        more = {
            name
            for node in model.graph.node
            if node.name in found and quantizing(node.op_type).keeps_type
            for name in (*node.input, *node.output)
            if name in ranges
        }
        more |= {name for pair in pairs if pair & (more | tensors) for name in pair if name in ranges}
        if more <= tensors:
            return found
        tensors |= more


def _touches(node: onnx.NodeProto, tensors: Collection[str]) -> bool:
    return any(name in tensors for name in (*node.input, *node.output))


@dataclass
class _Place:
    """A tensor between nodes that are quantised."""

    source: onnx.NodeProto | None = None
    wide: set[str] = field(default_factory=set)  # readers on int16
    narrow: set[str] = field(default_factory=set)  # readers on int8
    weights: bool = False

    def kind(self, int16: Collection[str]) -> np.dtype[Any]:
        """int16 if its producer computes on int16; a float tensor becomes int16 if any reader requires it."""
        if self.source is not None:
            return INT16 if self.source.name in int16 else INT8
        return INT16 if self.wide else INT8

    def takes(self, kind: np.dtype[Any], int16: Collection[str]) -> bool:
        """Whether it can have this type where it comes from, and a reader wants it."""
        possible = self.source is None or self.kind(int16) == kind
        return possible and bool(self.wide if kind == INT16 else self.narrow)


def overrides(
    model: onnx.ModelProto,
    ranges: Ranges,
    int16: Collection[str],
    excluded: Collection[str],
    given: Mapping[str, Integers],
) -> dict[str, list[Override]]:
    """For all tensors that are not simply int8, or have the scale that a loop gives them."""
    constants = {t.name for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
    result = {name: [_override(INT8, typed=True) | {"symmetric": True}] for name in without_channels(model)}
    wide, readers = wide_states(model, ranges, excluded), _readers(model)
    for name, place in _places(model, int16, excluded):
        kind = INT16 if name in wide else place.kind(int16)
        if name in constants:
            if kind == INT16 and not place.narrow and not place.weights:
                result[name] = [_override(INT16)]
        elif name in ranges:
            declared = quantizing(place.source.op_type) if place.source is not None else FLOAT
            alone = declared.scales_required or not _shares_scale(readers, name)
            found = _override(kind, declared.scales.get(kind.name) if alone else None)
            others = place.narrow if kind == INT16 else place.wide
            if name in wide:
                found, others = _override(INT16, (wide[name][0], 0)), others - wide[name][1]
            elif name in given and place.takes(kind_of := given[name].dtype, int16):
                meaning = (given[name].scale, given[name].zero_point)
                kind, found = kind_of, _override(kind_of, meaning, typed=True)
                others = place.narrow if kind == INT16 else place.wide
            if others:
                found["convert"] = {
                    **_override(INT8 if kind == INT16 else INT16, typed=True),
                    "recv_nodes": others,
                }
            if found:
                result[name] = [found]
    return result


def wide_states(
    model: onnx.ModelProto, ranges: Ranges, excluded: Collection[str] = ()
) -> dict[str, tuple[float, set[str]]]:
    """Tensors that are int16 for an operator: their scales, and the nodes that read or write them so."""
    found: dict[str, tuple[float, set[str]]] = {}
    nodes = [node for node in model.graph.node if node.name not in excluded]
    for node in nodes:
        for name, scale in quantizing(node.op_type).int16(node, ranges).items():
            found.setdefault(name, (scale, set()))[1].add(node.name)
    moving = [node for node in nodes if found and _moves_one(node)]
    changed = True
    while changed:  # a reshape of such a tensor is one too
        changed = False
        for node in moving:
            ends = (node.input[0], node.output[0])
            for name, other in (ends, ends[::-1]):
                if name in found and other in ranges and other not in found:
                    found[other] = (found[name][0], set())
                    found[name][1].add(node.name)
                    found[other][1].add(node.name)
                    changed = True
    return found


def _moves_one(node: onnx.NodeProto) -> bool:
    declared = quantizing(node.op_type)
    return declared.moves and not declared.one_scale and len(node.output) == 1


def _places(
    model: onnx.ModelProto, int16: Collection[str], excluded: Collection[str]
) -> Iterator[tuple[str, _Place]]:
    places: dict[str, _Place] = {}
    for node in model.graph.node:
        if not quantizing(node.op_type).activations or node.name in excluded:
            continue
        for name in node.output:
            places.setdefault(name, _Place()).source = node
        for name in node.input:
            place = places.setdefault(name, _Place())
            (place.wide if node.name in int16 else place.narrow).add(node.name)
            place.weights |= quantizing(node.op_type).channel_axis is not None
    yield from places.items()


def _readers(model: onnx.ModelProto) -> Mapping[str, Sequence[onnx.NodeProto]]:
    found: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            found.setdefault(name, []).append(node)
    return found


def _shares_scale(readers: Mapping[str, Sequence[onnx.NodeProto]], name: str) -> bool:
    """Whether a reader, perhaps after a reshape, requires this tensor to share the scale of others."""
    for node in readers.get(name, ()):
        declared = quantizing(node.op_type)
        if declared.one_scale or (
            declared.keeps_scale and any(_shares_scale(readers, output) for output in node.output)
        ):
            return True
    return False


def _override(kind: np.dtype[Any], fixed: tuple[float, int] | None = None, typed: bool = False) -> Override:
    """int8 is the quantiser's default."""
    from onnxruntime.quantization import QuantType

    found: Override = {}
    if kind == INT16 or typed:
        found["quant_type"] = QuantType.QInt16 if kind == INT16 else QuantType.QInt8
    if fixed is not None:
        scale, zero_point = fixed
        found |= {"scale": np.array(scale, np.float32), "zero_point": np.array(zero_point, kind)}
    elif kind == INT16:
        found["symmetric"] = True
    return found
