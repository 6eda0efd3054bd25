# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The stages that decide where everything is: select, schedule, bands and plan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from tinyml.cores.targets import Target
from tinyml.ir import Graph
from tinyml.ir.verifier import verify
from tinyml.memory.bands.feeding import from_arrival, rows_in_vain, with_arrival
from tinyml.memory.bands.join import in_bands
from tinyml.memory.float16_sums import in_vain
from tinyml.memory.less_scratch import LessScratch
from tinyml.memory.loops.place import with_placed_loops
from tinyml.memory.other_forms import with_other_forms
from tinyml.memory.plan import Plan, lower_bound_bytes, plan
from tinyml.memory.schedule import same_order, schedule
from tinyml.memory.select import Selected, select
from tinyml.ops.framework.kernel import Library
from tinyml.settings.optimize import BALANCED, Chaining, Goal, find_goal
from tinyml.settings.options import Options
from tinyml.settings.passing import Io

LIBRARIES: Mapping[str, frozenset[Library]] = {
    "portable": frozenset(Library) - {Library.CMSIS_NN},
    "cmsis-nn": frozenset(Library),
}
"""The libraries that each choice of ``--kernels`` allows; ``auto`` takes the cheapest available per layer."""

Placed: TypeAlias = tuple[Graph, tuple[Selected, ...], Plan]
"""The layers in the order in which they are executed, their kernels, and where everything is."""


def choose_kernels(
    graph: Graph, target: Target, kernels: str, cmsis_nn: bool, goal: Goal = BALANCED
) -> tuple[Selected, ...]:
    """Select kernels for a choice of ``--kernels``; ``cmsis_nn``: whether the build has CMSIS-NN."""
    libraries = libraries_of(kernels, cmsis_nn)
    return select(graph, target, libraries, cheapest=kernels == "auto", goal=goal)


def libraries_of(kernels: str, cmsis_nn: bool) -> frozenset[Library]:
    """The libraries that a choice of ``--kernels`` allows in a build with or without CMSIS-NN."""
    return LIBRARIES[kernels if kernels != "auto" else "cmsis-nn" if cmsis_nn else "portable"]


def lay_out(graph: Graph, target: Target, options: Options) -> Placed:
    """All of these stages, with the choices of ``options``; first for the bodies of loops."""
    graph = with_placed_loops(graph, lambda body: lay_out(body, target, _of_body(options)))
    goal = find_goal(options.optimize)
    if options.byte_weights:
        goal = replace(goal, four_bits=0, float16=False)
    elif options.arithmetic == "float16":
        goal = replace(goal, float16_sums=True)
    if not (options.io.rows and options.bands):
        ordered, selected, found = _laid_out(graph, target, options, goal)
        return _noted(ordered, selected, target, goal), selected, found
    by_rows = with_arrival(graph)
    verify(by_rows, "io rows")
    ordered, selected, found = _laid_out(by_rows, target, options, goal)
    if found.arena_bytes >= sum(graph.tensors[name].bytes for name in graph.inputs):
        _, _, plain = _laid_out(graph, target, options, goal)
        ordered = replace(ordered, notes=(*ordered.notes, *rows_in_vain(found, plain, goal)))
    return _noted(ordered, selected, target, goal), selected, found


def _noted(graph: Graph, selected: Sequence[Selected], target: Target, goal: Goal) -> Graph:
    """With a note if float16 sums are allowed and no layer has them."""
    notes = in_vain(selected, target) if goal.float16_sums else ()
    return replace(graph, notes=(*graph.notes, *notes)) if notes else graph


def _of_body(options: Options) -> Options:
    """For the body of a loop, whose inputs and outputs are parts of those of the loop."""
    return replace(options, io=Io(caller=True), frontend=None)


