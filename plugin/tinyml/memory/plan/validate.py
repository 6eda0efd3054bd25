# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Re-checks a plan the slow, obvious way: simulates a run with names of bytes instead of values.

Every byte of every memory holds the name of the byte that was last written there. A layer that
reads a tensor must find exactly that tensor's bytes. Addresses must be aligned as <tinyml/tinyml.h>
promises. This file shares no code with the rest of the planner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tinyml.ir import Graph, Layer, Tensor
from tinyml.memory.plan.regions import Location, Region
from tinyml.ops.framework.kernel import Kernel, Overlay

Names: TypeAlias = npt.NDArray[np.int64]

UNKNOWN = -1
SCRATCH = -2


class PlanError(AssertionError):
    """The planner made a mistake: never the user's fault."""


class Machine:
    """The memories of a model, and what a run does to them."""

    def __init__(
        self,
        graph: Graph,
        layers: Sequence[Layer],
        overlays: Sequence[Sequence[Overlay]],  # per layer, inputs that output 0 may be written over
        places: Mapping[str, Location],
        scratch: Mapping[int, tuple[int, int]],  # step -> offset, bytes
        arena_bytes: int,
        shared: Mapping[int, frozenset[str]],  # step -> tensors that the layer does not touch
        kernels: Sequence[Kernel[Any]] = (),  # per layer; those with alignments of their own matter
    ) -> None:
        self.graph, self.layers, self.places = graph, layers, places
        self.overlays, self.kernels = overlays, kernels
        self.scratch, self.shared = scratch, shared
        self.memory: dict[tuple[Region, int], Names] = {(Region.ARENA, 0): _blank(arena_bytes)}
        for i, state in enumerate(graph.states):
            self.memory[Region.STATE, i] = _blank(graph.tensors[state.tensor].bytes)
        for region, names in ((Region.INPUT, graph.inputs), (Region.OUTPUT, graph.outputs)):
            for i, name in enumerate(names):
                self.memory[region, i] = _blank(graph.tensors[name].bytes)
        self.names: dict[str, Names] = {}
        self._named = 0

    # --- names of bytes ------------------------------------------------------------------------

    def fresh(self, tensor: Tensor) -> Names:
        names = np.arange(self._named, self._named + tensor.bytes, dtype=np.int64)
        self._named += tensor.bytes
        return names

    def result(self, tensor: Tensor, layer: Layer) -> Names:
        """Names of a computed tensor: new ones, except where the operator only moves bytes."""
        names = self.fresh(tensor)
        inputs = {t.name: t for t in layer.inputs if t is not None}
        for view in layer.op.views(layer):
            if view.inner == tensor.name and view.outer in inputs:
                names = self.of(inputs[view.outer])[view.offset_bytes : view.offset_bytes + tensor.bytes]
            elif view.outer == tensor.name and view.inner in inputs:
                inner = inputs[view.inner]
                names[view.offset_bytes : view.offset_bytes + inner.bytes] = self.of(inner)
        if len(names) != tensor.bytes:
            raise PlanError(f"{layer.op.kind} {layer.name!r} declares a view outside its tensors")
        return names

    def of(self, tensor: Tensor) -> Names:
        if tensor.name not in self.names:
            self.names[tensor.name] = self.fresh(tensor)  # a constant
        return self.names[tensor.name]

    # --- memory --------------------------------------------------------------------------------

    def span(self, tensor: Tensor) -> tuple[tuple[Region, int], int, int]:
        place = self.places[tensor.name]
        if place.offset < 0 or place.offset % tensor.dtype.bytes:
            raise PlanError(f"{tensor.name!r} is not aligned")
        end = place.offset + tensor.bytes
        if end > len(self.memory[place.region, place.index]):
            raise PlanError(f"{tensor.name!r} extends past the end of its memory")
        return (place.region, place.index), place.offset, end

    def write(self, tensor: Tensor, names: Names) -> None:
        memory, start, end = self.span(tensor)
        self.memory[memory][start:end] = names

    def expect(self, tensor: Tensor, why: str) -> None:
        memory, start, end = self.span(tensor)
        if not np.array_equal(self.memory[memory][start:end], self.of(tensor)):
            raise PlanError(f"{tensor.name!r} has been overwritten before {why}")

    # --- a run ---------------------------------------------------------------------------------

    def run(self) -> None:
        sources = (*self.graph.inputs, *(state.tensor for state in self.graph.states))
        for name in sources:
            tensor = self.graph.tensors[name]
            self.write(tensor, self.of(tensor))
        for name in sources:
            self.expect(self.graph.tensors[name], "the first layer")
        done = self._done_after()
        for step, layer in enumerate(self.layers):
            self.step(step, layer)
            for name in done[step]:
                self.names.pop(name, None)
        kept = [self.graph.tensors[name] for name in (*self.graph.outputs, *_updates(self.graph))]
        for tensor in kept:
            if not tensor.is_constant:
                self.expect(tensor, "the end of the run")
        for state in self.graph.states:
            update = self.graph.tensors[state.update]
            if self.places[state.update] != self.places[state.tensor]:
                self.expect(update, "it is copied into its state")
                self.write(self.graph.tensors[state.tensor], self.of(update))
        for i, state in enumerate(self.graph.states):
            if not np.array_equal(self.memory[Region.STATE, i], self.of(self.graph.tensors[state.update])):
                raise PlanError(f"state {state.tensor!r} does not hold its new value after the run")
        for name in self.graph.outputs:
            self.expect(self.graph.tensors[name], "the caller reads it")

    def _done_after(self) -> Sequence[Sequence[str]]:
        """By step, the tensors that nothing mentions later: names take eight times their bytes."""
        kept = {*self.graph.outputs, *_updates(self.graph)}
        last = {t.name: step for step, layer in enumerate(self.layers) for t in _tensors(layer)}
        done: list[list[str]] = [[] for _ in self.layers]
        for name, step in last.items():
            if name not in kept:
                done[step].append(name)
        return done

    def check_alignments(self, step: int, layer: Layer, kernel: Kernel[Any]) -> None:
        """What the kernel requires beyond what <tinyml/tinyml.h> promises."""
        wanted = [(self.places[name], bytes_, name) for name, bytes_ in kernel.alignments(layer).items()]
        for place, alignment, name in wanted:
            if place.region is not Region.ARENA or place.offset % alignment:
                raise PlanError(f"{name!r} is not aligned to {alignment} bytes")
        if step in self.scratch and self.scratch[step][0] % kernel.scratch_alignment:
            raise PlanError(f"the scratch memory of {layer.name!r} is not aligned")

    def step(self, step: int, layer: Layer) -> None:
        read = [t for t in layer.inputs if t is not None and not t.is_constant]
        for tensor in read:
            self.expect(tensor, f"{layer.op.kind} {layer.name!r} reads it")
        if step in self.scratch:
            offset, size = self.scratch[step]
            for tensor in (*read, *layer.outputs):
                memory, start, end = self.span(tensor)
                if memory == (Region.ARENA, 0) and start < offset + size and offset < end:
                    raise PlanError(f"the scratch memory of {layer.name!r} overlaps {tensor.name!r}")
            arena = self.memory[Region.ARENA, 0]
            if offset % (8 if size % 8 == 0 else 4):  # as <tinyml/tinyml.h> promises
                raise PlanError(f"the scratch memory of {layer.name!r} is not aligned")
            if offset < 0 or offset + size > len(arena):
                raise PlanError(f"the scratch memory of {layer.name!r} extends past the end of the arena")
            arena[offset : offset + size] = SCRATCH
        if self.kernels:
            self.check_alignments(step, layer, self.kernels[step])
        results = [self.result(tensor, layer) for tensor in layer.outputs]
        for position, (tensor, names) in enumerate(zip(layer.outputs, results, strict=True)):
            self.names[tensor.name] = names
            self.check_written(step, layer, position)
            memory, start, _ = self.span(tensor)
            for low, high in self.written(step, layer, position):
                self.memory[memory][start + low : start + high] = names[low:high]
        for tensor in layer.outputs:
            self.expect(tensor, f"the end of {layer.op.kind} {layer.name!r}")

    def written(self, step: int, layer: Layer, position: int) -> list[tuple[int, int]]:
        """The ranges of an output that the layer's code writes."""
        y = layer.outputs[position]
        left_alone = self.shared.get(step, frozenset())
        if y.name in left_alone:
            return []
        sizes = {t.name: t.bytes for t in layer.inputs if t is not None}
        kept = sorted(
            (v.offset_bytes, v.offset_bytes + sizes[v.inner])
            for v in layer.op.views(layer)
            if v.outer == y.name and v.inner in left_alone
        )
        ranges, at = [], 0
        for low, high in [*kept, (y.bytes, y.bytes)]:
            if at < low:
                ranges.append((at, low))
            at = max(at, high)
        return ranges

    def check_written(self, step: int, layer: Layer, position: int) -> None:
        """A kernel may overwrite an input only if it declares this, and only at the declared distance."""
        y = layer.outputs[position]
        memory, base, _ = self.span(y)
        ways = self.overlays[step] if position == 0 else ()
        allowed = {(layer.input(way.input).name, way.distance) for way in ways}
        for low, high in self.written(step, layer, position):
            if memory[0] is Region.INPUT:
                raise PlanError(f"{layer.op.kind} {layer.name!r} writes into the caller's input")
            for tensor in layer.inputs:
                if tensor is None or tensor.is_constant:
                    continue
                other, start, end = self.span(tensor)
                if other != memory or start >= base + high or base + low >= end:
                    continue
                if (tensor.name, base - start) not in allowed:
                    raise PlanError(f"{layer.op.kind} {layer.name!r} overwrites its input {tensor.name!r}")


def _tensors(layer: Layer) -> list[Tensor]:
    return [tensor for tensor in (*layer.inputs, *layer.outputs) if tensor is not None]


def _updates(graph: Graph) -> list[str]:
    return [state.update for state in graph.states]


def _blank(size: int) -> Names:
    return np.full(size, UNKNOWN, np.int64)
