# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The planner: sharing, packing, scheduling, and a validator that catches errors in any of them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from tinyml.ir import DType, Graph, Layer, Node, Op, State, Tensor, View
from tinyml.memory.plan import Location, Plan, Region, plan
from tinyml.memory.plan.problem import Block, Piece, Problem, Solution
from tinyml.memory.plan.search import Packing, search
from tinyml.memory.plan.solve import _better, solve
from tinyml.memory.plan.validate import Machine, PlanError
from tinyml.memory.schedule import schedule
from tinyml.memory.select import Selected
from tinyml.ops.framework.kernel import Kernel, Overlay, Sheet, over_inputs

# --- small graphs of operators that only have a memory behaviour ---------------------------------


@dataclass(frozen=True)
class Work(Op):
    """Computes something new; with ``in_place`` element by element over its inputs."""

    in_place: bool = False


@dataclass(frozen=True)
class Slide(Op):
    """A window that moves over its input: the output may overlap it, some bytes before or after."""

    before: int
    after: int

    @property
    def ways(self) -> tuple[Overlay, ...]:
        return (Overlay(0, -self.before), Overlay(0, self.after, backwards=True))


@dataclass(frozen=True)
class Same(Op):
    """A reshape."""

    def views(self, layer: Layer) -> tuple[View, ...]:
        return (View(layer.output.name, layer.input(0).name),)


@dataclass(frozen=True)
class Part(Op):
    """A slice that begins at a byte."""

    start: int = 0

    def views(self, layer: Layer) -> tuple[View, ...]:
        return (View(layer.output.name, layer.input(0).name, self.start),)


@dataclass(frozen=True)
class Join(Op):
    """A concatenation."""

    def views(self, layer: Layer) -> tuple[View, ...]:
        found, at = [], 0
        for tensor in layer.inputs:
            assert tensor is not None
            found.append(View(tensor.name, layer.output.name, at))
            at += tensor.bytes
        return tuple(found)


class NoCode(Kernel[Op]):
    """A kernel with scratch memory and nothing else."""

    name: ClassVar[str] = "none"

    def overlays(self, layer: Layer) -> tuple[Overlay, ...]:
        if isinstance(layer.op, Slide):
            return layer.op.ways
        in_place = isinstance(layer.op, Work) and layer.op.in_place
        return over_inputs(layer, *range(len(layer.inputs))) if in_place else ()

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        raise AssertionError("only planned, never emitted")


WORK, OVER, SLIDE, SAME, JOIN = Work(), Work(in_place=True), Slide(4, 4), Same(), Join()


def graph_of(
    inputs: str,
    outputs: str,
    nodes: Sequence[tuple[str, Op, str]],
    states: str = "",
    sizes: dict[str, int] | None = None,
    constants: str = "",
) -> Graph:
    """Nodes as ("y", op, "a b"); tensors are 16 bytes unless ``sizes`` says otherwise; states "s=u"."""
    sizes = sizes or {}
    pairs = [tuple(item.split("=")) for item in states.split()]
    names = [*inputs.split(), *constants.split(), *(s for s, _ in pairs), *(y for y, _, _ in nodes)]
    tensors = {name: Tensor(name, (sizes.get(name, 16),), DType.INT8) for name in names}
    for name in constants.split():
        tensors[name] = Tensor.constant(name, np.zeros(sizes.get(name, 16), np.int8))
    return Graph(
        "g",
        tensors,
        tuple(Node(y, op, tuple(args.split()), (y,)) for y, op, args in nodes),
        tuple(inputs.split()),
        tuple(outputs.split()),
        tuple(State(s, u) for s, u in pairs),
    )


def planned(graph: Graph, scratch: dict[str, int] | None = None, io_outside: bool = False) -> Plan:
    """The validator runs inside ``plan``; what comes back has been proven."""
    return plan(graph, chosen(graph, scratch), io_outside)


def chosen(graph: Graph, scratch: dict[str, int] | None = None) -> list[Selected]:
    kernel = NoCode()
    return [Selected(layer, kernel, (scratch or {}).get(layer.name, 0)) for layer in graph.layers()]


def scheduled(graph: Graph) -> Graph:
    return schedule(graph, chosen(graph))


def free(graph: Graph, result: Plan) -> set[str]:
    return {graph.nodes[step].outputs[0] for step in result.free}


@dataclass(frozen=True)
class Case:
    name: str
    graph: Graph
    arena: int
    free: str = ""  # nodes that sharing makes no work


