# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A chain of windows computed in bands of rows: which rows each of them computes, reads and keeps.

Only the rows of a tensor inside the chain that are still needed are kept, in a buffer that moves with the
bands. No row is computed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import pairwise

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir.hook_types import RowWindow


@dataclass(frozen=True)
class Stage:
    """What one window of the chain does in one band."""

    rows: int  # that it computes
    into: int  # the first of them, in the buffer (in the last stage: in the output)
    source: int  # the first row it reads, in the buffer before (in the first stage: in the input)
    source_rows: int
    pad_top: int
    pad_bottom: int


@dataclass(frozen=True)
class Move:
    """Rows of a buffer that the next band needs and that move to its start."""

    start: int
    rows: int


@dataclass(frozen=True)
class Band:
    """Near the end, a stage may have nothing left to do; it then has no rows."""

    stages: tuple[Stage, ...]
    moves: tuple[Move | None, ...]  # per buffer, after the band
    side: tuple[Stage, ...] = ()  # a second path from the input to the last stage

    def same_work(self, other: Band) -> bool:
        """Whether the bands differ in nothing but their place in input and output."""
        return self._placeless == other._placeless and self.moves == other.moves

    @cached_property
    def _placeless(self) -> tuple[Stage, ...]:
        stages = [replace(self.stages[0], source=0), *self.stages[1:]]
        stages[-1] = replace(stages[-1], into=0)
        return (*stages, *(replace(stage, source=0) for stage in self.side[:1]), *self.side[1:])

    @property
    def in_order(self) -> tuple[Stage, ...]:
        """All stages as a band computes them: the side before the last."""
        return (*self.stages[:-1], *self.side, self.stages[-1])

    @property
    def place(self) -> tuple[int, int, int]:
        """First row of the input that it reads, first row of the output, first row that the side reads."""
        side = self.side[0].source if self.side else self.stages[0].source
        return self.stages[0].source, self.stages[-1].into, side


@dataclass(frozen=True)
class Bands:
    bands: tuple[Band, ...]
    buffer_rows: tuple[int, ...]  # of each tensor inside the chain
    side_rows: tuple[int, ...] = ()  # of each tensor of the side

    def runs(self) -> Sequence[Sequence[Band]]:
        """Bands that one loop computes: the same work, at places that are equally far apart."""
        return self._runs

    @cached_property
    def _runs(self) -> Sequence[Sequence[Band]]:
        runs: list[list[Band]] = []
        for band in self.bands:
            if runs and runs[-1][-1].same_work(band) and _even([*runs[-1], band]):
                runs[-1].append(band)
            else:
                runs.append([band])
        return runs

    @cached_property
    def kinds(self) -> list[list[Stage]]:
        """By window, in the order of a band: what it does in any band, wherever its rows are."""
        found: list[dict[Stage, None]] = [{} for _ in self.bands[0].in_order]
        for run in self.runs():
            for kinds, stage in zip(found, run[0].in_order, strict=True):
                if stage.rows:
                    kinds.setdefault(replace(stage, into=0, source=0))
        return [list(kinds) for kinds in found]


def _even(bands: Sequence[Band]) -> bool:
    steps = {tuple(y - x for x, y in zip(a.place, b.place, strict=True)) for a, b in pairwise(bands[-3:])}
    return len(steps) == 1


def cut(
    windows: Sequence[RowWindow], rows: int, side: Sequence[RowWindow] = (), gently: bool = False
) -> Bands | None:
    """Bands of ``rows`` output rows; None if a window sees only padding.

    ``side``: a second path from the input to the last window, of windows that do not overlap. ``gently``: no
    window computes more rows in the first bands than in later ones; the first bands may have no output.
    """
    return _cut(tuple(windows), rows, tuple(side), gently)


