# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Offsets of a model's state, inputs and outputs from the two addresses that a slot is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import DType, Tensor
from tinyml.pipeline import Compiled
from tinyml.player.program import STATE_ALIGNMENT, state_starts
from tinyml.slots.image import Port

MAX_RANK = 8  # of slot.c
TYPES = {dtype: number for number, dtype in enumerate(DType)}
"""enum tinyml_type has the same order."""


@dataclass(frozen=True)
class Variable:
    """An array that a model keeps between runs: its name in C, and where it is in the state."""

    name: str
    c_type: str
    offset: int


@dataclass(frozen=True)
class Layout:
    variables: tuple[Variable, ...]
    state_bytes: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


def lay_out(compiled: Compiled) -> Layout:
    """The variables one after the other, then the flag that is set once they have their first values."""
    variables = []
    *places, offset = state_starts(compiled.graph)
    for index, (state, start) in enumerate(zip(compiled.graph.states, places, strict=True)):
        tensor = compiled.graph.tensors[state.tensor]
        variables.append(Variable(f"{compiled.name}_state{index}", tensor.dtype.c, start))
    if variables:
        variables.append(Variable(f"{compiled.name}_started", "bool", offset))
        offset += STATE_ALIGNMENT
    starts = {index: variable.offset for index, variable in enumerate(variables)}
    graph = compiled.graph
    return Layout(
        tuple(variables),
        offset,
        tuple(_port(compiled, graph.tensors[name], starts) for name in graph.inputs),
        tuple(_port(compiled, graph.tensors[name], starts) for name in graph.outputs),
    )


def _port(compiled: Compiled, tensor: Tensor, starts: Mapping[int, int]) -> Port:
    place: Any = compiled.plan.places.get(tensor.name)
    if place is None or place.region.value not in ("arena", "state"):
        raise UnsupportedError(f"{tensor.name!r} is not computed by the model, so a slot cannot return it")
    if len(tensor.shape) > MAX_RANK:
        raise UnsupportedError(
            f"{tensor.name!r} has {len(tensor.shape)} axes, and devices accept slots with up to {MAX_RANK}",
            "export the model with fewer axes",
        )
    in_state = place.region.value == "state"
    quant = tensor.quant if tensor.quant is not None and not tensor.quant.per_channel else None
    return Port(
        name=tensor.name,
        shape=tensor.shape,
        type=TYPES[tensor.dtype],
        bytes=tensor.bytes,
        scale=quant.scale if quant else 0.0,
        zero_point=quant.zero_point if quant else 0,
        in_state=in_state,
        offset=place.offset + (starts[place.index] if in_state else 0),
    )
