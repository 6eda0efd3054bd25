# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The files that the harness program reads and writes, and the arrays in them. See ``c/main.c``."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import numpy as np

from tinyml.base.errors import ConfigError, ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.machines import Stamp
from tinyml.harness.generated import Generated, Port
from tinyml.ir import Array
from tinyml.ir.row_order import RowOrder

MAGIC = 0x314C4D54
FLAG_RESET = 1

_COST = struct.Struct("<i5I")


@dataclass(frozen=True)
class Cost:
    """What one call cost, as read from the machine."""

    status: int
    before: Stamp
    after: Stamp
    stack_bytes: int


@dataclass(frozen=True)
class Results:
    """The result file: the cost of calling nothing, the cost of each run, the outputs of each run."""

    nothing: Cost
    runs: list[Cost]
    outputs: list[dict[str, Array]]


def encode(model: Generated, samples: Sequence[Mapping[str, Array]], reset_before: Collection[int]) -> bytes:
    """The sample file. The state is reset before the samples in ``reset_before``."""
    sizes = [sum(port.bytes for port in ports) for ports in (model.inputs, model.outputs)]
    chunks = [struct.pack("<4I", MAGIC, len(samples), *sizes)]
    for index, sample in enumerate(samples):
        chunks.append(struct.pack("<I", FLAG_RESET if index in reset_before else 0))
        chunks.append(input_bytes(model, sample, index))
    return b"".join(chunks)


class Ports(Protocol):
    """Anything with inputs and outputs: a compiled model, or one on a device."""

    @property
    def inputs(self) -> Sequence[Port]: ...

    @property
    def outputs(self) -> Sequence[Port]: ...

    @property
    def row_order(self) -> RowOrder | None: ...


def input_bytes(model: Ports, sample: Mapping[str, Array], index: int) -> bytes:
    """The bytes of all inputs of a sample in sequence; ``index`` is for messages.

    Those of an input in rows are in the order in which the rows arrive.
    """
    order = model.row_order
    return b"".join(_input(port, sample, index, order) for port in model.inputs)


def decode(model: Generated, content: bytes, count: int) -> Results:
    """The result file of ``count`` samples."""
    record = _COST.size + sum(port.bytes for port in model.outputs)
    if len(content) != _COST.size + count * record:
        raise ToolError(f"the program wrote {len(content)} bytes instead of {_COST.size + count * record}")
    runs, outputs = [], []
    for offset in range(_COST.size, len(content), record):
        runs.append(_cost(content, offset))
        outputs.append(output_arrays(model, content[offset + _COST.size : offset + record]))
    return Results(_cost(content, 0), runs, outputs)


def _cost(content: bytes, offset: int) -> Cost:
    status, *words, stack_bytes = _COST.unpack_from(content, offset)
    return Cost(status, Stamp(*words[:2]), Stamp(*words[2:]), stack_bytes)


def output_arrays(model: Ports, content: bytes) -> dict[str, Array]:
    """All outputs, from their bytes in sequence."""
    arrays, offset = {}, 0
    for port in model.outputs:
        flat = np.frombuffer(content[offset : offset + port.bytes], port.dtype.newbyteorder("<"))
        arrays[port.name] = flat.astype(port.dtype).reshape(port.shape)
        offset += port.bytes
    return arrays


def _input(port: Port, sample: Mapping[str, Array], index: int, order: RowOrder | None) -> bytes:
    if port.name not in sample:
        given = ", ".join(sorted(sample)) or "nothing"
        raise ConfigError(f"sample {index} has no array for input {port.name!r}", f"it has: {given}")
    array = np.asarray(sample[port.name])
    if array.shape != port.shape:
        raise ConfigError(
            f"input {port.name!r} of sample {index} has shape {array.shape}", f"it must be {port.shape}"
        )
    if array.dtype != port.dtype:
        raise ConfigError(
            f"input {port.name!r} of sample {index} is {array.dtype}", f"it must be {port.dtype}"
        )
    arranged = order.arranged(array) if order else np.ascontiguousarray(array)
    return arranged.astype(port.dtype.newbyteorder("<")).tobytes()
