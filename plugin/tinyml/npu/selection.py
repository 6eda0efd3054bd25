# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Some operators of a TFLite file as a file of their own.

The file is edited in place, because only this keeps every option of every operator as it is: the list of
operators becomes shorter, the inputs and outputs are other ones, and all tensors get names that are unique.
Offsets in FlatBuffers point forward, so new texts and lists go to the end.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

MODEL_SUBGRAPHS, MODEL_SIGNATURES = 2, 7
GRAPH_TENSORS, GRAPH_INPUTS, GRAPH_OUTPUTS, GRAPH_OPERATORS = 0, 1, 2, 3
TENSOR_NAME, TENSOR_SIGNATURE = 3, 7


def name_of(tensor: int) -> str:
    """The name that ``select`` gives to a tensor."""
    return f"t{tensor}"


def select(content: bytes, operators: Sequence[int], inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
    """The first subgraph with these operators, inputs and outputs only (numbers in that subgraph)."""
    file = _File(content)
    model = file.number(0)
    signatures = file.target(model, MODEL_SIGNATURES)
    if signatures:
        file.put(signatures, 0)
    subgraphs = file.target(model, MODEL_SUBGRAPHS)
    file.put(subgraphs, 1)
    graph = file.element(subgraphs, 0)
    listed = file.target(graph, GRAPH_OPERATORS)
    places = [file.element(listed, index) for index in operators]
    file.put(listed, len(places))
    for slot, place in enumerate(places):
        at = listed + 4 + 4 * slot
        file.put(at, place - at)
    tensors = file.target(graph, GRAPH_TENSORS)
    for index in range(file.number(tensors)):
        tensor = file.element(tensors, index)
        file.point(tensor, TENSOR_NAME, file.text(name_of(index)))
        signature = file.target(tensor, TENSOR_SIGNATURE)
        if signature:  # open extents: the shape that the file has is the one that counts
            file.put(signature, 0)
    file.point(graph, GRAPH_INPUTS, file.numbers(inputs))
    file.point(graph, GRAPH_OUTPUTS, file.numbers(outputs))
    return bytes(file.content)


class _File:
    def __init__(self, content: bytes) -> None:
        self.content = bytearray(content) + bytes(-len(content) % 4)

    def number(self, at: int) -> int:
        return int(struct.unpack_from("<I", self.content, at)[0])

    def put(self, at: int, value: int) -> None:
        struct.pack_into("<I", self.content, at, value)

    def field(self, table: int, slot: int) -> int:
        """Where a field of a table is; 0 if the table does not have it."""
        layout = table - int(struct.unpack_from("<i", self.content, table)[0])
        size = struct.unpack_from("<H", self.content, layout)[0]
        if 4 + 2 * slot >= size:
            return 0
        offset = int(struct.unpack_from("<H", self.content, layout + 4 + 2 * slot)[0])
        return table + offset if offset else 0

    def target(self, table: int, slot: int) -> int:
        """Where a field points to; 0 if the table does not have it."""
        at = self.field(table, slot)
        return at + self.number(at) if at else 0

    def element(self, vector: int, index: int) -> int:
        at = vector + 4 + 4 * index
        return at + self.number(at)

    def point(self, table: int, slot: int, to: int) -> None:
        at = self.field(table, slot)
        if not at:
            raise ValueError("a tensor or graph without a field that every converter writes")
        self.put(at, to - at)

    def numbers(self, values: Sequence[int]) -> int:
        at = len(self.content)
        self.content += struct.pack(f"<{1 + len(values)}I", len(values), *values)
        return at

    def text(self, value: str) -> int:
        at = len(self.content)
        encoded = value.encode()
        self.content += struct.pack("<I", len(encoded)) + encoded + b"\0"
        self.content += bytes(-len(self.content) % 4)
        return at
