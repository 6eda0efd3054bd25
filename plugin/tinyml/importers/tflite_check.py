# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A .tflite file against the rules of its encoding, before anything of it is used.

A FlatBuffer is tables that point at vectors, texts and other tables. The classes of the schema package follow
these pointers wherever they lead. This walk follows every pointer that the importer may follow, and refuses
one that leaves the file, a table whose fields lie outside it, and a file whose pointers reach the same
parts so often that reading it would take far longer than its size justifies.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

import tflite

from tinyml.base import limits
from tinyml.base.lazy_dataclass import dataclass

POINTER = 4
"""Bytes of a pointer, and of the length before a vector or a text."""

SHARED = 16
"""How often the bytes of a file may be read on average; converters share a few names and shapes at most."""

TABLES = {
    ("Model", "OperatorCodes"): "OperatorCode",
    ("Model", "Subgraphs"): "SubGraph",
    ("Model", "Buffers"): "Buffer",
    ("SubGraph", "Tensors"): "Tensor",
    ("SubGraph", "Operators"): "Operator",
    ("Tensor", "Quantization"): "QuantizationParameters",
    ("Tensor", "Sparsity"): "SparsityParameters",
    ("SparsityParameters", "DimMetadata"): "DimensionMetadata",
}
"""Fields of the schema that hold a table, or a vector of them, which the importer reads."""

UNREAD = {
    ("Model", "Metadata"),
    ("Model", "SignatureDefs"),
    ("Tensor", "VariantTensors"),
    ("Operator", "BuiltinOptions2"),
}
"""Fields that the importer at most finds present: what they point at is never followed."""

OPTIONS = {number: name for name, number in vars(tflite.BuiltinOptions).items() if isinstance(number, int)}
"""The class of an operator's options by the number beside them."""

INDICES = {number: name for name, number in vars(tflite.SparseIndexVector).items() if isinstance(number, int)}
"""The same for the indices of a sparse axis."""

DETAILS = {2: "BlockwiseQuantization"}
"""The same for a quantisation; other kinds are not read."""

UNIONS = {
    "QuantizationParameters.Details": DETAILS,
    "Operator.BuiltinOptions": OPTIONS,
    "DimensionMetadata.ArraySegments": INDICES,
    "DimensionMetadata.ArrayIndices": INDICES,
}
"""Fields whose table is named by the field of the same name with ``Type`` after it."""


@dataclass(frozen=True)
class Field:
    """A field of a table: its place in the table's index, and its bytes or those of a vector's element."""

    name: str
    slot: int
    size: int
    pointer: bool = False


NEWER = {
    "BlockwiseQuantization": (
        Field("Scales", 0, 4),
        Field("ZeroPoints", 1, 4),
        Field("BlockSize", 2, 4),
        Field("BlockShape", 3, 4, pointer=True),
    )
}
"""Tables that the schema package does not know yet."""


class _Recorder:
    """A builder that builds nothing: called by the schema's functions, it learns the layout of a table."""

    def __init__(self) -> None:
        self.slot, self.size, self.pointer = 0, 0, False

    def __getattr__(self, name: str) -> Any:
        sizes = {
            "Bool": 1,
            "Int8": 1,
            "Uint8": 1,
            "Int16": 2,
            "Uint16": 2,
            "Int64": 8,
            "Uint64": 8,
            "Float64": 8,
        }
        kind = name.removeprefix("Prepend").removesuffix("Slot")

        def prepend(slot: int, value: object, default: object) -> None:
            self.slot, self.size, self.pointer = slot, sizes.get(kind, 4), kind == "UOffsetTRelative"

        return prepend

    def StartVector(self, size: int, count: int, alignment: int) -> None:
        self.size = size


@cache
def fields(table: str) -> tuple[Field, ...]:
    """The fields of a table, as the schema package writes them."""
    if table in NEWER:
        return NEWER[table]
    module = vars(tflite)
    names = [name.removeprefix(f"{table}Add") for name in module if name.startswith(f"{table}Add")]
    found = []
    for name in names:
        recorder = _Recorder()
        module[f"{table}Add{name}"](recorder, 0)
        vector = module.get(f"{table}Start{name}Vector")
        if recorder.pointer:
            recorder.size = 1  # of a text
            if vector is not None:
                vector(recorder, 0)
        found.append(Field(name, recorder.slot, recorder.size, recorder.pointer))
    return tuple(found)


