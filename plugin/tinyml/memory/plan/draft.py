# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Drafts of a plan: different choices of buffer sharing, each with a quick placement."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from tinyml.base import limits
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Graph
from tinyml.memory.plan.problem import Block, Piece, Problem, Solution, uncovered
from tinyml.memory.plan.regions import homes
from tinyml.memory.plan.solve import SEARCH_NODES, solve
from tinyml.memory.plan.storage import Group, Storage, computed_in_place, members_of, overlay_pairs, share
from tinyml.memory.select import Selected

SCRATCH_ALIGNMENTS = (8, 4)  # the first that divides the size
LOOSENED = 4  # maximum number of pairs that could overlap but are kept apart
TRIES = 160
TRIED_BLOCKS = 6_000
TRIED_NODES = 60
SHARES = (0.15, 0.3, 0.5)
"""Of drawn drafts: how many there are and how many blocks they have in all, how long each is searched, and
the parts of the pairs that are kept apart."""

Pairs: TypeAlias = frozenset[tuple[str, str]]
"""Inputs and outputs of layers that could overlap."""


@dataclass(frozen=True, eq=False)
class Draft:
    """One way to share memory, and the offsets found for it."""

    storage: Storage
    in_arena: Sequence[Group]  # their blocks come first in the problem, then the scratch memories
    scratch: Mapping[int, int]  # step -> index of the block
    problem: Problem
    solution: Solution

    @property
    def excess_bytes(self) -> int:
        return self.solution.arena_bytes - self.problem.lower_bound_bytes

    def overlaid_outside(self) -> list[tuple[str, str]]:
        """Overlapping pairs in a group that exceeds the bound."""
        bound = self.problem.lower_bound_bytes
        outside = {
            id(group)
            for group, block, offset in zip(
                self.in_arena, self.problem.blocks, self.solution.offsets, strict=False
            )
            if offset + block.bytes > bound
        }
        return [pair for pair in self.storage.overlaid() if id(self.storage.groups[pair[0]]) in outside]


