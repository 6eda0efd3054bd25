# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""From selected kernels and a memory plan to a program: what ``emit`` is for models with code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import short
from tinyml.cores.targets import Target
from tinyml.emit.names import layer_names
from tinyml.ir import Graph, Layer, Tensor
from tinyml.ir.branches import Literal, conditions_of
from tinyml.ir.interpreter import initial_state
from tinyml.memory.loops.placed import PlacedLoop
from tinyml.memory.plan import Location, Plan, Region
from tinyml.memory.select import Selected
from tinyml.ops.framework.kernel import Kernel, Record, Table, Tables, input_parameter, output_parameter
from tinyml.ops.framework.play_sheet import NotPlayableError, PlaySheet
from tinyml.ops.framework.program import Call, Memory, Operand, Step, add, calls_of
from tinyml.ops.framework.sheet import LayerCall
from tinyml.player.kernels import KERNELS

STATE_ALIGNMENT = 16  # TINYML_ARENA_ALIGNMENT


@dataclass(frozen=True)
class Program:
    """What a model does when it runs and when it forgets its state, and its constants."""

    run: Sequence[Step]
    reset: Sequence[Step]
    tables: Sequence[Table]

    def calls(self) -> Iterator[Call]:
        """Every call once, in the order of the program."""
        yield from calls_of((*self.reset, *self.run))


@dataclass(frozen=True)
class Refused:
    """A layer that the player has no kernel for; in the body of a loop, ``outer`` is the loop."""

    outer: Layer
    layer: Layer
    kernel: Kernel[Any]
    reason: str


class UnplayableError(UnsupportedError):
    """A model has layers that the player has no kernel for."""

    def __init__(self, refused: Sequence[Refused]) -> None:
        lines = (f"  {one.outer.op.label()} {short(one.outer.name)!r}: {one.reason}" for one in refused)
        super().__init__(
            "the player has no kernel for these layers:\n" + "\n".join(dict.fromkeys(lines)),
            "compile the model into the firmware, or pack it for a slot with code",
        )
        self.refused = tuple(refused)

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(one.outer.name for one in self.refused)


def program_of(name: str, graph: Graph, plan: Plan, selected: Sequence[Selected], target: Target) -> Program:
    """All layers as calls; an error lists those that have none."""
    if plan.io_outside:
        raise UnsupportedError(
            "a model without code keeps inputs and outputs in its arena",
            "io arena, or no `io:` in tinyml.yaml",
        )
    places = _Places(graph, plan)
    tables = Tables()
    run: list[Step] = []
    refused: list[Refused] = []
    conditions = conditions_of(graph)
    for step, (chosen, prefix) in enumerate(
        zip(selected, layer_names(name, [s.layer for s in selected]), strict=True)
    ):
        if step in plan.free:
            continue
        try:
            add(run, _layer(step, chosen, prefix, places, target, tables, conditions[step]))
        except NotPlayableError as error:
            layer, kernel = error.inside or (chosen.layer, chosen.kernel)
            refused.append(Refused(chosen.layer, layer, kernel, error.message))
    if refused:
        raise UnplayableError(refused)
    run += places.updates()
    reset = list(places.first_values(tables))
    return Program(run, reset, tuple(tables))


def _layer(
    step: int,
    chosen: Selected,
    prefix: str,
    places: _Places | _PlacesInside,
    target: Target,
    tables: Tables,
    conditions: Sequence[Literal],
    around: _LayerSheet | None = None,
) -> list[Step]:
    """``around``: the loop that the layer is in. Each condition is a loop around the layer, too."""
    layer, plan = chosen.layer, places.plan
    shared = plan.shared.get(step, frozenset())
    where = {
        input_parameter(layer, i): places.operand(t)
        for i, t in enumerate(layer.inputs)
        if t is not None and not t.is_constant
    }
    where |= {output_parameter(layer, i): places.operand(t) for i, t in enumerate(layer.outputs)}
    if step in plan.scratch:
        where["scratch"] = places.scratch(plan.scratch[step])
    sheet = _LayerSheet(
        layer,
        target,
        prefix,
        frozenset(i for i, t in enumerate(layer.inputs) if t is not None and t.name in shared),
        step in plan.backwards,
        tables,
        where=where,
        step=step if around is None else around.step,
        kernel=chosen.kernel.name,
        level=0 if around is None else around.level + 1,
    )
    sheet.go_deeper(len(conditions))
    chosen.kernel.play(layer, sheet)
    for call in calls_of(sheet.steps):
        if call.function not in KERNELS:
            raise NotPlayableError(f"the player does not call {call.function}")
    steps = sheet.steps
    for name, truth in reversed(conditions):
        if steps:
            steps = [sheet.once(places.named(name), truth, steps)]
    return steps