def check(content: bytes) -> None:
    """Raise ValueError if a pointer, a length or a field is outside the file, ModelError above a limit."""
    walk = _Walk(content)
    walk.table("Model", walk.pointer(0, "the file"))


class _Walk:
    def __init__(self, content: bytes) -> None:
        self.content, self.size = content, len(content)
        self.tables = self.operators = self.bytes = 0

    def number(self, form: str, position: int, what: str) -> int:
        """The number at a position."""
        if not 0 <= position <= self.size - struct.calcsize(form):
            raise ValueError(f"{what} is at byte {position:,} of {self.size:,}")
        return int(struct.unpack_from(form, self.content, position)[0])

    def pointer(self, position: int, what: str) -> int:
        """Where the pointer at a position leads."""
        return position + self.number("<I", position, what)

    def vector(self, position: int, size: int, what: str) -> tuple[int, int]:
        """Position of the first element, and the number of elements."""
        count = self.number("<I", position, what)
        if position + POINTER + count * size > self.size:
            raise ValueError(f"{what} has {count:,} elements, more than the file has bytes for")
        self.reads(count * size)
        return position + POINTER, count

    def reads(self, count: int) -> None:
        """Note that the importer reads so many bytes here, perhaps not for the first time."""
        self.bytes += count
        if self.bytes > SHARED * self.size:
            raise ValueError("its vectors are shared more often than the file has room for")

    def present(self, table: str, position: int) -> Iterator[tuple[Field, int]]:
        """The fields that a table has, with their positions; all of them are inside the table."""
        index = position - self.number("<i", position, f"a table {table}")
        index_bytes = self.number("<H", index, f"the index of a table {table}")
        table_bytes = self.number("<H", index + 2, f"the index of a table {table}")
        if index + index_bytes > self.size or position + table_bytes > self.size:
            raise ValueError(f"a table {table} at byte {position:,} of {self.size:,} does not fit the file")
        for field in fields(table):
            entry = 4 + 2 * field.slot
            if entry + 2 > index_bytes:
                continue
            offset = self.number("<H", index + entry, f"the index of a table {table}")
            if not offset:
                continue
            if offset < 4 or offset + (POINTER if field.pointer else field.size) > table_bytes:
                raise ValueError(f"the field {field.name} is outside its table {table}")
            yield field, position + offset

    def table(self, table: str, position: int) -> None:
        self.tables += 1
        if self.tables > self.size // 4:  # the smallest has four bytes: some are reached again and again
            raise ValueError("its tables are shared more often than the file has room for")
        if table == "Operator":
            self.operators += 1
            limits.check("nodes", self.operators, "the model")
        found = dict(self.present(table, position))
        if table == "Buffer":
            self.outside(found)
        for field, place in found.items():
            if not field.pointer or (table, field.name) in UNREAD:
                continue
            what = f"{table}.{field.name}"
            target = self.pointer(place, what)
            inner = TABLES.get((table, field.name))
            if what in UNIONS:
                self.union(what, found, target)
            elif inner is None:
                self.vector(target, field.size, what)
            elif f"{table}Start{field.name}Vector" in vars(tflite):
                first, count = self.vector(target, POINTER, what)
                for entry in range(first, first + POINTER * count, POINTER):
                    self.table(inner, self.pointer(entry, what))
            else:
                self.table(inner, target)

    def outside(self, found: dict[Field, int]) -> None:
        """Data of a buffer behind the tables, as in files above 2 GB."""
        numbers = {
            field.name: self.number("<Q", place, f"Buffer.{field.name}")
            for field, place in found.items()
            if not field.pointer
        }
        if numbers.get("Offset", 0) > 1:
            self.reads(numbers.get("Size", 0))

    def union(self, what: str, found: dict[Field, int], target: int) -> None:
        """Such as the options of an operator, as the table that the number beside them names."""
        wanted = f"{what.split('.')[1]}Type"
        kinds = [place for field, place in found.items() if field.name == wanted]
        kind = self.number("<B", kinds[0], f"{what}Type") if kinds else 0
        name = UNIONS[what].get(kind, "NONE")
        if name != "NONE":
            self.table(name, target)
