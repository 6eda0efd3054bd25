# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Hints at what costs much and could be avoided: float layers of quantised models, float normalisation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tinyml.cost.estimate import estimate_for
from tinyml.cost.float_layers import float_layers
from tinyml.ir import DType, Graph, Layer, Tensor
from tinyml.pipeline import Compiled

WORTHWHILE = 256
"""Elements of an input, from which on normalisation costs something."""

NORMALISED_OUTSIDE = (
    "Or export the model without them and normalise in training and in the application; with `io: int8` the "
    "application writes the quantised values itself"
)


def hints(compiled: Compiled) -> tuple[str, ...]:
    """One line for each integer input that is normalised in float, and for why layers compute in float."""
    found = [*batches(compiled.graph), *float_layers(compiled)]
    for name in compiled.graph.inputs:
        given = compiled.graph.tensors[name]
        chain = list(_normalisation(compiled.graph, given))
        if len(chain) > 1 and given.elements >= WORTHWHILE:
            found.append(_hint(compiled, given, chain))
    return tuple(found)


def batches(graph: Graph) -> tuple[str, ...]:
    """A note if all inputs and outputs begin with one axis of several elements, as a batch does."""
    inputs, outputs = ([graph.tensors[n].shape for n in names] for names in (graph.inputs, graph.outputs))
    if graph.states or not inputs or any(len(shape) < 2 for shape in inputs) or () in outputs:
        return ()
    first = {shape[0] for shape in (*inputs, *outputs)}
    if len(first) != 1 or min(first) < 2:
        return ()
    (count,) = first
    return (
        f"every input and output begins with an axis of {count}. If that is a batch, each run computes "
        f"{count} samples and the arena holds all of them: export the model with a batch of 1, from an "
        "example input with one sample",
    )


def _normalisation(graph: Graph, given: Tensor) -> Iterator[Layer]:
    """The layers after an integer input without a quantisation that compute one float per element."""
    if not given.dtype.is_integer or given.quant is not None:
        return
    name = given.name
    while True:
        readers = [layer for layer in graph.layers() if any(t and t.name == name for t in layer.inputs)]
        if len(readers) != 1 or not _is_arithmetic(readers[0], name):
            return
        yield readers[0]
        name = readers[0].output.name


def _is_arithmetic(layer: Layer, name: str) -> bool:
    y = layer.output
    others = [tensor for tensor in layer.inputs if tensor is not None and tensor.name != name]
    return (
        layer.op.elementwise
        and len(layer.outputs) == 1
        and y.dtype is DType.FLOAT32
        and y.quant is None
        and all(tensor.is_constant for tensor in others)
    )


def _hint(compiled: Compiled, given: Tensor, chain: Sequence[Layer]) -> str:
    outputs = {layer.output.name for layer in chain}
    steps = [i for i, chosen in enumerate(compiled.selected) if chosen.layer.output.name in outputs]
    names = ", ".join(f"{step} ({compiled.selected[step].layer.op.label()})" for step in steps)
    cost = f"{chain[0].output.bytes:,} bytes for float values in an arena of {compiled.plan.arena_bytes:,}"
    estimate = estimate_for(compiled)
    total = sum(estimate.layers.values()) if estimate else 0
    if estimate and total and not estimate.unmeasured:
        share = sum(estimate.layers.get(step, 0) for step in steps) / total
        cost = f"about {share:.0%} of the instructions, {cost}"
    return (
        f"layers {names} normalise the input {given.name!r} ({given.dtype.value}) in float: {cost}. "
        f"{_remedy(compiled, given, chain)}. {NORMALISED_OUTSIDE}"
    )


def _remedy(compiled: Compiled, given: Tensor, chain: Sequence[Layer]) -> str:
    """What lets the compiler make a table of it."""
    if given.dtype not in (DType.UINT8, DType.INT8):
        return "A table would need bytes: give the model uint8 values"
    last = chain[-1].output.name
    readers = [layer for layer in compiled.graph.layers() if any(t and t.name == last for t in layer.inputs)]
    if not any(layer.op.kind == "Quantize" for layer in readers):
        return "In a quantised model they become a table: see `tinyml quantize`"
    constants = [t for layer in chain for t in layer.inputs if t is not None and t.is_constant]
    if any(max(t.shape, default=1) > 1 for t in constants):
        return "With one constant, or one per channel, instead of one per pixel they become a table"
    return "With additions, multiplications, divisions and limits alone they become a table"
