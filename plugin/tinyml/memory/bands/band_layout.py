# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the rows inside a chain lie in its scratch memory.

A link writes its rows over those that it reads for the last time, where its kernel allows that; buffers and
working memory that are not needed at the same time share memory. In a chain of depthwise and pointwise
convolutions, all buffers then form a stack that slides down by one band after each band: the new row of each
tensor lies where the oldest row of the tensor before it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from tinyml.base.lazy_dataclass import dataclass
from tinyml.memory.bands.band_rows import Band, Bands, Stage
from tinyml.memory.plan.problem import Block, Piece, Problem, uncovered
from tinyml.memory.plan.solve import quick

ALIGNMENT = 8  # of buffers and of working memory


@dataclass(frozen=True)
class Lead:
    """How a link may write over its input: at most ``distance`` bytes after the input's first byte."""

    distance: int
    exact: bool = False  # not less either


@dataclass(frozen=True)
class Layout:
    """Offsets in the scratch memory of a chain."""

    buffers: tuple[int, ...]  # of each tensor inside the chain
    work: tuple[int, ...]  # of each link's working memory
    sums: int
    bytes: int


@dataclass(frozen=True)
class Contents:
    """What the scratch memory holds. Links are numbered in the order in which a band computes them."""

    bands: Bands
    row_bytes: tuple[int, ...]  # of each tensor inside the chain: the outputs of all links but the last
    work_bytes: tuple[int, ...]  # of each link
    sum_bytes: int
    lead: Callable[[int, Stage], Lead | None]  # of a link in a band; None: it needs its input to the end

    def layout(self) -> Layout:
        """The smaller of two layouts: with links that write over their input, and without."""
        groups = self._groups()
        joined = self._placed(groups, self._problem(groups))
        apart = [{buffer: 0} for buffer in range(len(self.row_bytes))]
        problem = self._problem(apart)
        if len(groups) == len(apart) or problem.lower_bound_bytes >= joined.bytes:
            return joined
        return min(joined, self._placed(apart, problem), key=lambda layout: layout.bytes)

    @cached_property
    def main(self) -> int:
        """How many tensors lead from the input to the last link on the main way."""
        return len(self.bands.buffer_rows)

    def reader(self, buffer: int) -> int:
        """The link that reads a buffer."""
        return len(self.row_bytes) if buffer == self.main - 1 else buffer + 1

    @cached_property
    def moments(self) -> list[Moment]:
        """Every kind of band, and the one after it."""
        runs = self.bands.runs()
        found: list[Moment] = []
        for run, after in zip(runs, [*[run[0] for run in runs[1:]], None], strict=True):
            if len(run) > 1:
                found.append(Moment(self, run[0], run[1]))
            found.append(Moment(self, run[-1], after))
        return found

    def _problem(self, groups: Sequence[Mapping[int, int]]) -> Problem:
        """A block for each group, for the working memory of each link and for the sums."""
        last = len(self.work_bytes)  # the moves, after all links
        blocks = []
        for group in groups:
            base = min(group.values())
            pieces = {
                Piece(piece.offset + at - base, piece.bytes, piece.first, piece.last)
                for moment in self.moments
                for buffer, at in group.items()
                for piece in (*moment.live(buffer), *moment.moved_to(buffer))
            }
            blocks.append(Block(f"rows {min(group)}", tuple(sorted(uncovered(pieces))), ALIGNMENT))
        for link, size in enumerate(self.work_bytes):
            blocks.append(Block(f"work {link}", (Piece(0, size, link, link),), ALIGNMENT))
        blocks.append(Block("sums", (Piece(0, self.sum_bytes, 0, last),), ALIGNMENT))
        return Problem(tuple(blocks))

    def _placed(self, groups: Sequence[Mapping[int, int]], problem: Problem) -> Layout:
        solution = quick(problem)
        starts = {
            buffer: start + at - min(group.values())
            for group, start in zip(groups, solution.offsets, strict=False)
            for buffer, at in group.items()
        }
        return Layout(
            tuple(starts[buffer] for buffer in range(len(self.row_bytes))),
            solution.offsets[len(groups) : -1],
            solution.offsets[-1],
            -(-solution.arena_bytes // ALIGNMENT) * ALIGNMENT,
        )

    def _groups(self) -> list[dict[int, int]]:
        """Buffers that lie at fixed distances, because links write over their input."""
        groups: list[dict[int, int]] = []
        for buffer in range(len(self.row_bytes)):
            before = buffer - 1
            if buffer and self.reader(before) == buffer:
                distance = self._distance(buffer)
                group = next(group for group in groups if before in group)
                if distance is not None:
                    at = group[before] + distance
                    if not self._conflict(group, buffer, at):
                        group[buffer] = at
                        continue
            groups.append({buffer: 0})
        return groups

    def _distance(self, buffer: int) -> int | None:
        """From the start of the buffer that a link reads to the start of the one it writes, at most."""
        distances, exact = set[int](), False
        for stage in {moment.stages[buffer] for moment in self.moments}:
            if not stage.rows:
                continue
            lead = self.lead(buffer, stage)
            if lead is None:
                return None
            exact = exact or lead.exact
            read, written = stage.source * self.row_bytes[buffer - 1], stage.into * self.row_bytes[buffer]
            distances.add(lead.distance + read - written)
        return None if exact and len(distances) > 1 else min(distances, default=None)

    def _size(self, buffer: int) -> int:
        rows = (*self.bands.buffer_rows, *self.bands.side_rows)
        return rows[buffer] * self.row_bytes[buffer]

    def _conflict(self, group: dict[int, int], buffer: int, at: int) -> bool:
        """Whether rows of a buffer would destroy rows of the group's that are still needed."""
        return any(
            self._destroys(buffer, other, at - other_at)
            for other, other_at in group.items()
            if at < other_at + self._size(other) and other_at < at + self._size(buffer)
        )

    def _destroys(self, buffer: int, other: int, shift: int) -> bool:
        """The same for one of the group's buffers; ``shift`` is the distance from its start."""
        for moment in self.moments:
            for p in moment.live(buffer):
                for q in moment.live(other):
                    apart = p.offset + shift + p.bytes <= q.offset or q.offset + q.bytes <= p.offset + shift
                    replaced = other == buffer - 1 and q.last == p.first == buffer
                    if not apart and p.same_time(q) and not replaced:
                        return True
            if moment.overtakes(buffer, other, shift):
                return True
        return False


@dataclass(frozen=True, eq=False)
class Moment:
    """A band, with how many rows of each buffer the next one finds."""

    contents: Contents
    band: Band
    after: Band | None

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        return self.band.in_order

    def rows(self, buffer: int) -> tuple[int, int, int]:
        """Rows in a buffer before the band and after it, and how many of these the next band needs."""
        stage = self.stages[buffer]
        keeps = self.after is not None and buffer < self.contents.main
        kept = self.after.in_order[buffer].into if self.after is not None and keeps else 0
        return stage.into, stage.into + stage.rows, kept

    @cached_property
    def _pieces(self) -> list[list[Piece]]:
        return [list(self._found(buffer)) for buffer in range(len(self.contents.row_bytes))]

    def live(self, buffer: int) -> list[Piece]:
        """Which bytes of a buffer are needed, from which link on to which; moves come after the last."""
        return self._pieces[buffer]

    def _found(self, buffer: int) -> Iterator[Piece]:
        before, there, kept = self.rows(buffer)
        size, reader, moves = self.contents.row_bytes[buffer], self.contents.reader(buffer), len(self.stages)
        start = max(there - kept, 0)
        spans = (
            (0, min(start, before), 0, reader),
            (start, before, 0, moves),
            (before, start, buffer, reader),
            (max(start, before), there, buffer, moves),
        )
        for low, high, first, last in spans:
            if low < high:
                yield Piece(low * size, (high - low) * size, first, last)

    def source(self, buffer: int) -> tuple[int, int]:
        """The bytes that a move reads."""
        _, there, kept = self.rows(buffer)
        size = self.contents.row_bytes[buffer]
        return (there - kept) * size, there * size

    def moved_to(self, buffer: int) -> Iterator[Piece]:
        """The bytes at the start of a buffer that a move writes."""
        start, end = self.source(buffer)
        if start < end:
            yield Piece(0, end - start, len(self.stages), len(self.stages))

    def overtakes(self, buffer: int, other: int, shift: int) -> bool:
        """Whether the move to the start of one of two buffers destroys rows that the other moves later.

        The buffer that starts first moves first; ``shift`` is the distance from the start of ``other``.
        """
        if shift > 0 or (shift == 0 and buffer > other):
            buffer, other, shift = other, buffer, -shift
        (start, end), (low, high) = self.source(buffer), self.source(other)
        moves = 0 < start < end
        return moves and low < high and shift < high and low < shift + end - start
