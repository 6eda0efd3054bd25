# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How many bytes each part of an image takes, read from the linker's map."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, fields
from pathlib import Path

from tinyml.base.lazy_dataclass import dataclass

MODEL = "model"
RUNTIME = "runtime"
CMSIS_NN = "cmsis-nn"
HARNESS = "harness"
LIBRARY = "library"  # the compiler's own: memcpy, expf, soft-float


@dataclass(frozen=True)
class Sizes:
    """Bytes by kind: instructions, constants, initialised and zeroed variables."""

    text: int = 0
    rodata: int = 0
    data: int = 0
    bss: int = 0

    def __add__(self, other: Sizes) -> Sizes:
        return Sizes(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def flash(self) -> int:
        return self.text + self.rodata + self.data

    @property
    def ram(self) -> int:
        return self.data + self.bss


@dataclass(frozen=True)
class Footprint:
    """Bytes by part. The harness itself (start-up, file access, stack) is not part of the model."""

    parts: Mapping[str, Sizes] = field(default_factory=dict)

    def part(self, name: str) -> Sizes:
        return self.parts.get(name, Sizes())

    @property
    def total(self) -> Sizes:
        """Everything but the harness."""
        return sum((sizes for name, sizes in self.parts.items() if name != HARNESS), Sizes())

    @property
    def weights_bytes(self) -> int:
        """The model's constants."""
        return self.part(MODEL).rodata

    @property
    def code_bytes(self) -> int:
        """Flash of everything that is not the model's constants."""
        return self.total.flash - self.weights_bytes


_OUTPUT = re.compile(r"^\.(?:t(?=data|bss))?(text|rodata|data|bss)\b")  # .tdata, .tbss: per thread
_INPUT = re.compile(r"^ ([.\w]\S*)?\s+0x[0-9a-f]+\s+0x([0-9a-f]+) (\S.*)$")


@dataclass(frozen=True)
class Section:
    """A part of an object file that the linker kept. ``kind``: text, rodata, data or bss."""

    kind: str
    name: str
    file: str
    bytes: int


def read_map(text: str, parts: Mapping[Path, str]) -> Footprint:
    """The footprint in a GNU linker map; ``parts`` maps object files to parts."""
    found: dict[str, Sizes] = {}
    for section in kept_sections(text):
        part = parts.get(Path(section.file), LIBRARY)
        found[part] = found.get(part, Sizes()) + Sizes(**{section.kind: section.bytes})
    return Footprint({name: sizes for name, sizes in found.items() if sizes != Sizes()})


def kept_sections(text: str) -> Iterator[Section]:
    """What a linked image consists of, from the linker's map."""
    _, _, memory_map = text.partition("Linker script and memory map")
    kind = ""
    for line in _joined(memory_map):
        if line and not line[0].isspace():
            opening = _OUTPUT.match(line)
            kind = opening[1] if opening else ""
        elif kind and (entry := _INPUT.match(line)):
            yield Section(kind, entry[1] or "", entry[3], int(entry[2], 16))


def _joined(text: str) -> list[str]:
    """The map's lines; a section name too long for its column is joined with the line after it."""
    return re.sub(r"^( \.\S+)\n(?=\s+0x)", r"\1", text, flags=re.MULTILINE).splitlines()
