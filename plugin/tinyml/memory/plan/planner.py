# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""From selected kernels to addresses: build the problem, solve it, validate the solution."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Graph, Layer
from tinyml.memory.plan.draft import Draughtsman
from tinyml.memory.plan.problem import Problem, Solution
from tinyml.memory.plan.regions import Location, Region
from tinyml.memory.plan.storage import Group, Storage, honoured
from tinyml.memory.plan.validate import Machine
from tinyml.memory.select import Selected


@dataclass(frozen=True)
class Plan:
    """Where everything lives.

    ``shared`` lists, by step, the tensors that buffer sharing puts in place: outputs that the layer need not
    write, and inputs that are part of its output. ``free`` are the steps without any work, ``backwards``
    those that compute the last position first, because their output overlaps an input.
    """

    problem: Problem
    solution: Solution
    places: Mapping[str, Location]
    scratch: Mapping[int, int]
    shared: Mapping[int, frozenset[str]]
    free: frozenset[int]
    backwards: frozenset[int]
    io_outside: bool = False  # inputs and outputs are in the caller's buffers

    @property
    def arena_bytes(self) -> int:
        return self.solution.arena_bytes

    @property
    def lower_bound_bytes(self) -> int:
        return self.problem.lower_bound_bytes

    def distance(self, layer: Layer) -> int | None:
        """Bytes from the first input of a layer to its first output; None if they are not in one memory."""
        ends = (layer.inputs[0] if layer.inputs else None, layer.outputs[0])
        x, y = (self.places.get(tensor.name) if tensor is not None else None for tensor in ends)
        same = x is not None and y is not None and (x.region, x.index) == (y.region, y.index)
        return y.offset - x.offset if same and x and y else None


def plan(graph: Graph, selected: Sequence[Selected], io_outside: bool = False) -> Plan:
    """Place everything that needs RAM. ``io_outside``: the caller provides buffers for inputs and outputs."""
    layers = [chosen.layer for chosen in selected]
    draft = _drafts(graph, selected, io_outside).best()
    starts = {id(group): draft.solution.offsets[i] for i, group in enumerate(draft.in_arena)}
    shared = {step: _shared(draft.storage, layer) for step, layer in enumerate(layers)}
    groups = draft.storage.unique_groups()
    result = Plan(
        draft.problem,
        draft.solution,
        places={name: _place(group, name, starts) for group in groups for name in group.offsets},
        scratch={step: draft.solution.offsets[index] for step, index in draft.scratch.items()},
        shared={step: names for step, names in shared.items() if names},
        free=frozenset(step for step, layer in enumerate(layers) if _is_free(layer, shared[step])),
        backwards=_backwards(draft.storage, layers),
        io_outside=io_outside,
    )
    validate_plan(graph, selected, result)
    return result


def validate_plan(graph: Graph, selected: Sequence[Selected], made: Plan) -> None:
    """Simulate a run byte by byte; a plan in which a reader would find other bytes is an error."""
    layers = [chosen.layer for chosen in selected]
    overlays = [
        [overlay for overlay in chosen.overlays if overlay.backwards == (step in made.backwards)]
        for step, chosen in enumerate(selected)
    ]
    sizes = {step: (offset, selected[step].scratch_bytes) for step, offset in made.scratch.items()}
    kernels = [chosen.kernel for chosen in selected]
    Machine(graph, layers, overlays, made.places, sizes, made.arena_bytes, made.shared, kernels).run()


def lower_bound_bytes(
    graph: Graph, selected: Sequence[Selected], io_outside: bool = False, at_most: float = math.inf
) -> float:
    """A lower bound for any plan of these layers in this order; infinity if it exceeds ``at_most``."""
    drafts = _drafts(graph, selected, io_outside)
    if drafts.problem_if_all_share().lower_bound_bytes > at_most:
        return math.inf  # and with less sharing it is not lower
    return drafts.problem.lower_bound_bytes


@dataclass(frozen=True)
class Peaks:
    """How many bytes are live at most, at which steps, and how few each step can do with."""

    bytes: int
    steps: Sequence[int]
    least_bytes: Sequence[int]  # by step, if all tensors share memory that can


def memory_peaks(graph: Graph, selected: Sequence[Selected], io_outside: bool = False) -> Peaks:
    """Where the size of the arena comes from."""
    drafts = _drafts(graph, selected, io_outside)
    problem, shared = drafts.problem, drafts.problem_if_all_share()
    live = [problem.live_bytes(step) for step in range(len(selected))]
    most = max(live)
    return Peaks(
        problem.lower_bound_bytes,
        [step for step, size in enumerate(live) if size == most],
        [shared.live_bytes(step) for step in range(len(selected))],
    )


_recent: deque[Draughtsman] = deque(maxlen=2)


def _drafts(graph: Graph, selected: Sequence[Selected], io_outside: bool) -> Draughtsman:
    """One is enough for layers of which bound, peaks and plan are wanted, usually in a row."""
    for known in _recent:
        if known.graph is graph and known.selected is selected and known.io_outside == io_outside:
            return known
    _recent.append(made := Draughtsman(graph, selected, io_outside))
    return made


def _place(group: Group, name: str, starts: Mapping[int, int]) -> Location:
    if group.home is not None:
        return Location(group.home.region, group.home.index, group.offsets[name])
    return Location(Region.ARENA, 0, starts[id(group)] + group.offsets[name] - group.start)


def _shared(storage: Storage, layer: Layer) -> frozenset[str]:
    """Tensors of a layer that its code need not touch, because they are already in place."""
    outputs = {t.name for t in layer.outputs}
    covered: dict[str, set[tuple[int, int]]] = {}
    left_alone: set[str] = set()
    for view in honoured(storage, layer):
        left_alone.add(view.inner)
        if view.outer in outputs:
            end = view.offset_bytes + storage.members[view.inner].tensor.bytes
            covered.setdefault(view.outer, set()).add((view.offset_bytes, end))
    for y in layer.outputs:
        if y.name in covered and _covers(covered[y.name], y.bytes):
            left_alone.add(y.name)
    return frozenset(left_alone)


def _backwards(storage: Storage, layers: Sequence[Layer]) -> frozenset[int]:
    made = {pair[1] for pair, overlay in storage.overlaid().items() if overlay.backwards}
    return frozenset(step for step, layer in enumerate(layers) if layer.outputs[0].name in made)


def _covers(ranges: set[tuple[int, int]], size: int) -> bool:
    reached = 0
    for start, end in sorted(ranges):
        if start > reached:
            return False
        reached = max(reached, end)
    return reached >= size


def _is_free(layer: Layer, shared: frozenset[str]) -> bool:
    return bool(layer.outputs) and all(y.name in shared for y in layer.outputs)
