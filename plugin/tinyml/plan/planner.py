"""From selected kernels to addresses: build the problem, solve it, have the solution checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tinyml.ir import Graph, Layer
from tinyml.plan.problem import Block, Piece, Problem, Solution
from tinyml.plan.regions import Place, Region, homes
from tinyml.plan.solve import SEARCH_NODES, solve
from tinyml.plan.storage import Group, Member, Storage, honoured, members_of, overlay_pairs, share
from tinyml.plan.validate import Machine
from tinyml.select import Selected

SCRATCH_ALIGNMENTS = (8, 4)  # the first that divides the size
LOOSENED = 4  # at most so many pairs that could lie over one another are kept apart


@dataclass(frozen=True)
class Plan:
    """Where everything lives.

    ``shared`` lists, by step, the tensors that sharing has already put in place: outputs that the layer
    need not write, and inputs that lie inside its output. ``free`` are the steps that are no work at all,
    ``backwards`` those that compute the last position first, because their output lies over an input.
    """

    problem: Problem
    solution: Solution
    places: Mapping[str, Place]
    scratch: Mapping[int, int]
    shared: Mapping[int, frozenset[str]]
    free: frozenset[int]
    backwards: frozenset[int]
    io_outside: bool = False  # inputs and outputs lie in the caller's buffers

    @property
    def arena_bytes(self) -> int:
        return self.solution.arena_bytes

    @property
    def lower_bound_bytes(self) -> int:
        return self.problem.lower_bound_bytes


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
        """Pairs that lie over one another in a group that reaches over the bound."""
        bound = self.problem.lower_bound_bytes
        outside = {
            id(group)
            for group, block, offset in zip(
                self.in_arena, self.problem.blocks, self.solution.offsets, strict=False
            )
            if offset + block.bytes > bound
        }
        return [pair for pair in self.storage.overlaid() if id(self.storage.groups[pair[0]]) in outside]


def plan(graph: Graph, selected: Sequence[Selected], io_outside: bool = False) -> Plan:
    """Place everything that needs RAM for a while. ``io_outside``: the caller brings inputs and outputs."""
    layers = [chosen.layer for chosen in selected]
    draft = _best_draft(graph, selected, io_outside)
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
    overlays = [
        [overlay for overlay in chosen.overlays if overlay.backwards == (step in result.backwards)]
        for step, chosen in enumerate(selected)
    ]
    sizes = {step: (offset, selected[step].scratch_bytes) for step, offset in result.scratch.items()}
    Machine(graph, layers, overlays, result.places, sizes, result.arena_bytes, result.shared).run()
    return result


def lower_bound_bytes(graph: Graph, selected: Sequence[Selected], io_outside: bool = False) -> int:
    """What a plan of these layers in this order needs at least."""
    members = members_of(graph, [chosen.layer for chosen in selected])
    apart = _not_worth_it(graph, selected, members, io_outside)
    return _unsolved(graph, selected, members, io_outside, apart).problem.lower_bound_bytes


def peak_steps(graph: Graph, selected: Sequence[Selected], io_outside: bool = False) -> list[int]:
    """The steps at which the most bytes are live."""
    members = members_of(graph, [chosen.layer for chosen in selected])
    apart = _not_worth_it(graph, selected, members, io_outside)
    problem = _unsolved(graph, selected, members, io_outside, apart).problem
    live = [problem.live_bytes(step) for step in range(len(selected))]
    return [step for step, size in enumerate(live) if size == max(live)]


def _best_draft(graph: Graph, selected: Sequence[Selected], io_outside: bool) -> Draft:
    """Share all that can be shared; where that makes shapes that do not fit together, a little less."""
    members = members_of(graph, [chosen.layer for chosen in selected])
    apart = _not_worth_it(graph, selected, members, io_outside)
    best = _draft(graph, selected, members, io_outside, apart)
    if best.excess_bytes:
        looser = apart | _with_room(graph, selected, members, io_outside, best.problem.lower_bound_bytes)
        found = _draft(graph, selected, members, io_outside, looser)
        if found.solution.arena_bytes < best.solution.arena_bytes:
            best, apart = found, looser
    for _ in range(LOOSENED):
        tries = [apart | {pair} for pair in best.overlaid_outside()] if best.excess_bytes else []
        drafts = [(_draft(graph, selected, members, io_outside, pairs), pairs) for pairs in tries]
        found, pairs = min(drafts, key=lambda item: item[0].solution.arena_bytes, default=(best, apart))
        if found.solution.arena_bytes >= best.solution.arena_bytes:
            break
        best, apart = found, pairs
    if best.excess_bytes:
        best = replace(best, solution=solve(best.problem, SEARCH_NODES))
    return best


def _with_room(
    graph: Graph, selected: Sequence[Selected], members: dict[str, Member], io_outside: bool, limit: int
) -> frozenset[tuple[str, str]]:
    """Pairs that need not lie over one another to stay within a limit: small blocks are easier to place."""
    pairs = overlay_pairs([chosen.layer for chosen in selected], [chosen.overlays for chosen in selected])
    problem = _unsolved(graph, selected, members, io_outside, frozenset(pairs)).problem
    return frozenset(pair for pair in pairs if problem.live_bytes(members[pair[1]].first) <= limit)


def _not_worth_it(
    graph: Graph, selected: Sequence[Selected], members: dict[str, Member], io_outside: bool
) -> frozenset[tuple[str, str]]:
    """Pairs that could lie over one another, but at a distance, and would not lower the peak.

    Every such pair makes a larger block that is harder to place. So only those of the steps with the most
    live bytes are let together, then those of the steps that have the most then, as long as it helps.
    """
    pairs = overlay_pairs([chosen.layer for chosen in selected], [chosen.overlays for chosen in selected])
    apart = frozenset(pair for pair, ways in pairs.items() if all(way.distance for way in ways))
    problem = _unsolved(graph, selected, members, io_outside, apart).problem
    while True:
        bound = problem.lower_bound_bytes
        fewer = frozenset(pair for pair in apart if problem.live_bytes(members[pair[1]].first) < bound)
        problem = _unsolved(graph, selected, members, io_outside, fewer).problem
        if problem.lower_bound_bytes >= bound:
            return apart
        apart = fewer


def _draft(
    graph: Graph,
    selected: Sequence[Selected],
    members: dict[str, Member],
    io_outside: bool,
    apart: frozenset[tuple[str, str]],
) -> Draft:
    """What quick placement makes of it."""
    draft = _unsolved(graph, selected, members, io_outside, apart)
    return replace(draft, solution=solve(draft.problem, 0))


def _unsolved(
    graph: Graph,
    selected: Sequence[Selected],
    members: dict[str, Member],
    io_outside: bool,
    apart: frozenset[tuple[str, str]],
) -> Draft:
    layers = [chosen.layer for chosen in selected]
    overlays = [chosen.overlays for chosen in selected]
    storage = share(graph, layers, members, overlays, homes(graph, len(layers), io_outside), apart)
    in_arena = [group for group in storage.unique_groups() if group.home is None]
    blocks = [_block(storage, group) for group in in_arena]
    scratch_at: dict[int, int] = {}
    for step, chosen in enumerate(selected):
        if chosen.scratch_bytes:
            scratch_at[step] = len(blocks)
            blocks.append(_scratch_block(chosen, step))
    return Draft(storage, in_arena, scratch_at, Problem(tuple(blocks)), Solution((), 0))


def _block(storage: Storage, group: Group) -> Block:
    base = min(group.offsets.values())
    members = [(storage.members[name], offset - base) for name, offset in group.offsets.items()]
    pieces = {Piece(at, m.tensor.bytes, m.first, m.last) for m, at in members}
    needed = [p for p in pieces if not any(p is not q and _inside(p, q) for q in pieces)]
    alignment = max(m.tensor.dtype.bytes for m, _ in members)
    return Block(next(iter(group.offsets)), tuple(sorted(needed)), alignment)


def _inside(p: Piece, q: Piece) -> bool:
    """Whether piece q says all that p says."""
    return (
        q.offset <= p.offset
        and p.offset + p.bytes <= q.offset + q.bytes
        and q.first <= p.first
        and p.last <= q.last
    )


def _scratch_block(chosen: Selected, step: int) -> Block:
    size = chosen.scratch_bytes
    alignment = next((a for a in SCRATCH_ALIGNMENTS if size % a == 0), SCRATCH_ALIGNMENTS[-1])
    return Block(f"{chosen.layer.name} scratch", (Piece(0, size, step, step),), alignment)


def _place(group: Group, name: str, starts: Mapping[int, int]) -> Place:
    if group.home is not None:
        return Place(group.home.region, group.home.index, group.offsets[name])
    return Place(Region.ARENA, 0, starts[id(group)] + group.offsets[name] - min(group.offsets.values()))


def _shared(storage: Storage, layer: Layer) -> frozenset[str]:
    """Tensors of a layer that its code need not touch, because they already lie where they belong."""
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