class Draughtsman:
    """Makes drafts for one graph: each keeps some pairs apart that could share memory."""

    def __init__(self, graph: Graph, selected: Sequence[Selected], io_outside: bool) -> None:
        self.graph, self.selected, self.io_outside = graph, selected, io_outside
        self.layers = [chosen.layer for chosen in selected]
        needs = [chosen.kernel.alignments(chosen.layer) for chosen in selected]
        self.members = members_of(graph, self.layers, {k: v for need in needs for k, v in need.items()})
        self.pairs = overlay_pairs(self.layers, [chosen.overlays for chosen in selected])
        kept = homes(graph, len(self.layers), io_outside)
        self.shared = share(graph, self.layers, self.members, self.pairs, kept)
        self.blocks: dict[tuple[tuple[str, int], ...], Block] = {}  # by the members of a group
        self.drafts: dict[Pairs, Draft] = {}

    def best(self) -> Draft:
        """Share everything possible, or a little less if the resulting blocks do not fit together."""
        apart = self._not_worth_it
        best = self._placed(apart)
        if best.excess_bytes:
            looser = apart | self._with_room(best.problem.lower_bound_bytes)
            found = self._placed(looser)
            if found.solution.arena_bytes < best.solution.arena_bytes:
                best, apart = found, looser
        for _ in range(LOOSENED):
            tries = [apart | {pair} for pair in best.overlaid_outside()] if best.excess_bytes else []
            drafts = [(self._placed(pairs), pairs) for pairs in tries]
            found, pairs = min(drafts, key=lambda item: item[0].solution.arena_bytes, default=(best, apart))
            if found.solution.arena_bytes >= best.solution.arena_bytes:
                break
            best, apart = found, pairs
        if best.excess_bytes:
            best = replace(best, solution=solve(best.problem, SEARCH_NODES))
        return self._tried(best, apart) if best.excess_bytes else best

    def _tried(self, best: Draft, apart: Pairs) -> Draft:
        """Other choices of what shares memory, drawn always alike: most gaps close after some dozens."""
        bound = self.problem_if_all_share().lower_bound_bytes
        pairs, rng = sorted(self.pairs), random.Random(0)
        for turn in range(min(TRIES, TRIED_BLOCKS // max(len(best.problem.blocks), 1))):
            limits.check_time()
            if turn % 2:
                near = sorted(best.overlaid_outside()) if rng.random() < 0.5 else pairs
                tried = apart ^ frozenset(rng.sample(near, min(len(near), rng.randint(1, 4))))
            else:
                share = rng.choice(SHARES)
                tried = frozenset(pair for pair in pairs if rng.random() < share)
            draft = self._drafted(tried)
            if draft.problem.lower_bound_bytes >= best.solution.arena_bytes:
                continue
            draft = replace(draft, solution=solve(draft.problem, TRIED_NODES))
            if draft.solution.arena_bytes < best.solution.arena_bytes:
                best, apart = draft, tried
            if best.solution.arena_bytes <= bound:
                break
        return best

    @cached_property
    def problem(self) -> Problem:
        """The draft that shares everything worth sharing."""
        return self._draft(self._not_worth_it).problem

    def problem_if_all_share(self) -> Problem:
        """What there is to place if everything is shared that can be."""
        return self._draft(frozenset()).problem

    @cached_property
    def _not_worth_it(self) -> Pairs:
        """Pairs that could overlap at a distance, but would not lower the peak.

        Every such pair makes a larger block that is harder to place. So only those at the steps with the
        most live bytes are joined, then those at the steps that have the most after that, as long as it
        helps.
        """
        apart = frozenset(pair for pair, ways in self.pairs.items() if all(way.distance for way in ways))
        problem = self._draft(apart).problem
        while True:
            limits.check_time()
            bound = problem.lower_bound_bytes
            fewer = frozenset(pair for pair in apart if self._live_bytes(problem, pair) < bound)
            problem = self._draft(fewer).problem
            if problem.lower_bound_bytes >= bound:
                return apart
            apart = fewer

    def _with_room(self, limit: int) -> Pairs:
        """Pairs that can stay separate within a limit: small blocks are easier to place."""
        problem = self._draft(frozenset(self.pairs)).problem
        return frozenset(pair for pair in self.pairs if self._live_bytes(problem, pair) <= limit)

    def _live_bytes(self, problem: Problem, pair: tuple[str, str]) -> int:
        """Live bytes at the step that computes one from the other."""
        return problem.live_bytes(self.members[pair[1]].first)

    def _placed(self, apart: Pairs) -> Draft:
        draft = self._draft(apart)
        return replace(draft, solution=solve(draft.problem, 0))

    def _draft(self, apart: Pairs) -> Draft:
        """A draft with sharing decided but nothing placed."""
        if apart not in self.drafts:
            self.drafts[apart] = self._drafted(apart)
        return self.drafts[apart]

    def _drafted(self, apart: Pairs) -> Draft:
        storage = computed_in_place(self.shared, apart)
        in_arena = [group for group in storage.unique_groups() if group.home is None]
        blocks = [self._block(storage, group) for group in in_arena]
        scratch_at: dict[int, int] = {}
        for step, chosen in enumerate(self.selected):
            if chosen.scratch_bytes:
                scratch_at[step] = len(blocks)
                blocks.append(_scratch_block(chosen, step))
        return Draft(storage, in_arena, scratch_at, Problem(tuple(blocks)), Solution((), 0))

    def _block(self, storage: Storage, group: Group) -> Block:
        """The block of a group; most groups are the same in every draft."""
        key = tuple(group.offsets.items())
        if key not in self.blocks:
            self.blocks[key] = _block(storage, group)
        return self.blocks[key]


def _block(storage: Storage, group: Group) -> Block:
    base = group.start
    members = [(storage.members[name], offset - base) for name, offset in group.offsets.items()]
    pieces = {Piece(at, m.tensor.bytes, m.first, m.last) for m, at in members}
    return Block(next(iter(group.offsets)), tuple(sorted(uncovered(pieces))), group.alignment)


def _scratch_block(chosen: Selected, step: int) -> Block:
    size = chosen.scratch_bytes
    alignment = next((a for a in SCRATCH_ALIGNMENTS if size % a == 0), SCRATCH_ALIGNMENTS[-1])
    alignment = max(alignment, chosen.kernel.scratch_alignment)
    return Block(f"{chosen.layer.name} scratch", (Piece(0, size, step, step),), alignment)
