# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model as data in a form that a person can read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tinyml.base.naming import shape_text
from tinyml.ops.framework.program import Memory
from tinyml.slots.data_reading import DataModel, ReadCall, ReadPort


def describe(model: DataModel) -> Iterator[str]:
    """Line by line: what the model needs, its inputs and outputs, then every call."""
    yield f"{model.name} {model.version}, {model.bytes:,} bytes, {'signed' if model.signed else 'not signed'}"
    yield f"  model file   {model.sha256}"
    yield f"  arena        {model.arena_bytes:,} bytes"
    yield f"  state        {model.state_bytes:,} bytes"
    yield f"  work         {model.work:,} multiplications and elements, at most"
    yield f"  layouts      {model.layouts}"
    yield f"  kernels      {', '.join(kernel.name.replace(' ', '/') for kernel in model.kernels)}"
    for word, ports in (("input", model.inputs), ("output", model.outputs)):
        yield from (f"  {word:12} {_port(port)}" for port in ports)
    yield from _calls("run", model.run)
    yield from _calls("reset", model.reset)


def _port(port: ReadPort) -> str:
    scale = f", scale {port.scale:.9g}, zero point {port.zero_point}" if port.scale else ""
    place = f"{port.memory.name.lower()} {port.position}"
    return f"{port.name}: {shape_text(port.shape)} {port.dtype.value} at {place}{scale}"


def _calls(title: str, calls: Sequence[ReadCall]) -> Iterator[str]:
    if calls:
        yield f"{title}:"
    for number, call in enumerate(calls):
        places = ", ".join(
            _place(memory, position, step)
            for (memory, position), step in zip(call.operands, call.steps, strict=True)
        )
        turns = f", {call.turns} times" if call.turns > 1 else ""
        yield f"  {number}: layer {call.layer}, {call.kernel.name.replace(' ', '/')} ({places}){turns}"
        members = " ".join(f"{name.lstrip('.')}={value:.9g}" for name, value in call.record.items())
        yield f"     {members}"


def _place(memory: Memory, position: int, step: int) -> str:
    if memory is Memory.NOTHING:
        return "nothing"
    if step >= 1 << 31:
        step -= 1 << 32
    return f"{memory.name.lower()} {position}" + (f" + {step} each time" if step else "")
