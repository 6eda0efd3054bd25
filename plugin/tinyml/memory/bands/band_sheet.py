# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The sheet on which a kernel writes its part of a layer that consists of several operators."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array
from tinyml.ops.framework.kernel import Record, Sheet, Table
from tinyml.ops.framework.tally import Tally


@dataclass
class PartSheet(Sheet):
    """What the kernel of one operator writes: lines and tables of the whole layer, pointers of its own."""

    sources: list[str] = field(default_factory=list)  # of operands that are not constant, which come first
    result: str = "y"
    memory: str = "scratch"
    made: dict[str, list[Record]] = field(default_factory=dict)  # records of this operator, by type
    whole: Sheet | None = None  # the sheet of the layer

    def x(self, index: int = 0) -> str:
        tensor = self.layer.input(index)
        return self.table(f"in{index}", tensor.value) if tensor.is_constant else self.sources[index]

    def y(self, index: int = 0) -> str:
        return self.result

    @property
    def scratch(self) -> str:
        return self.memory

    @contextmanager
    def counted(self, link: int) -> Iterator[None]:
        """What is written inside is what this operator does in a band; the whole layer counts it, too."""
        assert self.whole is not None, "every part belongs to a layer"
        self.tally, first = Tally(), len(self.lines)
        yield
        self.tally.body = self._as_alone("\n".join(self.lines[first:]))
        self.whole.tally.add(link, self.tally)

    def _as_alone(self, text: str) -> str:
        """C with the names that tensors have in a function of their own: costs of loops are known by it."""
        names = [(self.result, "y"), *((source, f"x{i}") for i, source in enumerate(self.sources))]
        for place, name in names:
            words = r"\s+".join(map(re.escape, place.split()))
            text = re.sub(rf"(?<!\w){words}(?!\w)", name, text)
        return text

    def call(self, function: str, record: str, *operands: str) -> None:
        assert self.whole is not None, "every part belongs to a layer"
        self.whole.call(function, record, *operands)

    @property
    def plays(self) -> bool:
        return self.whole is not None and self.whole.plays

    def note(self, function: str, members: Mapping[str, object], *operands: str) -> None:
        assert self.whole is not None, "every part belongs to a layer"
        self.whole.note(function, members, *operands)

    def element(self, pointer: str, offset: int, step: int) -> str:
        if self.whole is not None and self.plays:
            return self.whole.element(pointer, offset, step)
        return super().element(pointer, offset, step)

    def _write(self, text: str) -> None:
        if self.whole is not None and self.plays:
            self.whole._write(text)
        else:
            super()._write(text)

    def table(self, suffix: str, values: Array, alignment: int = 1, holds: str = "") -> str:
        """A kernel may lay out weights differently for another band: those get their own name."""
        name, number = suffix, 1
        while (found := self.named.get(f"{self.prefix}_{name}")) is not None and not _equal(found, values):
            number += 1
            name = f"{suffix}{number}"
        return super().table(name, values, alignment, holds)

    def record(self, type_: str, suffix: str, members: Mapping[str, object]) -> str:
        """Reuses an equal record of another band."""
        texts = {k: str(v) for k, v in members.items()}
        made = self.made.setdefault(type_, [])
        for record in made:
            if record.members == texts:
                return record.name
        name = super().record(type_, f"{suffix}{len(made) + 1}", members)
        made.append(self.records[-1])
        return name


def _equal(table: Table, values: Array) -> bool:
    """Whether a table has these elements; it may be another layer's, with another shape."""
    return table.values.dtype == values.dtype and table.values.tobytes() == values.tobytes()
