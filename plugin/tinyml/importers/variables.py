# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model's variables while it is imported: they become states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.importers.states import EXAMPLE, Remembered
from tinyml.ir import Array, Node, State, Tensor, TensorType
from tinyml.ops.framework.reading import MALFORMED, Builder
from tinyml.ops.reshape import Reshape

GROWS = (
    "a past that grows is a state only inside Attention and MultiHeadAttention, or if Concat adds new rows "
    "after it; else export the model with a cache of the longest length, into which it writes at a position: "
    "docs/decoders.md"
)


@dataclass
class _Variable:
    name: str
    initial: Array | None = None
    state: Tensor | None = None  # its value at the start of a run, once it is read
    current: Tensor | None = None  # its value at this point of the run


class Variables:
    """A read sees the last value assigned in this run, or the one from the previous run."""

    def __init__(self, build: Builder) -> None:
        self.build = build
        self._found: dict[str, _Variable] = {}
        self._initialising = False

    @contextmanager
    def initialising(self) -> Iterator[None]:
        """Assignments inside set initial values."""
        self._initialising = True
        yield
        self._initialising = False

    def read(self, key: str, name: str, type_: TensorType) -> Tensor:
        variable = self._found.setdefault(key, _Variable(name))
        if variable.current is None:
            if 0 in type_.shape:
                raise ModelError(f"variable {name!r} has no elements", MALFORMED)
            variable.state = variable.current = self.build.tensor(variable.name, type_)
        return variable.current

    def assign(self, key: str, value: Tensor) -> None:
        variable = self._found.setdefault(key, _Variable(key.strip("/")))
        if not self._initialising:
            variable.current = value
        elif value.data is None:
            raise UnsupportedError(f"the initial value of variable {key!r} is not a constant")
        else:
            variable.initial = value.data

    def take_updates(self) -> None:
        """Called after each operator: some write variable tensors (LSTM, SVDF), some keep states."""
        for tensor in self.build.own_states:
            self._found[tensor.name] = _Variable(tensor.name, None, tensor, tensor)
        self.build.own_states.clear()
        for old, new in self.build.updates.items():
            for variable in self._found.values():
                if variable.current is not None and variable.current.name == old:
                    variable.current = new
        self.build.updates.clear()

    def states(self) -> tuple[State, ...]:
        """Variables whose value from the previous run is read. The others only rename tensors."""
        states = []
        for variable in self._found.values():
            state, current = variable.state, variable.current
            if state is None or current is None:
                continue
            if current is state:  # never written: it keeps its initial value
                self._freeze(variable, state)
                continue
            _check_fits(variable, state, current)
            if current.is_constant or any(v.state is current for v in self._found.values()):
                current = copied(self.build, current)
            states.append(State(state.name, current.name, variable.initial))
        return tuple(states)

    def _freeze(self, variable: _Variable, state: Tensor) -> None:
        fill = 0 if state.quant is None else state.quant.zero_point
        _check_fits(variable, state, state)
        data = variable.initial if variable.initial is not None else np.full(state.shape, fill)
        self.build.tensors[state.name] = Tensor.constant(
            state.name, data.astype(state.dtype.numpy).reshape(state.shape), state.quant
        )


def _check_fits(variable: _Variable, state: Tensor, current: Tensor) -> None:
    """Refuse a variable whose first or next value has another size than what is read from it."""
    first = variable.initial
    same = (state.elements, state.dtype) == (current.elements, current.dtype)
    if not same or (first is not None and (first.size != state.elements or first.dtype != state.dtype.numpy)):
        raise ModelError(
            f"variable {variable.name!r} is read as {state.dtype.value} {state.shape} and assigned "
            f"{current.dtype.value} {current.shape}" + ("" if first is None else f", at first {first.shape}"),
            MALFORMED,
        )


def _grows(old: Tensor, new: Tensor) -> bool:
    """Whether a tensor is another one with more rows."""
    if len(old.shape) != len(new.shape) or old.dtype is not new.dtype:
        return False
    return sum(a != b for a, b in zip(old.shape, new.shape, strict=True)) == 1 and new.elements > old.elements


def copied(build: Builder, tensor: Tensor) -> Tensor:
    """A tensor of its own with the same value, as the update of a state must be."""
    copy = build.tensor(f"{tensor.name}/next", tensor.type)
    build.nodes.append(Node(copy.name, Reshape(tensor.shape), (tensor.name,), (copy.name,)))
    return copy


def own_states(build: Builder) -> tuple[State, ...]:
    """States that operators of an ONNX model keep, and the file does not name."""
    return tuple(State(tensor.name, build.updates[tensor.name].name) for tensor in build.own_states)


def declared_states(
    build: Builder, remembered: Sequence[Remembered], values: Mapping[str, str]
) -> tuple[State, ...]:
    """The states of an ONNX model; ``values`` maps its names to tensors."""
    olds = {values[state.input] for state in remembered}
    states = []
    for state in remembered:
        old, new = (build.tensors[values[name]] for name in (state.input, state.output))
        first = state.initial if state.initial is not None else np.zeros(old.shape, old.dtype.numpy)
        if (old.shape, old.dtype) != (new.shape, new.dtype) or first.shape != old.shape:
            raise ModelError(
                f"the state {state.input!r} ({old.dtype.value} {old.shape}), its first value {first.shape} "
                f"and {state.output!r} ({new.dtype.value} {new.shape}) do not match",
                GROWS if _grows(old, new) else EXAMPLE,
            )
        if new.is_constant or new.name in olds:
            new = copied(build, new)
        states.append(State(old.name, new.name, first.astype(old.dtype.numpy)))
    return tuple(states)
