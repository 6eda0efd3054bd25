# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the NPU requires of a part: commands, constants and memory, read from the file that Vela writes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from tinyml.base.errors import ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.importers.tflite_file import OperatorRecord, Subgraph, parse
from tinyml.npu.operator import Slot

CUSTOM = "ethos-u"
VELA_PAYLOAD, DRIVER_PAYLOAD, DESCRIPTION = b"COP2", b"COP1", b"VEUM"
CONFIGURE, COMMANDS, NOTHING = 0x00100001, 2, 5
TABLE_REGIONS = (0x128, 0x129, 0x130, 0x131)
"""Commands that name a region: of weights, scales, source and destination of copies."""
TENSOR_REGIONS = (0x10F, 0x11F, 0x18F)
"""The same for inputs and outputs. On Ethos-U85, operators in a chain number buffers inside the NPU here."""
WEIGHTS, SCRATCH, INPUTS, OUTPUTS = 0, 1, 3, 4
REGIONS = (WEIGHTS, SCRATCH, INPUTS, OUTPUTS)
INTERNAL = 0x100  # copies to the NPU's own memory name no region


@dataclass(frozen=True)
class Payload:
    """A compiled part. ``inputs`` and ``outputs`` name tensors, in the order of their slots."""

    commands: bytes  # for the driver, header included
    weights: bytes
    scratch_bytes: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_slots: tuple[Slot, ...]
    output_slots: tuple[Slot, ...]


def operators(model: bytes) -> tuple[Subgraph, list[OperatorRecord], list[OperatorRecord]]:
    """The graph that Vela wrote, its NPU operators, and those that it leaves to the CPU."""
    (graph, *_) = parse(Path("the output of Vela"), model)
    npu = [op for op in graph.operators if op.is_custom and op.op_type == CUSTOM]
    return graph, npu, [op for op in graph.operators if op not in npu]


def read(model: bytes, graph: Subgraph, operator: OperatorRecord, accelerator: str) -> Payload:
    """The payload of an NPU operator. Its operands are commands, constants, scratch twice, then inputs."""
    commands, constants, scratch, _, *given = operator.inputs
    places = _places(model, len(graph.tensors))
    stream = driver_payload(graph.tensors[commands].data or b"", accelerator)
    return Payload(
        stream,
        graph.tensors[constants].data or b"",
        graph.tensors[scratch].shape[0] if graph.tensors[scratch].shape else 0,
        tuple(graph.tensors[i].name for i in given),
        tuple(graph.tensors[i].name for i in operator.outputs),
        _slots(places, given),
        _slots(places, operator.outputs),
    )


def driver_payload(vela: bytes, accelerator: str) -> bytes:
    """The commands with the header that the driver reads. Vela has a newer header for streams like ours."""
    words = struct.unpack(f"<{len(vela) // 4}I", vela)
    known = len(words) > 12 and vela[:4] == VELA_PAYLOAD and struct.pack("<I", words[7]) == DESCRIPTION
    if not known or 4 * (len(words) - 6) != words[5]:
        raise _unknown("the header of its command stream")
    configuration, architecture = words[10], words[11]
    stream = words[7 + words[6] // 4 :]
    chains = accelerator.startswith("ethos-u85")
    for region in regions(stream, TABLE_REGIONS if chains else (*TABLE_REGIONS, *TENSOR_REGIONS)):
        if region not in REGIONS:
            raise _unknown(f"region {region} in its command stream")
    count = len(stream)
    header = [CONFIGURE, configuration, architecture, NOTHING, NOTHING, NOTHING]
    header.append(COMMANDS | (count >> 16) << 8 | (count & 0xFFFF) << 16)
    return DRIVER_PAYLOAD + struct.pack(f"<{len(header) + count}I", *header, *stream)


def regions(stream: Sequence[int], commands: Sequence[int]) -> set[int]:
    """The regions of memory that these commands name."""
    found, at = set(), 0
    while at < len(stream):
        word = stream[at]
        code, parameter = word & 0x3FF, word >> 16
        has_payload = word & 0xC000 == 0x4000
        if not has_payload and code in commands and not parameter & INTERNAL:
            found.add(parameter & 0x7)
        at += 2 if has_payload else 1
    return found


def _places(model: bytes, tensors: int) -> tuple[int, ...]:
    """Where each tensor is in its region: Vela writes it down as the file's metadata."""
    import tflite

    file = tflite.Model.GetRootAs(model, 0)
    for index in range(file.MetadataLength()):
        entry = file.Metadata(index)
        if entry.Name() == b"OfflineMemoryAllocation":
            data = bytes(file.Buffers(entry.Buffer()).DataAsNumpy())
            _, _, count, *offsets = struct.unpack(f"<{len(data) // 4}i", data)
            if count == tensors == len(offsets):
                return tuple(offsets)
    raise _unknown("where its tensors are")


def _slots(places: Sequence[int], tensors: Sequence[int]) -> tuple[Slot, ...]:
    return tuple(Slot(places[i]) for i in tensors)


def _unknown(what: str) -> ToolError:
    return ToolError(f"this version of Vela is not known: {what}", "pip install 'ethos-u-vela>=5.2,<6'")
