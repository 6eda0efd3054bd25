# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Decoders whose pasts grow by Concat become decoders with caches of the longest length.

New rows are written at the position of the run, softmax sees the rows up to there, and what the file computes
from the length of the past (``growing_values``) is looked up in a table by the position. The result is a
standard ONNX model that later stages read like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx
from onnx import TensorProto, helper

from tinyml.base.errors import ConfigError, ModelError, UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.importers.growing_rewrite import Rewriting
from tinyml.importers.growing_states import (
    INTEGERS,
    GrowingModel,
    extents_of,
    growing_model,
    without_copies,
)
from tinyml.importers.growing_values import Values
from tinyml.importers.open_extents import open_note
from tinyml.importers.states import Remembered, states_of, with_states, without_states
from tinyml.ir import Shape

LENGTH = "length"
"""The state that counts rows, if the file has no input for the position."""


@dataclass(frozen=True)
class Fixed:
    """A model without growing caches, and the settings that are left for it."""

    model: onnx.ModelProto
    shapes: dict[str, Shape]
    bounds: dict[str, int]
    notes: tuple[str, ...] = ()


def fixed(model: onnx.ModelProto, shapes: Mapping[str, Shape], bounds: Mapping[str, int]) -> Fixed:
    """The model with caches of fixed lengths; itself if none grows."""
    growing = growing_model(model)
    if growing is None:
        return Fixed(model, dict(shapes), dict(bounds))
    model = without_copies(model)
    if growing.mask in shapes:
        raise ConfigError(f"the model fills {growing.mask!r} by itself", f"leave out --shape {growing.mask}")
    longest, left = _longest(model, growing, shapes, bounds)
    full = _shapes(model, growing, shapes, longest)
    steps = _steps(model, growing, full)
    if not 0 < steps <= longest:
        raise ConfigError(f"a run adds {steps} rows to caches of {longest}", "state a longer length")
    values = Values(model, growing, full, steps)
    for cache in growing.caches:
        rows = values.short[cache.new].shape[cache.axis]
        if rows != steps:
            raise UnsupportedError(
                f"a run has {steps} tokens and adds {rows} rows to {cache.state.input!r}",
                f"give all inputs the same number of tokens: --shape {cache.state.input}=…",
            )
    return _rewritten(values, longest, left, shapes)


def stated_lengths(
    model: onnx.ModelProto, shapes: Mapping[str, Shape], bounds: Mapping[str, int]
) -> tuple[Mapping[str, Shape], Mapping[str, int]]:
    """The same settings, with the lengths of growing caches among the shapes."""
    growing = growing_model(model)
    if growing is None:
        return shapes, bounds
    longest, left = _longest(model, growing, shapes, bounds)
    full = _shapes(model, growing, shapes, longest)
    return {**shapes, **{c.state.input: full[c.state.input] for c in growing.caches}}, left


def _rewritten(values: Values, longest: int, bounds: dict[str, int], given: Mapping[str, Shape]) -> Fixed:
    model, growing, steps = values.model, values.growing, values.steps
    states = list(states_of(model))
    made = onnx.ModelProto()
    made.CopyFrom(model)
    without_states(made)
    graph = made.graph
    del graph.value_info[:]
    position = growing.position or LENGTH
    rewriting = Rewriting(values, longest, position)
    if not growing.position:
        if LENGTH in {*values.short}:
            raise UnsupportedError(f"a value of the model is called {LENGTH!r}", "give it another name")
        graph.input.add().CopyFrom(helper.make_tensor_value_info(LENGTH, TensorProto.INT64, [1]))
        graph.output.add().CopyFrom(helper.make_tensor_value_info(f"{LENGTH}/next", TensorProto.INT64, [1]))
        states.append(Remembered(LENGTH, f"{LENGTH}/next"))
    nodes = rewriting.nodes()
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.extend(rewriting.constants)
    shapes = {name: shape for name, shape in values.shapes.items() if name != growing.mask}
    for value in [value for value in graph.input if value.name == growing.mask]:
        graph.input.remove(value)
    for cache in growing.caches:
        shape = shapes[cache.state.input]
        for value in (*graph.input, *graph.output):
            if value.name in (cache.state.input, cache.state.output):
                kind = value.type.tensor_type.elem_type
                value.CopyFrom(helper.make_tensor_value_info(value.name, kind, shape))
    with_states(made, states)
    return Fixed(made, shapes, bounds, (*_notes(growing, longest, steps), *_open_notes(values, given)))


def _notes(growing: GrowingModel, longest: int, steps: int) -> tuple[str, ...]:
    where = (
        f"{growing.position!r} has the place of the first new row"
        if growing.position
        else "the model counts its rows, and NAME_reset() starts again"
    )
    text = f"the caches hold {longest} rows, and a run adds {steps}; {where}"
    mask = f"{growing.mask!r} is no input: all rows up to the new ones are seen" if growing.mask else ""
    return (text, mask) if mask else (text,)


