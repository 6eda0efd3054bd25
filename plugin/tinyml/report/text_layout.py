# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A layered layout of a graph: every edge goes down, branches lie side by side, few edges cross.

The three steps of Sugiyama's method: a rank for each node, an order within each rank, and coordinates. An
edge that spans several ranks passes a waypoint in each, so that no box lies on its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise

from tinyml.base.lazy_dataclass import dataclass

SWEEPS = 8
"""Rounds of ordering, down and up; more change little."""


@dataclass(frozen=True)
class Placed:
    """Horizontal centre and rank of each node, and for each edge the centres that it passes, rank by rank."""

    x: list[float]
    rank: list[int]
    routes: list[list[float]]
    left: float
    right: float


@dataclass
class _Spot:
    """A node or the waypoint of an edge."""

    rank: int
    width: float
    above: list[_Spot] = field(default_factory=list)
    below: list[_Spot] = field(default_factory=list)
    position: float = 0.0  # within its rank while ordering, later the coordinate


def layout(nodes: int, edges: Sequence[tuple[int, int]], width: float, gap: float) -> Placed:
    """Nodes are numbered so that every edge goes from a smaller number to a larger one."""
    ranks = _ranks(nodes, edges)
    spots = [_Spot(rank, width) for rank in ranks]
    routes = [_route(spots, start, end) for start, end in edges]
    levels: list[list[_Spot]] = [[] for _ in range(max(ranks, default=0) + 1)]
    for spot in [*spots, *(waypoint for route in routes for waypoint in route[1:-1])]:
        levels[spot.rank].append(spot)
    _order(levels)
    _coordinates(levels, gap)
    everything = [spot for level in levels for spot in level]
    return Placed(
        [spot.position for spot in spots],
        ranks,
        [[spot.position for spot in route] for route in routes],
        min((spot.position - spot.width / 2 for spot in everything), default=0.0),
        max((spot.position + spot.width / 2 for spot in everything), default=0.0),
    )


def _ranks(nodes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """One below the lowest predecessor; a node without any is just above its first reader."""
    ranks = [0] * nodes
    for start, end in sorted(edges):
        ranks[end] = max(ranks[end], ranks[start] + 1)
    fed = {end for _, end in edges}
    for node in range(nodes):
        readers = [ranks[end] for start, end in edges if start == node]
        if node not in fed and readers:
            ranks[node] = min(readers) - 1
    return ranks


def _route(spots: Sequence[_Spot], start: int, end: int) -> list[_Spot]:
    route = [spots[start]]
    route += [_Spot(rank, 10.0) for rank in range(spots[start].rank + 1, spots[end].rank)]
    route.append(spots[end])
    for upper, lower in pairwise(route):
        upper.below.append(lower)
        lower.above.append(upper)
    return route


def _order(levels: list[list[_Spot]]) -> None:
    """Sort each rank by the mean position of its neighbours in the rank before, down and up in turns."""
    for level in levels:
        for index, spot in enumerate(level):
            spot.position = index
    for sweep in range(SWEEPS):
        for level in levels if sweep % 2 == 0 else reversed(levels):
            wanted = {
                id(spot): _mean(spot.above if sweep % 2 == 0 else spot.below, spot.position) for spot in level
            }
            level.sort(key=lambda spot: wanted[id(spot)])
            for index, spot in enumerate(level):
                spot.position = index - (len(level) - 1) / 2


def _coordinates(levels: list[list[_Spot]], gap: float) -> None:
    """Move each spot towards its neighbours as far as the order within its rank allows."""
    for level in levels:
        at = 0.0
        for spot in level:
            spot.position = at + spot.width / 2
            at += spot.width + gap
        for spot in level:
            spot.position -= (at - gap) / 2
    for sweep in range(SWEEPS):
        for level in levels if sweep % 2 == 0 else reversed(levels):
            _settle(level, [_mean(s.above if sweep % 2 == 0 else s.below, s.position) for s in level], gap)


def _settle(level: list[_Spot], wanted: list[float], gap: float) -> None:
    """The positions nearest to ``wanted`` without overlaps: spots that push each other move as one block."""
    blocks: list[tuple[float, list[int]]] = []  # the wanted place of its first spot, and its spots
    offsets: list[float] = [0.0] * len(level)
    for index, want in enumerate(wanted):
        offsets[index] = 0.0
        block = (want, [index])
        while blocks:
            start, members = blocks[-1]
            last = members[-1]
            distance = (level[last].width + level[block[1][0]].width) / 2 + gap
            end = start + offsets[last]
            if end + distance <= block[0]:
                break
            blocks.pop()
            shift = offsets[last] + distance
            for member in block[1]:
                offsets[member] += shift
            merged = [*members, *block[1]]
            block = (_mean_of([wanted[m] - offsets[m] for m in merged]), merged)
        blocks.append(block)
    for start, members in blocks:
        for member in members:
            level[member].position = start + offsets[member]


def _mean(neighbours: Sequence[_Spot], otherwise: float) -> float:
    return _mean_of([spot.position for spot in neighbours]) if neighbours else otherwise


def _mean_of(values: Sequence[float]) -> float:
    return sum(values) / len(values)