@dataclass
class _LayerSheet(PlaySheet):
    """The sheet of a layer, in which there can be loops of layers."""

    def calls(self, part: PlacedLoop, where: Callable[[Tensor | None, Location], str]) -> list[LayerCall]:
        """Note the calls; there is nothing left to write."""
        places = _PlacesInside(self, part, where)
        names = layer_names(self.prefix, [one.layer for one in part.selected])
        conditions = conditions_of(part.body)
        for step, (chosen, name) in enumerate(zip(part.selected, names, strict=True)):
            if step in part.plan.free:
                continue
            try:
                under = conditions[step]
                add(
                    self.steps,
                    _layer(step, chosen, name, places, self.target, self.model_tables, under, self),
                )
            except NotPlayableError as error:
                layer = f"{chosen.layer.op.label()} {short(chosen.layer.name)!r}"
                problem = NotPlayableError(f"in its body, {layer}: {error.message}")
                problem.inside = error.inside or (chosen.layer, chosen.kernel)
                raise problem from None
        return []


class _PlacesInside:
    """Where tensors of the body of a loop are, as operands of calls."""

    def __init__(
        self, sheet: _LayerSheet, part: PlacedLoop, where: Callable[[Tensor | None, Location], str]
    ) -> None:
        self.sheet, self.body, self.plan, self.where = sheet, part.body, part.plan, where

    def named(self, name: str) -> Operand:
        return self.operand(self.body.tensors[name])

    def operand(self, tensor: Tensor) -> Operand:
        return self.sheet.where[self.where(tensor, self.plan.places[tensor.name])]

    def scratch(self, offset: int) -> Operand:
        return self.sheet.where[self.where(None, Location(Region.ARENA, 0, offset))]


def state_starts(graph: Graph) -> list[int]:
    """Where each state begins in the memory that a model without variables is given; then where they end."""
    starts = [0]
    for state in graph.states:
        size = graph.tensors[state.tensor].bytes
        starts.append(starts[-1] + -(-size // STATE_ALIGNMENT) * STATE_ALIGNMENT)
    return starts


class _Places:
    """Where tensors are, as operands of calls."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph, self.plan = graph, plan
        self.starts = state_starts(graph)

    def named(self, name: str) -> Operand:
        return self.operand(self.graph.tensors[name])

    def operand(self, tensor: Tensor) -> Operand:
        place = self.plan.places[tensor.name]
        size = tensor.dtype.bytes
        if place.region is Region.STATE:
            return Operand(Memory.STATE, self.starts[place.index] + place.offset, element_bytes=size)
        return Operand(Memory.ARENA, place.offset, element_bytes=size)

    def scratch(self, offset: int) -> Operand:
        return Operand(Memory.ARENA, offset)

    def updates(self) -> list[Step]:
        """State that is computed elsewhere is copied at the end of a run."""
        found: list[Step] = []
        for index, state in enumerate(self.graph.states):
            update, tensor = self.graph.tensors[state.update], self.graph.tensors[state.tensor]
            if self.plan.places[update.name] != self.plan.places[tensor.name]:
                target = Operand(Memory.STATE, self.starts[index])
                found.append(_copy(self.operand(update), target, tensor.bytes))
        return found

    def first_values(self, tables: Tables) -> Iterator[Step]:
        first = initial_state(self.graph)
        for index, state in enumerate(self.graph.states):
            values = first[state.tensor]
            target = Operand(Memory.STATE, self.starts[index])
            content = values.tobytes()
            if content == content[:1] * len(content):
                members = {".bytes": str(len(content)), ".value": str(content[0] if content else 0)}
                yield Call("tinyml_play_fill", Record("tinyml_play_fill", "", members), (target,), 0)
            else:
                table = tables.share(Table(f"state{index}_initial", np.ascontiguousarray(values)))
                yield _copy(Operand(Memory.IMAGE, table=table.name), target, len(content))


def _copy(source: Operand, target: Operand, size: int) -> Call:
    members: Mapping[str, str] = {".rows": "1", ".bytes": str(size), ".from_step": "0", ".to_step": "0"}
    return Call("tinyml_play_copy", Record("tinyml_play_copy", "", members), (source, target), 0)
