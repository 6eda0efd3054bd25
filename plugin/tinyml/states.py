# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""State in ONNX files: inputs that take what an output was in the run before.

ONNX has no variables, so such a model says in its metadata which output goes into which input:
``tinyml.states`` = ``{"state": "next state"}``. Before the first run an input of this kind is what the
constant of the same name says (its default value, as ONNX calls it), or 0. Other runtimes see the pair as
an input and an output like any other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import onnx
from onnx import helper, numpy_helper

from tinyml.errors import ModelError
from tinyml.ir import Array

KEY = "tinyml.states"
EXAMPLE = f'{KEY} = {{"state": "next_state"}}, both with the same shape and type'


@dataclass(frozen=True)
class Remembered:
    """An input that the model itself fills: from this output of the run before."""

    input: str
    output: str
    initial: Array | None = None  # None: zeros


def states_of(model: onnx.ModelProto) -> tuple[Remembered, ...]:
    """What the metadata of a model say; refused if they speak of things it does not have."""
    text = next((entry.value for entry in model.metadata_props if entry.key == KEY), "")
    if not text:
        return ()
    try:
        pairs = json.loads(text)
    except ValueError:
        pairs = None
    if not isinstance(pairs, dict) or not all(isinstance(name, str) for name in pairs.values()):
        raise ModelError(f"the model's metadata {KEY} cannot be read", EXAMPLE)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    inputs = {value.name: value for value in model.graph.input}
    outputs = {value.name: value for value in model.graph.output}
    found = []
    for source, target in pairs.items():
        for name, known, what in ((source, inputs, "input"), (target, outputs, "output")):
            if name not in known:
                raise ModelError(
                    f"the model's metadata {KEY} name an {what} {name!r}, which is none", EXAMPLE
                )
        first = constants.get(source)
        found.append(Remembered(source, target, None if first is None else numpy_helper.to_array(first)))
    return tuple(found)


def without_states(model: onnx.ModelProto) -> None:
    """Take the marks off: state is an input and an output like any other."""
    inputs = {state.input for state in states_of(model)}
    for tensor in [t for t in model.graph.initializer if t.name in inputs]:
        model.graph.initializer.remove(tensor)
    for entry in [e for e in model.metadata_props if e.key == KEY]:
        model.metadata_props.remove(entry)


def with_states(model: onnx.ModelProto, states: Sequence[Remembered]) -> None:
    """Put the marks on."""
    if not states:
        return
    helper.set_model_props(model, {KEY: json.dumps({state.input: state.output for state in states})})
    for state in states:
        if state.initial is not None:
            model.graph.initializer.append(numpy_helper.from_array(state.initial, state.input))
