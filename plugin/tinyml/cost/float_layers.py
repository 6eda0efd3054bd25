# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers of a quantised model that compute in float: which, why, and what to change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Layer, Node, Op, Tensor
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.ops.weighted.block_form import block_form
from tinyml.ops.weighted.byte_weights import were_integers
from tinyml.ops.weighted.weighted import Weighted
from tinyml.pipeline import Compiled, banded_layers

NAMED = 4
"""Layers that a note names; it counts the others."""

NO_FORM = (
    "there is no integer form of this operator",
    "docs/SUPPORTED_OPS.md has the operators; a few small layers in float cost little",
)
NOT_BEFORE = (
    "nothing quantises the input",
    "Quantise what comes before as well: in training with a fake quantiser behind that layer, or the whole "
    "float model with `tinyml quantize`",
)
FLOAT_WEIGHTS = (
    "the weights are float",
    "Quantise the weights as well: int8, with one scale or one for each output channel",
)
BLOCKS = (
    "the weights have a scale for each block of a filter, which no sum of integers can carry",
    "They stay packed in flash. For integers, quantise them with one scale for each output channel: "
    "docs/fewer_bits.md",
)
NOT_AFTER = (
    "nothing quantises the output",
    "Quantise the output as well: in training with a fake quantiser behind the layer, in the file with "
    "QuantizeLinear and DequantizeLinear",
)
UNUSUAL = (
    "its integer form does not take these types, scales or attributes",
    "Use int8 with one scale for each tensor, and for weights one for each output channel; "
    "docs/SUPPORTED_OPS.md has what each operator takes",
)
LARGE_SUMS = (
    "the sums of products and bias may leave 32 bits",
    "Use a smaller bias, or a larger scale for the weights",
)
REASONS = (NOT_BEFORE, BLOCKS, FLOAT_WEIGHTS, NOT_AFTER, UNUSUAL, LARGE_SUMS, NO_FORM)


def float_layers(compiled: Compiled) -> tuple[str, ...]:
    """One note for each reason; none for a model that is not quantised."""
    graph = compiled.graph
    if not any(_computes_integers(part) for layer in graph.layers() for part in _parts(layer)):
        return ()
    found: dict[tuple[str, str], list[str]] = {}
    around = _Around(graph.producers(), graph.consumers())
    for step, chosen in enumerate(compiled.selected):
        part = next(filter(_computes_floats, _parts(chosen.layer)), None)
        if part is not None:
            text = f"{step} ({chosen.layer.op.label()} {chosen.layer.name!r})"
            found.setdefault(_reason(around, part), []).append(text)
    return tuple(_note(found[reason], reason) for reason in REASONS if reason in found)


def _note(layers: list[str], reason: tuple[str, str]) -> str:
    names = ", ".join(layers[:NAMED]) + (f" and {len(layers) - NAMED} more" if len(layers) > NAMED else "")
    why, change = reason
    verb = "compute" if len(layers) > 1 else "computes"
    word = "layers" if len(layers) > 1 else "layer"
    return f"in this quantised model, {word} {names} {verb} in float: {why}. {change}"


def _parts(layer: Layer) -> list[Layer]:
    """The layers of a chain, or the layer itself."""
    chain = banded_layers(layer)
    return [layer] if chain is None else [part for part, _ in chain]


def _computes_integers(layer: Layer) -> bool:
    """Whether a layer that is more than a conversion or a movement computes on quantised integers."""
    if layer.op.movement or isinstance(layer.op, Quantize | Dequantize):
        return False
    variable = _variable(layer.inputs)
    return bool(variable) and all(t.quant is not None and t.dtype.is_integer for t in variable)


def _computes_floats(layer: Layer) -> bool:
    if layer.op.movement or isinstance(layer.op, Quantize | Dequantize) or _computes_integers(layer):
        return False
    return any(t.dtype.is_float for t in (*_variable(layer.inputs), *layer.outputs))


def _variable(tensors: Iterable[Tensor | None]) -> list[Tensor]:
    return [tensor for tensor in tensors if tensor is not None and not tensor.is_constant]


@dataclass(frozen=True)
class _Around:
    """Who computes and who reads a tensor."""

    producers: Mapping[str, Node]
    consumers: Mapping[str, Sequence[Node]]

    def was_stored(self, tensor: Tensor) -> bool:
        """Whether integers were dequantised to this tensor, and at most moved after that."""
        node = self.producers.get(tensor.name)
        while node is not None and node.op.movement:
            node = self.producers.get(node.inputs[0])
        return node is not None and isinstance(node.op, Dequantize)

    def has_large_sums(self, layer: Layer) -> bool:
        """Whether passes/bound_sums.py made this layer, or the scaling behind it, of an integer layer."""
        source = self.producers.get(layer.inputs[0].name) if layer.inputs and layer.inputs[0] else None
        if source is None:
            return False
        if isinstance(layer.op, Weighted):
            return source.name == f"{layer.name}/input/dequantize"
        before = self.producers.get(source.inputs[0])
        scales = isinstance(source.op, Weighted) and layer.name == f"{source.name}/scale"
        return scales and before is not None and before.name == f"{source.name}/input/dequantize"

    def is_stored(self, tensor: Tensor) -> bool:
        """Whether all that read the tensor quantise it."""
        readers = self.consumers.get(tensor.name, ())
        return bool(readers) and all(isinstance(node.op, Quantize) for node in readers)


def _reason(around: _Around, layer: Layer) -> tuple[str, str]:
    op = layer.op
    if around.has_large_sums(layer):
        return LARGE_SUMS
    if type(op).quantized is Op.quantized:
        return NO_FORM
    if not all(around.was_stored(tensor) for tensor in _variable(layer.inputs)):
        return NOT_BEFORE
    if isinstance(op, Weighted) and _has_real_weights(op, layer.input(1)):
        return BLOCKS if _has_blocks(op, layer.input(1)) else FLOAT_WEIGHTS
    return UNUSUAL if all(around.is_stored(tensor) for tensor in layer.outputs) else NOT_AFTER


def _has_real_weights(op: Weighted, weights: Tensor) -> bool:
    return weights.is_constant and not were_integers(weights.value, op.channel_axis)


def _has_blocks(op: Weighted, weights: Tensor) -> bool:
    rows = np.ascontiguousarray(np.moveaxis(weights.value, op.channel_axis, 0))
    return any(block_form(rows, bits) is not None for bits in (4, 8))
