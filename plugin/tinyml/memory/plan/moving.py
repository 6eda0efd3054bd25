# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers that only move bytes, such as Concat: what they copy must not lie where they copy it to.

The bytes may be the same, because one operand of a concatenation can contain another. Two tensors in one
place are no conflict then, but a layer that copies from there to there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Layer, View


@dataclass(frozen=True)
class Move:
    """An output of a layer with views: its bytes, the operands in RAM, and the views that it is part of."""

    output: str
    bytes: int
    operands: Mapping[str, int]  # with their bytes
    views: Sequence[View]

    def written(self, at: Mapping[str, int]) -> Iterator[tuple[int, int]]:
        """The parts of the output that the layer writes, if tensors are at these places."""
        here = at[self.output]
        kept = []
        for view in self.views:
            if view.inner in at and view.outer in at and at[view.inner] == at[view.outer] + view.offset_bytes:
                if view.inner == self.output:
                    return
                first = here + view.offset_bytes
                kept.append((first, first + self.operands.get(view.inner, 0)))
        start = here
        for low, high in [*sorted(kept), (here + self.bytes, here + self.bytes)]:
            if start < low:
                yield start, low
            start = max(start, high)

    def overwrites(self, at: Mapping[str, int]) -> Iterator[str]:
        """Operands that lie where the layer writes."""
        parts = list(self.written(at))
        for name, size in self.operands.items():
            if name in at and any(at[name] < high and low < at[name] + size for low, high in parts):
                yield name


class Moves:
    """All outputs of layers with views, by their names and by those of the operands."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        self._of: dict[str, list[Move]] = {}
        for layer in layers:
            views = layer.op.views(layer)
            if not views:
                continue
            operands = [t for t in layer.inputs if t is not None and not t.is_constant]
            sizes = {t.name: t.bytes for t in operands}
            once = [t.name for t in operands if operands.count(t) == 1]
            for y in layer.outputs:
                own = [
                    v for v in views if y.name in (v.inner, v.outer) and (v.inner in once or v.outer in once)
                ]
                move = Move(y.name, y.bytes, sizes, own)
                for name in {y.name, *sizes}:
                    self._of.setdefault(name, []).append(move)

    def of(self, names: Iterable[str]) -> Iterator[Move]:
        """Those that one of the tensors takes part in."""
        found = {id(move): move for name in names for move in self._of.get(name, ())}
        yield from found.values()
