# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A loop whose body has kernels and a plan of its own, and the kernel that calls them.

The arena of the body is the scratch memory of the loop. What a turn gets from outside and what it leaves
there is in the memory of the loop's inputs and outputs: one part of each sequence and of each row output. A
state has the memory of the output that its last value becomes. So the plan of the body is that of a model
with the caller's buffers, and the same validator checks it byte by byte: it rejects a body that finds a state
overwritten before its last reader, or that does not leave every state with its new value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Layer, Tensor
from tinyml.memory.plan import Location, Plan, Region
from tinyml.memory.select import Selected
from tinyml.ops.framework.kernel import Kernel, Overlay, Sheet, over_inputs, register_kernels
from tinyml.ops.framework.loop import Loop
from tinyml.ops.framework.play_sheet import PLAYED_LOOPS, NotPlayableError, PlaySheet

SCRATCH_ALIGNMENT = 16
"""That of an arena, which the kernels of the body rely on."""


@dataclass(frozen=True, eq=False)
class PlacedLoop(Loop):
    """What ``lay_out`` makes of a loop; ``body`` is in the order in which it is executed."""

    selected: tuple[Selected, ...]
    plan: Plan

    @property
    def kind(self) -> str:
        return "Loop"

    def label(self) -> str:
        return "loop"

    @property
    def working(self) -> Iterator[Selected]:
        """The layers that do any work."""
        return (one for step, one in enumerate(self.selected) if step not in self.plan.free)


def own_types(layer: Layer[PlacedLoop]) -> bool:
    """In the memory of inputs, outputs and states are only tensors with elements of their size."""
    body, plan = layer.op.body, layer.op.plan
    owners = {
        Region.INPUT: body.inputs,
        Region.OUTPUT: body.outputs,
        Region.STATE: [state.tensor for state in body.states],
    }
    return all(
        place.region is Region.ARENA
        or body.tensors[name].dtype is body.tensors[owners[place.region][place.index]].dtype
        for name, place in plan.places.items()
    )


