# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which tensors may share memory (plan/storage.py), decided pair by pair, and the content of bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tinyml.ir import DType, Tensor
from tinyml.memory.plan.content import Segment, _filled, own, part
from tinyml.memory.plan.planner import _covers
from tinyml.memory.plan.problem import Block, Piece
from tinyml.memory.plan.regions import Home, Region
from tinyml.memory.plan.search import Packing, _united
from tinyml.memory.plan.storage import (
    Group,
    Member,
    Storage,
    _conflict,
    _conflicts,
    _home_allows,
    _join,
    _joined_bytes,
)
from tinyml.ops.framework.kernel import Overlay


def member(name: str, first: int, last: int, size: int = 8, dtype: DType = DType.INT8) -> Member:
    tensor = Tensor(name, (size // dtype.bytes,), dtype)
    return Member(tensor, first, last, own(tensor))


def storage(*members: Member, over: dict[tuple[str, str], tuple[Overlay, ...]] | None = None) -> Storage:
    found = Storage({m.tensor.name: m for m in members}, over or {})
    found.groups = {name: Group.of(name, m) for name, m in found.members.items()}
    return found


IN_PLACE = {("x", "y"): (Overlay(0, 0),)}
EARLIER = {("x", "y"): (Overlay(0, -4),)}


@pytest.mark.parametrize(
    "x,y,distance,over,expected",
    [
        ((0, 1), (2, 3), 0, {}, False),  # never live together
        ((0, 2), (2, 3), 0, {}, True),  # both needed at step 2
        ((2, 3), (0, 2), 0, {}, True),
        ((0, 2), (2, 3), 8, {}, False),  # next to each other
        ((0, 2), (2, 3), -8, {}, False),
        ((0, 2), (2, 3), 7, {}, True),  # one byte in common
        ((0, 2), (2, 3), -7, {}, True),
        ((0, 2), (2, 3), 0, IN_PLACE, False),  # computed over an input that is read for the last time
        ((0, 2), (2, 3), 4, IN_PLACE, True),  # at another distance than the kernel allows
        ((0, 3), (2, 3), 0, IN_PLACE, True),  # the input is read once more
        ((0, 2), (1, 3), 0, IN_PLACE, True),  # the output is there before
        ((0, 2), (2, 3), -4, EARLIER, False),
        ((0, 2), (2, 3), 4, EARLIER, True),
    ],
)
def test_who_may_overlap(
    x: tuple[int, int],
    y: tuple[int, int],
    distance: int,
    over: dict[tuple[str, str], tuple[Overlay, ...]],
    expected: bool,
) -> None:
    """In whichever order the two are asked for."""
    stored = storage(member("x", *x), member("y", *y), over=over)
    assert _conflict(stored, "x", "y", 0, distance) == expected
    assert _conflict(stored, "y", "x", distance, 0) == expected
    assert _conflicts(stored, stored.groups["x"], "y", distance) == (expected and x[1] >= y[0])


def test_equal_bytes_may_overlap() -> None:
    x, y = member("x", 0, 5), member("y", 1, 5, 4)
    y = replace(y, content=part(x.content, 4, 8))  # a slice of x
    stored = storage(x, y)
    assert not _conflict(stored, "x", "y", 0, 4)
    assert _conflict(stored, "x", "y", 0, 3)
    assert not _conflict(stored, "y", "x", 4, 0)
    for pair in (("x", "y"), ("y", "x")):
        assert _conflict(replace(stored, copied=frozenset({pair})), "x", "y", 0, 4)


def test_a_joined_group_has_the_bytes_of_both() -> None:
    stored = storage(member("a", 0, 0, 8), member("b", 1, 1, 12), member("c", 2, 2, 4, DType.INT32))
    assert _joined_bytes(stored, "a", "b", 4) == 16
    assert _joined_bytes(stored, "a", "b", -4) == 12
    assert _joined_bytes(stored, "a", "b", -8) == 16
    assert _join(stored, "a", "b", -4)
    assert not _join(stored, "a", "b", 0)  # they are together already
    group = stored.groups["b"]
    assert (group.offsets, group.start, group.end, group.alignment) == ({"a": 0, "b": -4}, -4, 8, 1)
    assert not _join(stored, "a", "c", -3)  # words at an odd distance from the first byte
    assert _join(stored, "a", "c", 0)
    assert (group.offsets["c"], group.start, group.end, group.alignment) == (0, -4, 8, 4)
    assert stored.groups["c"] is group
    assert group.by_last == [(0, "a"), (1, "b"), (2, "c")]
    assert group.needed_from(1) == ["b", "c"]
    assert _joined_bytes(stored, "c", "c", 0) == 12


def test_a_group_moves_into_the_memory_of_its_tensor() -> None:
    """Offsets then count from the start of that memory, whichever of the two was there first."""
    for first, second, distance in (("state", "x", 4), ("x", "state", -4)):
        stored = storage(member("state", 0, 9, 16), member("x", 10, 11, 8))
        stored.groups["state"].home = Home(Region.STATE, 0, "state", 12)
        assert _join(stored, first, second, distance)
        group = stored.groups["x"]
        assert group.home is not None
        assert (group.offsets, group.start, group.end) == ({"state": 0, "x": 4}, 0, 16)


@pytest.mark.parametrize(
    "region,x,offset,may_stay,expected",
    [
        (Region.STATE, member("x", 3, 4), 0, (), True),
        (Region.STATE, member("x", 3, 4), 8, (), True),  # up to the last byte
        (Region.STATE, member("x", 3, 4), 9, (), False),
        (Region.STATE, member("x", 3, 4), -1, (), False),
        (Region.STATE, member("x", 3, 4, dtype=DType.INT16), 0, (), False),  # declared with another type
        (Region.STATE, member("x", 3, 5), 0, (), True),
        (Region.STATE, member("x", 3, 6), 0, (), False),  # the next value of the state comes before
        (Region.STATE, member("x", 3, 6), 0, ("x",), True),
        (Region.OUTPUT, member("x", 3, 6), 0, (), True),
        (Region.INPUT, member("x", 3, 4), 0, (), False),  # the caller's input is never written
    ],
)
def test_what_may_live_outside_the_arena(
    region: Region, x: Member, offset: int, may_stay: tuple[str, ...], expected: bool
) -> None:
    home = Home(region, 0, "home", 5, frozenset(may_stay))
    stored = storage(member("home", 0, 2, 16), x, member("other", 0, 9))
    at_home, alone, elsewhere = (stored.groups[name] for name in ("home", "x", "other"))
    assert _home_allows(stored, elsewhere, alone, {"x": 100})  # in the arena, anywhere
    at_home.home = home
    assert _home_allows(stored, at_home, alone, {"x": offset}) == expected
    assert _home_allows(stored, alone, at_home, {"home": -offset}) == expected
    elsewhere.home = replace(home, tensor="other")
    assert not _home_allows(stored, at_home, elsewhere, {"other": 0})  # two homes


def test_copies_of_the_callers_input_stay_there() -> None:
    home, x = member("home", 0, 2, 16), member("x", 3, 4)
    stored = storage(home, replace(x, content=part(home.content, 4, 12)))
    stored.groups["home"].home = Home(Region.INPUT, 0, "home", 5)
    allowed = [
        _home_allows(stored, stored.groups["home"], stored.groups["x"], {"x": offset}) for offset in range(10)
    ]
    assert [offset for offset, is_allowed in enumerate(allowed) if is_allowed] == [4]


def test_bytes_of_a_part() -> None:
    content = (Segment(0, 4, "a", 10), Segment(4, 12, "b", 0))
    assert part(content, 0, 12) == content
    assert part(content, 2, 6) == (Segment(0, 2, "a", 12), Segment(2, 4, "b", 0))
    assert part(content, 4, 6) == (Segment(0, 2, "b", 0),)
    assert part(content, 6, 8) == (Segment(0, 2, "b", 2),)
    assert part(content, 2, 4) == (Segment(0, 2, "a", 12),)


def test_gaps_are_the_tensors_own_bytes() -> None:
    y = Tensor("y", (12,), DType.INT8)
    assert _filled(y, []) == own(y)
    assert _filled(y, [Segment(8, 12, "b", 0), Segment(0, 4, "a", 0)]) == (
        Segment(0, 4, "a", 0),
        Segment(4, 8, "y", 4),
        Segment(8, 12, "b", 0),
    )
    # Neighbours join if they are neighbours in the other tensor, too.
    assert _filled(y, [Segment(0, 4, "a", 2), Segment(4, 12, "a", 6)]) == (Segment(0, 12, "a", 2),)
    for other in (Segment(4, 12, "a", 5), Segment(4, 12, "b", 6)):
        assert _filled(y, [Segment(0, 4, "a", 2), other]) == (Segment(0, 4, "a", 2), other)
    assert _filled(y, [Segment(0, 4, "a", 2), Segment(5, 12, "a", 6)])[1] == Segment(4, 5, "y", 4)


@pytest.mark.parametrize(
    "ranges,covered",
    [
        ({(0, 8)}, True),
        ({(0, 4), (4, 8)}, True),
        ({(4, 8), (0, 5)}, True),
        ({(0, 4), (5, 8)}, False),
        ({(1, 8)}, False),
        ({(0, 7)}, False),
        ({(0, 8), (2, 3)}, True),
        (set(), False),
    ],
)
def test_an_output_is_covered_by_its_parts(ranges: set[tuple[int, int]], covered: bool) -> None:
    assert _covers(ranges, 8) == covered


def test_ranges_that_overlap_are_united() -> None:
    assert _united([]) == []
    assert _united([(4, 8), (0, 5)]) == [(0, 8)]
    assert _united([(0, 9), (2, 5), (8, 10)]) == [(0, 10)]
    assert _united([(0, 5), (5, 8)]) == [(0, 5), (5, 8)]  # open ranges: 5 itself is free


def test_a_block_excludes_its_rivals_from_its_own_bytes() -> None:
    """A block of two pieces with a gap between them, which a small block fits into."""
    long = Block("long", (Piece(0, 8, 0, 3), Piece(12, 8, 0, 3)))
    packing = Packing([long, Block("small", (Piece(0, 4, 1, 1),)), Block("later", (Piece(0, 4, 4, 4),))])
    free = [at for at in range(-6, 26) if not packing.excludes(0, 0, 1, at)]
    assert free == [-6, -5, -4, 8, *range(20, 26)]
    assert [at for at in range(-4, 28) if not packing.excludes(0, 2, 1, at)] == [
        -4,
        -3,
        -2,
        10,
        *range(22, 28),
    ]
    assert packing.lowest(1, {0: 0}) == 8
    assert packing.lowest(1, {0: 0}, 9) == 20
    assert packing.lowest(1, {0: 4}) == 0
    assert packing.lowest(2, {0: 0, 1: 0}) == 0
