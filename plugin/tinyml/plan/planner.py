"""From selected kernels to addresses: build the problem, solve it, have the solution checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyml.ir import Graph
from tinyml.plan.problem import Block, Problem, Solution
from tinyml.plan.solve import solve
from tinyml.plan.storage import share
from tinyml.plan.validate import validate
from tinyml.select import Selected


@dataclass(frozen=True)
class Plan:
    """Offsets in the arena by tensor name, and of each layer's scratch by its position."""

    problem: Problem
    solution: Solution
    offsets: Mapping[str, int]
    scratch: Mapping[int, int]

    @property
    def arena_bytes(self) -> int:
        return self.solution.arena_bytes

    @property
    def lower_bound_bytes(self) -> int:
        return self.problem.lower_bound_bytes()


def plan(graph: Graph, selected: Sequence[Selected]) -> Plan:
    """Place everything that needs RAM for a while."""
    storage = share(graph, [s.layer for s in selected])
    blocks = [Block(g.members[0], g.bytes, g.first, g.last) for g in storage.groups]
    scratch_at: dict[int, int] = {}
    for step, chosen in enumerate(selected):
        if chosen.scratch_bytes:
            scratch_at[step] = len(blocks)
            blocks.append(Block(f"{chosen.layer.name} scratch", chosen.scratch_bytes, step, step))
    problem = Problem(tuple(blocks))
    solution = solve(problem)
    validate(problem, solution)
    offsets = {
        name: offset
        for group, offset in zip(storage.groups, solution.offsets, strict=False)
        for name in group.members
    }
    scratch = {step: solution.offsets[index] for step, index in scratch_at.items()}
    return Plan(problem, solution, offsets, scratch)