class LoopOfLayers(Kernel[PlacedLoop]):
    """A function with a ``for`` loop that calls the functions of the layers in the body."""

    name = "loop of layers"
    constraints = (own_types,)
    scratch_alignment = SCRATCH_ALIGNMENT

    def scratch_bytes(self, layer: Layer[PlacedLoop], target: Target) -> int:
        return -(-layer.op.plan.arena_bytes // 8) * 8

    def overlays(self, layer: Layer[PlacedLoop]) -> tuple[Overlay, ...]:
        """The first state begins in place of its first value, unless the loop reads that again later."""
        if not layer.op.body.states or layer.input(0).is_constant:
            return ()
        name = layer.input(0).name
        once = [tensor.name for tensor in layer.inputs if tensor is not None].count(name) == 1
        return over_inputs(layer, 0) if once else ()

    def repeated_bytes(self, layer: Layer[PlacedLoop]) -> int:
        return sum(one.kernel.repeated_bytes(one.layer) for one in layer.op.selected)

    def runtime_sources(self, layer: Layer[PlacedLoop]) -> tuple[str, ...]:
        return _all(one.kernel.runtime_sources(one.layer) for one in layer.op.selected)

    def cmsis_nn_sources(self, layer: Layer[PlacedLoop]) -> tuple[str, ...]:
        return _all(one.kernel.cmsis_nn_sources(one.layer) for one in layer.op.selected)

    def functions(self, layer: Layer[PlacedLoop]) -> tuple[str, ...]:
        return _all(one.kernel.functions(one.layer) for one in layer.op.selected)

    def play(self, layer: Layer[PlacedLoop], sheet: Sheet) -> None:
        op = layer.op
        assert isinstance(sheet, PlaySheet)
        if sheet.level == PLAYED_LOOPS:
            raise NotPlayableError(f"it is the innermost of more than {PLAYED_LOOPS} loops")
        places = _PlayedPlaces(layer, sheet)
        self._begin(layer, sheet)
        with sheet.turns(op.steps, sheet.y(0) if op.asks else "NULL", op.bounded):
            sheet.calls(op, places)
            for copy in self._copies(layer, sheet, places):
                sheet.copy(*copy)

    def emit(self, layer: Layer[PlacedLoop], sheet: Sheet) -> None:
        op, places = layer.op, _Places(layer, sheet)
        calls = sheet.calls(op, places)
        copies = self._copies(layer, sheet, places)
        if places.buffers:
            sheet.divide_scratch()
        for name, (c_type, offset) in sorted(places.buffers.items(), key=lambda item: item[1][::-1]):
            sheet.buffer(name, c_type, offset)
        if sheet.may_fail:
            sheet.line("int status;")
        sheet.may_fail |= op.bounded
        sheet.line()
        self._begin(layer, sheet)
        with sheet.loop("turn", op.steps):
            if op.asks:
                with sheet.block(f"if (!{sheet.y(0)}[0]) {{"):
                    sheet.line("break;")
            for call in calls:
                call.write(sheet)
            for copy in copies:
                sheet.copy(*copy)
        if op.bounded:
            sheet.line(f"return {sheet.y(0)}[0] ? TINYML_EBOUND : 0;")
        elif sheet.may_fail:
            sheet.line("return 0;")

    def _begin(self, layer: Layer[PlacedLoop], sheet: Sheet) -> None:
        """What is done before the first turn: states get their first values."""
        states = layer.op.body.states
        for index, state in enumerate(states):
            first, size = layer.input(index), layer.op.body.tensors[state.tensor].bytes
            if first.is_constant and not any(first.value.tobytes()):
                sheet.clear(sheet.y(index), size)
            else:
                sheet.copy(sheet.x(index), sheet.y(index), size)
        if layer.op.asks:  # there may be fewer rows than room
            for i in range(len(states), len(layer.outputs)):
                sheet.clear(sheet.y(i), layer.outputs[i].bytes)

    def _copies(
        self, layer: Layer[PlacedLoop], sheet: Sheet, places: Callable[[Tensor | None, Location], str]
    ) -> list[tuple[str, str, int]]:
        """New values of states that were computed elsewhere: from, to, bytes."""
        body, known = layer.op.body, layer.op.plan.places
        return [
            (places(update, known[update.name]), sheet.y(i), update.bytes)
            for i, state in enumerate(body.states)
            if known[(update := body.tensors[state.update]).name] != known[state.tensor]
        ]


class _Places:
    """C for where tensors of the body are during a turn; ``buffers`` are those in the scratch memory."""

    def __init__(self, layer: Layer[PlacedLoop], sheet: Sheet) -> None:
        self.op, self.sheet = layer.op, sheet
        self.buffers: dict[str, tuple[str, int]] = {}  # name: type and offset

    def __call__(self, tensor: Tensor | None, place: Location) -> str:
        """``tensor`` None: scratch memory of a layer."""
        op, sheet = self.op, self.sheet
        if place.region is Region.ARENA:
            c_type = tensor.dtype.c if tensor is not None else "void"
            name = f"{'work' if tensor is None else tensor.dtype.value}_{place.offset}"
            self.buffers[name] = c_type, place.offset
            return name
        assert tensor is not None, "scratch memory is in the arena"
        offset, index = place.offset // tensor.dtype.bytes, place.index
        if place.region is Region.STATE:
            return _at(sheet.y(index), offset)
        states = len(op.body.states)
        if place.region is Region.OUTPUT:
            row = op.body.tensors[op.body.outputs[index]].elements
            return _at(sheet.y(states + index), offset, _turn(op, row, index in op.rows_last_first))
        array = sheet.x(states + index)
        if index >= op.sequences:
            return _at(array, offset)
        row = op.body.tensors[op.body.inputs[index]].elements
        return _at(array, offset, _turn(op, row, index in op.last_first))


class _PlayedPlaces:
    """The same for a player, as names of operands."""

    def __init__(self, layer: Layer[PlacedLoop], sheet: PlaySheet) -> None:
        self.op, self.sheet = layer.op, sheet

    def __call__(self, tensor: Tensor | None, place: Location) -> str:
        """``tensor`` None: scratch memory of a layer."""
        op, sheet = self.op, self.sheet
        if place.region is Region.ARENA:
            return sheet.inside(sheet.scratch, place.offset, tensor.dtype.bytes if tensor is not None else 1)
        assert tensor is not None, "scratch memory is in the arena"
        offset, index, states = place.offset // tensor.dtype.bytes, place.index, len(op.body.states)
        if place.region is Region.STATE:
            return sheet.part(sheet.y(index), offset, 0)
        output = place.region is Region.OUTPUT
        name = sheet.y(states + index) if output else sheet.x(states + index)
        if not output and index >= op.sequences:
            return sheet.part(name, offset, 0)
        row = op.body.tensors[(op.body.outputs if output else op.body.inputs)[index]].elements
        if index in (op.rows_last_first if output else op.last_first):
            return sheet.part(name, (op.steps - 1) * row + offset, -row)
        return sheet.part(name, offset, row)


def _turn(op: Loop, row: int, last_first: bool) -> str:
    """C for the first element of the part that a turn works on."""
    number = f"({op.steps - 1} - turn)" if last_first else "turn"
    return number if row == 1 else f"{number} * {row}"


def _at(array: str, offset: int, turn: str = "") -> str:
    terms = [term for term in (turn, str(offset) if offset else "") if term]
    return f"&{array}[{' + '.join(terms)}]" if terms else array


def _all(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in group))


def with_inner(selected: Iterable[Selected]) -> Iterator[Selected]:
    """Layers with their kernels, and those of the bodies of loops after each loop."""
    for one in selected:
        yield one
        if isinstance(one.layer.op, PlacedLoop):
            yield from with_inner(one.layer.op.selected)


def looped_layers(layer: Layer) -> tuple[int, list[Selected]] | None:
    """How often a loop runs, and the layers of its body that have a function; None for other layers."""
    op = layer.op
    return (op.steps, list(op.working)) if isinstance(op, PlacedLoop) else None


register_kernels(PlacedLoop, LoopOfLayers())