def _open_notes(values: Values, given: Mapping[str, Shape]) -> Iterator[str]:
    """Extents that became 1 although they are neither the batch nor the tokens of a run."""
    growing = values.growing
    inputs = {value.name: extents_of(value) for value in values.model.graph.input}
    known = {(cache.state.input, cache.axis) for cache in growing.caches}
    named = ""
    if tokens := _tokens(values.model, growing, values.shapes):
        known.add(tokens)
        named = str(inputs[tokens[0]][tokens[1]])
    for name, extents in inputs.items():
        left = [
            extent
            if axis > 0 and size == 1 and (name, axis) not in known and not (named and extent == named)
            else size
            for axis, (extent, size) in enumerate(zip(extents, values.shapes[name], strict=True))
        ]
        if name not in given and name != growing.mask and (text := open_note(name, left)):
            yield text


def _longest(
    model: onnx.ModelProto, growing: GrowingModel, shapes: Mapping[str, Shape], bounds: Mapping[str, int]
) -> tuple[int, dict[str, int]]:
    """How many rows the caches hold, and the bounds that are about something else."""
    inputs = {value.name: value for value in model.graph.input}
    found: dict[str, int] = {}
    used: set[str] = set()
    names = ""
    for cache in growing.caches:
        past = cache.state.input
        extents = extents_of(inputs[past])
        symbol = str(extents[cache.axis])
        if past in shapes and len(shapes[past]) == len(extents):
            found[past] = shapes[past][cache.axis]
        for name in (symbol, past):
            if name in bounds:
                found[name] = bounds[name]
                used.add(name)
        names = names or symbol or past
    if not found:
        raise ModelError(
            "the caches of the model grow with every run, and their longest length is not stated",
            f"--bound {names}=128 for texts of at most 128 tokens, or the shape of a past with this length: "
            f"--shape {growing.caches[0].state.input}=1x…x128x…",
        )
    if len(set(found.values())) > 1:
        words = ", ".join(f"{name}={most}" for name, most in found.items())
        raise ConfigError(f"the caches of the model have several lengths: {words}", "state one for all")
    return next(iter(found.values())), {n: most for n, most in bounds.items() if n not in used}


def _shapes(
    model: onnx.ModelProto, growing: GrowingModel, shapes: Mapping[str, Shape], longest: int
) -> dict[str, Shape]:
    """Of all inputs: extents with the same name are equal, and open ones are 1."""
    inputs = {value.name: extents_of(value) for value in model.graph.input}
    unknown = set(shapes) - set(inputs)
    if unknown:
        raise ConfigError(
            f"the model has no input called {', '.join(sorted(unknown))}",
            f"its inputs are {', '.join(inputs)}",
        )
    axes = {cache.state.input: cache.axis for cache in growing.caches}
    named: dict[str, int] = {}
    for name, shape in shapes.items():
        if len(shape) != len(inputs[name]):
            raise ConfigError(
                f"--shape {name}={'x'.join(map(str, shape))} has {len(shape)} axes, and the input has "
                f"{len(inputs[name])}"
            )
        for axis, (extent, size) in enumerate(zip(inputs[name], shape, strict=True)):
            if isinstance(extent, str) and extent and axes.get(name) != axis:
                named[extent] = size
    found = {}
    for name, extents in inputs.items():
        shape = tuple(named.get(e, 1) if isinstance(e, str) else e for e in extents)
        shape = shapes.get(name, shape)
        if name in axes:
            shape = (*shape[: axes[name]], longest, *shape[axes[name] + 1 :])
        found[name] = shape
    for name in (growing.mask, growing.position):
        if name and len(found[name]) > 1 and found[name][0] != 1:
            raise UnsupportedError(
                f"the model has a batch of {found[name][0]}, and a growing cache",
                "a compiled decoder writes one text: leave the batch open, or set it to 1",
            )
    return found


def _steps(model: onnx.ModelProto, growing: GrowingModel, shapes: Mapping[str, Shape]) -> int:
    """Tokens of a run: as many as there are positions, or as the first input that is no state has."""
    kinds = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    if growing.position and kinds[growing.position] not in INTEGERS:
        raise UnsupportedError(f"the input {growing.position!r} is not a tensor of integers")
    tokens = _tokens(model, growing, shapes)
    if tokens is None:
        return 1
    name, axis = tokens
    if axis > 0 and shapes[name][0] != 1:
        raise UnsupportedError(
            f"the model has a batch of {shapes[name][0]}, and a growing cache",
            "a compiled decoder writes one text: leave the batch open, or set it to 1",
        )
    return shapes[name][axis]


def _tokens(
    model: onnx.ModelProto, growing: GrowingModel, shapes: Mapping[str, Shape]
) -> tuple[str, int] | None:
    """The input and its axis with the tokens of a run: positions, or the first input that is no state."""
    if growing.position:
        rank = len(shapes[growing.position])
        return (growing.position, rank - 1) if rank else None
    pasts = {state.input for state in states_of(model)}
    rest = [n for n in shapes if n not in pasts and n != growing.mask and len(shapes[n]) > 1]
    return (rest[0], 1) if rest else None