@lru_cache(maxsize=64)  # everything that asks about a chain needs its bands
def _cut(
    windows: tuple[RowWindow, ...], rows: int, side: tuple[RowWindow, ...], gently: bool
) -> Bands | None:
    count = len(windows)
    done = [0] * count  # by the output tensor of a window: rows computed
    # The first row kept. Padding before the first row counts, so that all bands have rows at the same places.
    base = [-window.pad_top for window in windows[1:]]
    buffer_rows = [0] * (count - 1)
    bands = []
    while done[-1] < windows[-1].out_rows:
        wanted = _wanted(windows, done, rows)
        if gently:
            wanted = _in_reach(windows, done, wanted, rows)
        stages = []
        for i, window in enumerate(windows):
            low, high = window.read(done[i], wanted[i])
            first, end = window.inside(low), window.inside(high)
            if wanted[i] <= done[i]:  # all rows that the rest of the chain needs are available
                first, end, low, high = window.in_rows, window.in_rows, window.in_rows, window.in_rows
            elif end <= first:
                return None
            source = first - (base[i - 1] if i else 0)
            into = done[i] - (base[i] if i < count - 1 else 0)
            padding = (first - low, high - end)
            stages.append(Stage(wanted[i] - done[i], into, source, end - first, *padding))
        beside = _side(side, done[-1], wanted[-1])
        if beside is None:
            return None
        done = wanted
        moves: list[Move | None] = []
        for i, window in enumerate(windows[1:]):
            buffer_rows[i] = max(buffer_rows[i], done[i] - base[i])
            needed = min(window.read(done[i + 1], done[i + 1] + 1)[0], done[i])
            last = done[-1] == windows[-1].out_rows
            moved = needed > base[i] and needed < done[i] and not last
            moves.append(Move(needed - base[i], done[i] - needed) if moved else None)
            base[i] = needed
        bands.append(Band(tuple(stages), tuple(moves), beside))
    side_rows = [max(band.side[i].rows for band in bands) for i in range(len(side))]
    return Bands(tuple(bands), tuple(buffer_rows), tuple(side_rows))


def _in_reach(windows: Sequence[RowWindow], done: Sequence[int], wanted: list[int], rows: int) -> list[int]:
    """As many of the wanted rows as a later band computes, of those whose own rows are there by then."""
    usual = rows
    limits = [0] * len(windows)
    for i in range(len(windows) - 1, -1, -1):
        limits[i], usual = usual, usual * windows[i].stride
    found = list(done)
    for i, window in enumerate(windows):
        found[i] = min(wanted[i], done[i] + limits[i])
        while i and found[i] > done[i] and window.inside(window.read(done[i], found[i])[1]) > found[i - 1]:
            found[i] -= 1
    return found


def to_sums(found: Bands | None) -> Bands | None:
    """The same bands followed by one more stage, which uses the rows of a band at once and keeps none."""
    if found is None:
        return None
    bands = []
    for band in found.bands:
        rows = band.stages[-1].rows
        last = replace(band.stages[-1], into=0)
        bands.append(replace(band, stages=(*band.stages[:-1], last, Stage(rows, 0, 0, rows, 0, 0))))
    most = max(band.stages[-1].rows for band in bands)
    return Bands(tuple(bands), (*found.buffer_rows, most))


def _side(windows: Sequence[RowWindow], first: int, end: int) -> tuple[Stage, ...] | None:
    """What the windows of a side do for output rows from ``first`` to before ``end``: nothing is kept."""
    stages: list[Stage] = []
    for window in reversed(windows):
        low, high = window.read(first, end)
        rows, (first, end) = end - first, (window.inside(low), window.inside(high))
        if end <= first:
            return None
        stages.insert(0, Stage(rows, 0, 0, end - first, first - low, high - end))
    if stages:
        stages[0] = replace(stages[0], source=first)
    return tuple(stages)


def _wanted(windows: Sequence[RowWindow], done: Sequence[int], rows: int) -> list[int]:
    """The number of output rows of each window that are computed after the next band."""
    wanted = list(done)
    wanted[-1] = min(done[-1] + rows, windows[-1].out_rows)
    for i in range(len(windows) - 1, 0, -1):
        _, high = windows[i].read(done[i], wanted[i])
        wanted[i - 1] = max(done[i - 1], windows[i].inside(high))
    return wanted