CASES = (
    Case("chain", graph_of("x", "c", [("a", WORK, "x"), ("b", WORK, "a"), ("c", WORK, "b")]), 32),
    Case("chain in place", graph_of("x", "c", [("a", OVER, "x"), ("b", OVER, "a"), ("c", OVER, "b")]), 16),
    Case("not in place while read later", graph_of("x", "b", [("a", OVER, "x"), ("b", WORK, "a x")]), 48),
    Case("in place over the second operand", graph_of("x", "b", [("a", WORK, "x"), ("b", OVER, "x a")]), 32),
    Case("an operand used twice is not overwritten", graph_of("x", "y", [("y", OVER, "x x")]), 32),
    Case("a window", graph_of("x", "y", [("y", SLIDE, "x")]), 20),
    Case("not over what is read later", graph_of("x", "b", [("a", SLIDE, "x"), ("b", WORK, "a x")]), 48),
    Case(
        "windows there and back again",
        graph_of("x", "d", [("a", SLIDE, "x"), ("b", SLIDE, "a"), ("c", SLIDE, "b"), ("d", SLIDE, "c")]),
        20,
    ),
    Case(
        "a window that shrinks does not reach out",
        graph_of("x", "b", [("a", Slide(8, 2), "x"), ("b", WORK, "a")], sizes={"a": 8}),
        24,
    ),
    Case(
        "a residual",
        graph_of("x", "d", [("a", SLIDE, "x"), ("b", SLIDE, "a"), ("c", SLIDE, "b"), ("d", OVER, "c a")]),
        36,
    ),
    Case("reshape", graph_of("x", "c", [("b", SAME, "x"), ("c", WORK, "b")]), 32, "b"),
    Case(
        "reshape of reshape",
        graph_of("x", "c", [("a", SAME, "x"), ("b", SAME, "a"), ("c", OVER, "b")]),
        16,
        "a b",
    ),
    Case(
        "no overwriting behind a reshape's back",
        graph_of("x", "d", [("b", SAME, "x"), ("c", OVER, "b"), ("d", WORK, "c x")]),
        48,
        "b",
    ),
    Case(
        "concat",
        graph_of("x", "c", [("a", WORK, "x"), ("b", WORK, "x"), ("c", JOIN, "a b")], sizes={"c": 32}),
        48,
        "c",
    ),
    Case(
        "concat of what is computed in place",
        graph_of("x", "c", [("a", OVER, "x"), ("b", WORK, "a"), ("c", JOIN, "b a")], sizes={"c": 32}),
        32,
        "c",
    ),
    Case("concat of a tensor with itself", graph_of("x", "c", [("c", JOIN, "x x")], sizes={"c": 32}), 48),
    Case(
        "two concats share one of their parts",
        graph_of(
            "x",
            "f",
            [("a", WORK, "x"), ("b", WORK, "x"), ("c", JOIN, "a b"), ("d", JOIN, "b a"), ("f", WORK, "c d")],
            sizes={"c": 32, "d": 32, "f": 0},
        ),
        48,
        "c",
    ),
    Case(
        "nested concat",
        graph_of(
            "x",
            "e",
            [("a", WORK, "x"), ("b", WORK, "x"), ("c", JOIN, "a b"), ("d", WORK, "x"), ("e", JOIN, "c d")],
            sizes={"c": 32, "e": 48},
        ),
        64,
        "c e",
    ),
    Case(
        "a concat is only live where it is filled",
        graph_of(
            "x",
            "z",
            [("a", WORK, "x"), ("big", WORK, "x"), ("b", WORK, "big"), ("c", JOIN, "a b"), ("z", WORK, "c")],
            sizes={"x": 4, "a": 4, "big": 40, "b": 40, "c": 44, "z": 4},
        ),
        84,
        "c",
    ),
    Case(
        "split",
        graph_of(
            "x", "c", [("a", Part(0), "x"), ("b", Part(8), "x"), ("c", WORK, "a b")], sizes={"a": 8, "b": 8}
        ),
        32,
        "a b",
    ),
    Case(
        "halves overwritten one by one",
        graph_of(
            "x",
            "e",
            [
                ("a", Part(0), "x"),
                ("b", Part(8), "x"),
                ("c", OVER, "a"),
                ("d", OVER, "b"),
                ("e", JOIN, "c d"),
            ],
            sizes={"a": 8, "b": 8, "c": 8, "d": 8},
        ),
        16,
        "a b e",
    ),
    Case(
        "overlapping slices keep their source",
        graph_of(
            "x",
            "d",
            [("a", Part(0), "x"), ("b", Part(4), "x"), ("c", OVER, "a"), ("d", WORK, "c b")],
            sizes={"a": 12, "b": 12, "c": 12},
        ),
        40,
        "a b",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_arena(case: Case) -> None:
    result = planned(case.graph)
    assert result.arena_bytes == result.lower_bound_bytes == case.arena
    assert free(case.graph, result) == set(case.free.split())


def test_scratch_is_counted_only_in_its_step() -> None:
    graph = graph_of("x", "c", [("a", WORK, "x"), ("b", WORK, "a"), ("c", WORK, "b")])
    result = planned(graph, {"b": 40})
    assert result.arena_bytes == result.lower_bound_bytes == 72
    assert set(result.scratch) == {1}


def test_elements_stay_aligned() -> None:
    graph = graph_of(
        "x", "c", [("a", WORK, "x"), ("b", WORK, "a"), ("c", WORK, "a b")], sizes={"x": 3, "a": 3}
    )
    wide = {
        name: replace(t, dtype=DType.FLOAT32, shape=(4,)) for name, t in graph.tensors.items() if name in "bc"
    }
    result = planned(replace(graph, tensors={**graph.tensors, **wide}))
    assert result.arena_bytes == result.lower_bound_bytes == 35
    assert result.places["b"].offset % 4 == result.places["c"].offset % 4 == 0


# --- states --------------------------------------------------------------------------------------

STATE0, STATE1 = Location(Region.STATE, 0, 0), Location(Region.STATE, 1, 0)


def test_update_is_written_into_its_state() -> None:
    graph = graph_of("x", "y", [("y", WORK, "x s"), ("u", WORK, "y")], "s=u")
    result = planned(graph)
    assert result.places["u"] == STATE0
    assert result.arena_bytes == 32


def test_update_waits_while_the_old_value_is_read() -> None:
    graph = graph_of("x", "y", [("u", WORK, "x s"), ("y", WORK, "u s")], "s=u")
    assert planned(graph).places["u"].region is Region.ARENA


def test_update_in_place_over_its_state() -> None:
    graph = graph_of("x", "y", [("u", OVER, "s x"), ("y", WORK, "u")], "s=u")
    assert planned(graph).places["u"] == STATE0


def test_nothing_else_is_computed_over_a_state() -> None:
    graph = graph_of("x", "y", [("y", OVER, "s"), ("u", WORK, "x")], "s=u")
    assert planned(graph).places["y"].region is Region.ARENA


def test_sliding_window() -> None:
    """concat(state, x), of which the tail is the next state: the usual streaming layer."""
    graph = graph_of(
        "x",
        "y",
        [("w", JOIN, "s x"), ("u", Part(4), "w"), ("y", WORK, "w")],
        "s=u",
        sizes={"s": 12, "x": 4, "u": 12},
    )
    result = planned(graph)
    assert result.places["u"] == STATE0  # copied as soon as the old value has been read
    assert result.arena_bytes == 32


def test_states_that_swap() -> None:
    graph = graph_of("x", "y", [("y", WORK, "x"), ("p", SAME, "t"), ("q", SAME, "s")], "s=p t=q")
    result = planned(graph)
    assert result.places["p"].region is Region.ARENA  # waits there until s has been read
    assert result.places["q"] == STATE1


def test_output_never_lives_in_a_state() -> None:
    graph = graph_of("x", "u", [("u", OVER, "s")], "s=u")
    assert planned(graph).places["u"].region is Region.ARENA


# --- the caller's buffers ------------------------------------------------------------------------


def test_caller_brings_inputs_and_outputs() -> None:
    graph = graph_of("x", "y", [("a", WORK, "x"), ("b", WORK, "a"), ("y", WORK, "b")])
    result = planned(graph, io_outside=True)
    assert result.arena_bytes == 32
    assert result.places["x"] == Location(Region.INPUT, 0, 0)
    assert result.places["y"] == Location(Region.OUTPUT, 0, 0)


def test_callers_input_is_never_written() -> None:
    graph = graph_of("x", "y", [("a", SAME, "x"), ("b", OVER, "a"), ("y", WORK, "b")])
    result = planned(graph, io_outside=True)
    assert result.places["a"].region is Region.INPUT
    assert result.places["b"].region is Region.ARENA


def test_parts_of_an_output_are_written_there() -> None:
    graph = graph_of("x", "y", [("a", WORK, "x"), ("b", WORK, "x"), ("y", JOIN, "a b")], sizes={"y": 32})
    result = planned(graph, io_outside=True)
    assert result.places["b"] == Location(Region.OUTPUT, 0, 16)
    assert result.arena_bytes == 0


def test_direction_follows_from_the_distance() -> None:
    graph = graph_of("x", "b", [("a", SLIDE, "x"), ("b", SLIDE, "a")])
    result = planned(graph)
    x, a, b = (result.places[name].offset for name in "xab")
    assert (a - x, b - a) == (-4, 4)
    assert result.backwards == {1}


def test_where_memory_is_plenty_windows_keep_their_distance() -> None:
    """A block of two tensors is harder to place: it must be worth it."""
    graph = graph_of("x", "b", [("a", WORK, "x"), ("b", SLIDE, "a")], sizes={"x": 64})
    result = planned(graph)
    a, b = result.places["a"].offset, result.places["b"].offset
    assert abs(a - b) >= 16
    assert result.arena_bytes == 80


# --- the validator finds every kind of mistake ---------------------------------------------------


def in_place(graph: Graph) -> list[tuple[Overlay, ...]]:
    """What each layer's operator allows by itself, in either direction."""
    return [NoCode().overlays(layer) for layer in graph.layers()]


def check(
    graph: Graph, places: dict[str, int], arena: int, scratch: dict[int, tuple[int, int]] | None = None
) -> None:
    """Run a hand-made plan; offsets in the arena."""
    spots = {name: Location(Region.ARENA, 0, at) for name, at in places.items()}
    spots |= {state.tensor: Location(Region.STATE, i, 0) for i, state in enumerate(graph.states)}
    Machine(graph, list(graph.layers()), in_place(graph), spots, scratch or {}, arena, {}).run()


TWO = graph_of("x", "b", [("a", WORK, "x"), ("b", WORK, "a")])
WINDOW = graph_of("x", "y", [("y", SLIDE, "x")])


def test_a_right_plan_passes() -> None:
    check(TWO, {"x": 0, "a": 16, "b": 0}, 32)
    check(WINDOW, {"x": 4, "y": 0}, 20)
    check(WINDOW, {"x": 0, "y": 4}, 20)


@pytest.mark.parametrize(
    "graph,places,arena,scratch,complaint",
    [
        (TWO, {"x": 0, "a": 0, "b": 16}, 32, {}, "overwrites its input 'x'"),
        (TWO, {"x": 0, "a": 16, "b": 20}, 64, {}, "overwrites its input 'a'"),
        (TWO, {"x": 0, "a": 20, "b": 0}, 32, {}, "extends past the end of its memory"),
        (WINDOW, {"x": 3, "y": 0}, 20, {}, "overwrites its input 'x'"),
        (WINDOW, {"x": 0, "y": 0}, 20, {}, "overwrites its input 'x'"),
        (TWO, {"x": 0, "a": 16, "b": 0}, 64, {0: (24, 16)}, "scratch memory of 'a' overlaps 'a'"),
        (TWO, {"x": 0, "a": 16, "b": 0}, 40, {0: (32, 16)}, "extends past the end of the arena"),
        (TWO, {"x": 0, "a": 16, "b": 0}, 64, {0: (36, 16)}, "scratch memory of 'a' is not aligned"),
        (TWO, {"x": 0, "a": 16, "b": 0}, 64, {0: (34, 12)}, "scratch memory of 'a' is not aligned"),
        (
            graph_of("x", "c", [("a", WORK, "x"), ("b", WORK, "x"), ("c", WORK, "a b")]),
            {"x": 0, "a": 16, "b": 24, "c": 48},
            64,
            {},
            "'a' has been overwritten before Work 'c' reads it",
        ),
        (
            graph_of("x", "a b", [("a", WORK, "x"), ("b", WORK, "x")]),
            {"x": 0, "a": 16, "b": 16},
            32,
            {},
            "'a' has been overwritten before the end of the run",
        ),
        (
            graph_of("x", "b", [("a", OVER, "x"), ("b", WORK, "a")], sizes={"x": 8}),
            {"x": 0, "a": 0, "b": 16},
            32,
            {},
            "overwrites its input 'x'",
        ),
    ],
)
def test_a_wrong_plan_is_found(
    graph: Graph, places: dict[str, int], arena: int, scratch: dict[int, tuple[int, int]], complaint: str
) -> None:
    with pytest.raises(PlanError, match=complaint.replace("'", ".")):
        check(graph, places, arena, scratch)


def test_layer_that_is_wrongly_skipped_is_found() -> None:
    graph = graph_of("x", "c", [("c", JOIN, "x")])
    places = {"x": Location(Region.ARENA, 0, 0), "c": Location(Region.ARENA, 0, 16)}
    with pytest.raises(PlanError, match="overwritten before the end of Join"):
        Machine(graph, list(graph.layers()), in_place(graph), places, {}, 32, {0: frozenset({"c"})}).run()


def test_state_that_was_changed_too_early_is_found() -> None:
    graph = graph_of("x", "y", [("u", WORK, "x"), ("y", WORK, "s")], "s=u")
    places = {"x": Location(Region.ARENA, 0, 0), "y": Location(Region.ARENA, 0, 0), "s": STATE0, "u": STATE0}
    with pytest.raises(PlanError, match=r"'s' has been overwritten before Work 'y' reads it"):
        Machine(graph, list(graph.layers()), in_place(graph), places, {}, 32, {}).run()


# --- packing -------------------------------------------------------------------------------------


SIDE = 16


def random_problem(seed: int) -> Problem:
    """Cut a box of bytes and steps into blocks, so that the bound is known to be reachable."""
    rng = random.Random(seed)
    boxes, whole = [(0, SIDE, 0, SIDE - 1)], []
    while boxes:
        low, high, first, last = boxes.pop()
        if high - low > 1 and rng.random() < 0.68:
            cut = rng.randint(low + 1, high - 1)
            boxes += [(low, cut, first, last), (cut, high, first, last)]
        elif last > first and rng.random() < 0.68:
            step = rng.randint(first, last - 1)
            boxes += [(low, high, first, step), (low, high, step + 1, last)]
        else:
            whole.append((high - low, first, last))
    rng.shuffle(whole)
    return Problem(tuple(Block(str(i), (Piece(0, n, a, z),)) for i, (n, a, z) in enumerate(whole)))


@pytest.mark.parametrize("seed", range(40))
def test_solver_meets_the_bound(seed: int) -> None:
    problem = random_problem(seed)
    solution = solve(problem)
    assert solution.arena_bytes == problem.lower_bound_bytes == SIDE
    for i, a in enumerate(problem.blocks):
        for j, b in enumerate(problem.blocks[:i]):
            apart = (
                solution.offsets[i] + a.bytes <= solution.offsets[j]
                or solution.offsets[j] + b.bytes <= solution.offsets[i]
            )
            assert apart or a.last < b.first or b.last < a.first


@pytest.mark.parametrize("seed", range(25))
def test_solver_finds_the_optimum_of_small_problems(seed: int) -> None:
    """Whatever the order of placing, it is not better."""
    rng = random.Random(seed)
    blocks = []
    for i in range(6):
        first = rng.randint(0, 6)
        blocks.append(Block(str(i), (Piece(0, rng.randint(1, 9), first, first + rng.randint(0, 4)),)))
    packing = Packing(blocks)
    optimum = min(packing.place_all(p).arena_bytes for p in itertools.permutations(range(6)))
    assert solve(Problem(tuple(blocks))).arena_bytes == optimum


@pytest.mark.parametrize("seed, count", [(0, 1), (3, 23)])
def test_search_fills_memory_to_the_last_byte(seed: int, count: int) -> None:
    packing = Packing(random_problem(seed).blocks)
    assert len(packing.blocks) == count
    found = search(packing, SIDE, 20_000)
    assert found is not None
    assert found.arena_bytes == SIDE
    assert search(packing, SIDE - 1, 20_000) is None


def test_search_gives_up_at_its_limit() -> None:
    packing = Packing(random_problem(1).blocks)
    assert len(packing.blocks) > 3
    assert search(packing, SIDE, 1) is None


@pytest.mark.parametrize(
    "target,blocks",
    [
        (13, [(2, 1, 2, 1), (3, 3, 4, 4), (6, 3, 5, 1), (3, 3, 5, 4)]),
        (25, [(3, 2, 3, 4), (3, 3, 4, 1), (4, 3, 3, 1), (6, 2, 4, 4), (6, 2, 3, 4)]),
    ],
)
def test_search_leaves_gaps_where_alignment_demands_them(
    target: int, blocks: Sequence[tuple[int, int, int, int]]
) -> None:
    """A block that could be placed lower has to wait for one that is placed higher now."""
    packing = Packing([Block("b", (Piece(0, size, first, last),), at) for size, first, last, at in blocks])
    found = search(packing, target, 2_000)
    assert found is not None
    assert found.arena_bytes == target


def test_same_problem_same_solution() -> None:
    assert solve(random_problem(7)) == solve(random_problem(7))


def test_good_alignment_where_it_is_free() -> None:
    blocks = tuple(Block(str(n), (Piece(0, n, 0, 0),)) for n in (5, 32))
    solution = solve(Problem(blocks))
    assert solution.arena_bytes == 37
    assert [offset % 16 for offset in solution.offsets] == [0, 0]


def test_among_equals_the_first_is_kept() -> None:
    """Alignments are tried from the best to the worst."""
    first, second = Solution((0, 16), 40), Solution((0, 12), 40)
    assert _better(first, second) is first
    assert _better(first, Solution((0, 12), 39)).arena_bytes == 39
    assert _better(first, Solution((0, 20), 41)) is first


# --- the order of execution ----------------------------------------------------------------------


def order(graph: Graph) -> str:
    return " ".join(node.name for node in scheduled(graph).nodes)


def test_branch_that_shrinks_runs_first() -> None:
    """Both branches blow up; finishing one before the other starts keeps only its small end."""
    nodes = [
        ("a", WORK, "x"),
        ("c", WORK, "x"),
        ("b", WORK, "a"),
        ("d", WORK, "c"),
        ("y", WORK, "b d"),
    ]
    graph = graph_of("x", "y", nodes, sizes={"a": 100, "c": 100, "b": 4, "d": 4})
    assert order(graph) in ("a b c d y", "c d a b y")
    assert planned(scheduled(graph)).arena_bytes == 120
    assert planned(graph).arena_bytes == 216


def test_chain_keeps_its_order() -> None:
    graph = graph_of("x", "c", [("a", WORK, "x"), ("b", WORK, "a"), ("c", WORK, "b")])
    assert order(graph) == "a b c"


def test_state_is_read_before_it_is_updated() -> None:
    graph = graph_of("x", "y", [("u", WORK, "x"), ("y", WORK, "s")], "s=u")
    nodes = [*graph.nodes, Node("z", WORK, ("y",), ("z",))]
    graph = replace(graph, nodes=tuple(nodes), tensors={**graph.tensors, "z": graph.tensors["y"]})
    graph = replace(graph, tensors={**graph.tensors, "z": Tensor("z", (16,), DType.INT8)}, outputs=("z",))
    names = order(graph).split()
    assert names.index("y") < names.index("u")
    assert planned(scheduled(graph)).places["u"] == STATE0


def random_graph(seed: int) -> Graph:
    """Layers of all memory behaviours on random operands, with states."""
    rng = random.Random(seed)
    tensors = {name: Tensor(name, (rng.choice([4, 8, 16]),), DType.INT8) for name in ("x", "s", "t")}
    nodes: list[Node] = []
    for i in range(rng.randint(3, 14)):
        args = rng.sample(sorted(tensors), rng.randint(1, min(3, len(tensors))))
        op = rng.choice([WORK, OVER, SLIDE, SAME, JOIN, Part(0), Part(4)])
        size = {Same: tensors[args[0]].bytes, Part: 4, Join: sum(tensors[a].bytes for a in args)}.get(
            type(op), rng.choice([4, 8, 16])
        )
        if isinstance(op, Part) and tensors[args[0]].bytes < 8:
            op = Part(0)
        name = f"n{i}"
        tensors[name] = Tensor(name, (size,), DType.INT8)
        nodes.append(Node(name, op, tuple(args[:1] if isinstance(op, Same | Part) else args), (name,)))
    updates = {}
    for state in ("s", "t"):
        fitting = [n.name for n in nodes if tensors[n.name].bytes == tensors[state].bytes]
        updates[state] = rng.choice(fitting) if fitting else state
    outputs = tuple(dict.fromkeys([nodes[-1].name, rng.choice(nodes).name]))
    states = tuple(State(s, u) for s, u in updates.items())
    return Graph("g", tensors, tuple(nodes), ("x",), outputs, states)


@pytest.mark.tenth
@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_are_proven(seed: int) -> None:
    """Sharing of every kind at once; the validator inside ``planned`` is the judge."""
    graph = random_graph(seed)
    for ordered in (graph, scheduled(graph)):
        for outside in (False, True):
            result = planned(ordered, {"n1": 8, "n2": 12}, outside)
            assert result.arena_bytes >= result.lower_bound_bytes
