# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""State in ONNX files: inputs that receive the value of an output from the previous run.

ONNX has no variables, so the model's metadata name the output for each such input:
``tinyml.states`` = ``{"state": "next state"}``. Before the first run, the input has the value of the
initializer of the same name (its default value in ONNX terms), or 0. Other runtimes see the pair as
an input and an output like any other.

Exporters of language models call the inputs ``past_key_values.0.key`` and the outputs ``present.0.key``. A
file without such metadata has these pairs as states.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array

if TYPE_CHECKING:
    import onnx  # takes a while, and models in TFLite's format do without

KEY = "tinyml.states"
EXAMPLE = f'{KEY} = {{"state": "next_state"}}, both with the same shape and type'

PAST = "past_key_values."
PRESENTS = ("present.", "present_key_values.")


@dataclass(frozen=True)
class Remembered:
    """An input that receives the value of ``output`` from the previous run."""

    input: str
    output: str
    initial: Array | None = None  # None: zeros


def states_of(model: onnx.ModelProto) -> tuple[Remembered, ...]:
    """The states in a model's metadata; an error if they name tensors that it does not have."""
    from onnx import numpy_helper

    text = next((entry.value for entry in model.metadata_props if entry.key == KEY), "")
    try:
        pairs = json.loads(text) if text else _pairs_by_name(model)
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
                    f"the model's metadata {KEY} name an {what} {name!r} that does not exist", EXAMPLE
                )
        first = constants.get(source)
        found.append(Remembered(source, target, None if first is None else numpy_helper.to_array(first)))
    return tuple(found)


def _pairs_by_name(model: onnx.ModelProto) -> dict[str, str]:
    """Caches of keys and values as Hugging Face's exporters name them."""
    outputs = {value.name for value in model.graph.output}
    pairs = {}
    for value in model.graph.input:
        rest = value.name.removeprefix(PAST)
        for name in (prefix + rest for prefix in PRESENTS if rest != value.name):
            if name in outputs:
                pairs[value.name] = name
    return pairs


def without_states(model: onnx.ModelProto) -> None:
    """Remove the states from the metadata: each becomes an ordinary input and output."""
    inputs = {state.input for state in states_of(model)}
    for tensor in [t for t in model.graph.initializer if t.name in inputs]:
        model.graph.initializer.remove(tensor)
    for entry in [e for e in model.metadata_props if e.key == KEY]:
        model.metadata_props.remove(entry)
    if _pairs_by_name(model):
        model.metadata_props.add(key=KEY, value="{}")


def with_states(model: onnx.ModelProto, states: Sequence[Remembered]) -> None:
    """Write the states into the metadata."""
    if not states:
        return
    from onnx import numpy_helper

    for entry in [e for e in model.metadata_props if e.key == KEY]:
        model.metadata_props.remove(entry)
    model.metadata_props.add(key=KEY, value=json.dumps({state.input: state.output for state in states}))
    for state in states:
        if state.initial is not None:
            model.graph.initializer.append(numpy_helper.from_array(state.initial, state.input))