def _laid_out(graph: Graph, target: Target, options: Options, goal: Goal) -> Placed:
    """The layers as they are, or in other forms where these are faster and cost no memory."""

    def choose(graph: Graph) -> tuple[Selected, ...]:
        return choose_kernels(graph, target, options.kernels, options.cmsis_nn, goal)

    selected = choose(graph)
    plain = _placed(graph, selected, target, options, goal)
    if goal.slower > 1:
        return plain
    room = plain[2].arena_bytes if goal.chaining else math.inf
    other = with_other_forms(graph, selected, choose, target, room, any_code=goal.worthwhile == 0)
    if other is None:
        return plain
    verify(other, "other forms")
    faster = _placed(other, choose(other), target, options, goal)
    return faster if faster[2].arena_bytes <= room else plain


def _placed(
    graph: Graph, selected: tuple[Selected, ...], target: Target, options: Options, goal: Goal
) -> Placed:
    chaining = goal.chaining if options.bands else None
    less_scratch = None
    if goal.less_scratch > 1:
        libraries = libraries_of(options.kernels, options.cmsis_nn)
        less_scratch = LessScratch(target, libraries, goal.less_scratch, options.io.caller)
    return place(graph, selected, target, chaining, options.io.caller, less_scratch)


def place(
    graph: Graph,
    selected: tuple[Selected, ...],
    target: Target,
    chaining: Chaining | None,
    io_outside: bool,
    less_scratch: LessScratch | None = None,
) -> Placed:
    """Schedule and plan; keep the file's order unless another one needs less memory.

    ``chaining`` None: no chains, except where rows of the input arrive. ``less_scratch`` replaces kernels if
    the arena is smaller with others.
    """
    choices = [(graph, selected)]
    if not same_order((other := schedule(graph, selected)).nodes, graph.nodes):
        by_output = {chosen.layer.output.name: chosen for chosen in selected}
        choices.append((other, tuple(by_output[node.outputs[0]] for node in other.nodes)))
    best = _best_order(choices, io_outside)
    fast = joined, chosen = best.graph, best.selected
    if less_scratch is not None:
        joined, chosen = less_scratch.everywhere(fast)
    by_rows = any(node.op.by_rows for node in graph.nodes)
    if by_rows:
        joined, chosen = from_arrival(joined, chosen, target, chaining)
    elif chaining is not None:
        joined, chosen = in_bands(joined, chosen, target, io_outside, chaining)
    if less_scratch is not None:
        joined, chosen = less_scratch.undone((joined, chosen), fast)
    if chosen is best.selected:
        return best.planned()
    verify(joined, "bands")
    if by_rows:
        return _Unplanned(joined, chosen, io_outside).planned()
    banded = _Unplanned(joined, chosen, io_outside)
    # the plan without bands takes as long to find, and is seldom better
    if banded.plan.arena_bytes <= best.bound_bytes:
        return banded.planned()
    return min(best, banded, key=lambda choice: choice.plan.arena_bytes).planned()


class _Unplanned:
    """Layers in an order, whose plan is made when it is wanted."""

    def __init__(self, graph: Graph, selected: tuple[Selected, ...], io_outside: bool) -> None:
        self.graph, self.selected, self.io_outside = graph, selected, io_outside

    @cached_property
    def bound_bytes(self) -> float:
        return lower_bound_bytes(self.graph, self.selected, self.io_outside)

    @cached_property
    def plan(self) -> Plan:
        return plan(self.graph, self.selected, self.io_outside)

    def planned(self) -> Placed:
        return self.graph, self.selected, self.plan


def _best_order(choices: Sequence[tuple[Graph, tuple[Selected, ...]]], io_outside: bool) -> _Unplanned:
    """The first of the choices unless another one needs less memory."""
    first, *others = sorted(
        (_Unplanned(*choice, io_outside) for choice in choices), key=lambda c: c.bound_bytes
    )
    useful = [other for other in others if first.plan.arena_bytes > other.bound_bytes]
    return min([first, *useful], key=lambda choice: choice.plan.arena_bytes) if useful else first
