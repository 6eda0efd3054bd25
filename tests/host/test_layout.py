# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The layered layout of graphs: edges go down, boxes do not touch, edges pass beside boxes."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tinyml.report.text_layout import Placed, layout

WIDTH, GAP = 100.0, 20.0


def check(placed: Placed, edges: list[tuple[int, int]]) -> None:
    spots: dict[int, list[tuple[float, float]]] = {}
    for x, rank in zip(placed.x, placed.rank, strict=True):
        spots.setdefault(rank, []).append((x, WIDTH))
    for (start, end), route in zip(edges, placed.routes, strict=True):
        assert placed.rank[start] < placed.rank[end]
        assert len(route) == placed.rank[end] - placed.rank[start] + 1
        assert (route[0], route[-1]) == (placed.x[start], placed.x[end])
        for below, x in enumerate(route[1:-1], placed.rank[start] + 1):
            spots[below].append((x, 10.0))
    for level in spots.values():
        level.sort()
        for (left, width), (right, other) in pairwise(level):
            assert right - left >= (width + other) / 2 + GAP - 1e-6


def test_a_chain_is_straight() -> None:
    edges = [(i, i + 1) for i in range(5)]
    placed = layout(6, edges, WIDTH, GAP)
    assert placed.rank == list(range(6))
    assert len(set(placed.x)) == 1


def test_branches_lie_side_by_side_and_meet_in_the_middle() -> None:
    edges = [(0, 1), (0, 2), (1, 3), (2, 3)]
    placed = layout(4, edges, WIDTH, GAP)
    assert placed.rank == [0, 1, 1, 2]
    assert placed.x[0] == pytest.approx((placed.x[1] + placed.x[2]) / 2)
    assert placed.x[3] == pytest.approx(placed.x[0])
    check(placed, edges)


def test_a_shortcut_passes_beside_the_boxes() -> None:
    edges = [(0, 1), (1, 2), (2, 3), (0, 3)]
    placed = layout(4, edges, WIDTH, GAP)
    check(placed, edges)
    assert all(abs(x - placed.x[1]) > WIDTH / 2 for x in placed.routes[3][1:-1])


def test_two_chains_do_not_cross() -> None:
    edges = [(0, 3), (1, 2), (2, 5), (3, 4)]
    placed = layout(6, edges, WIDTH, GAP)
    assert (placed.x[2] < placed.x[3]) == (placed.x[1] < placed.x[0])
    check(placed, edges)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs(seed: int) -> None:
    rng = random.Random(seed)
    nodes = rng.randint(2, 40)
    edges = sorted({(rng.randrange(end), end) for end in range(1, nodes) for _ in range(rng.randint(1, 3))})
    check(layout(nodes, edges, WIDTH, GAP), edges)


def test_nothing_to_lay_out() -> None:
    assert layout(1, [], WIDTH, GAP).x == [0.0]
