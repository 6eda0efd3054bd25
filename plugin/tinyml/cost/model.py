# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The fitted costs of a core: ``data/CORE.json``, which ``python -m tools.fit_costs`` writes.

A layer of a library's kernel costs a sum over its ``work``; a layer that is loops in the model's own source
costs a sum over the operations that its C executes, times a factor for its kernel. Code is what the linker
would keep: the functions that the C names and those that they call, and what the model's own C compiles to.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Any

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.core_data import data_file, own_loops_file
from tinyml.cores.targets import find_target
from tinyml.cost.error_bars import AFTER_RELU
from tinyml.cost.loops.loop_work import loop_work
from tinyml.ir import Layer
from tinyml.ops.framework.kernel import Kernel, Library
from tinyml.ops.framework.kernel_costs import Figures, by_loops, estimated, weighted
from tinyml.ops.framework.rectified import ends_at_zero
from tinyml.ops.framework.tally import Tally
from tinyml.ops.framework.work import work
from tinyml.ops.weighted.shape_work import shape_work
from tinyml.pipeline import Selected, banded_layers, calls_in_bands, looped_layers

FAR_OFF = 10
"""Figures of loops may be below zero, so a sum of them may be next to nothing: then this part of a rough
estimate, which never is, stands for it."""


@dataclass(frozen=True)
class Speed:
    """What work costs: in instructions, or in cycles. ``error``: the worst of all published models.

    ``loops``: what pieces of the code of kernels take that say how often these run on ``core``; such kernels
    are estimated by that, and the others by ``kernels``, from the sizes of a layer.
    ``loops_up_to``: for some of them, from how many instructions on the others' figures are closer to models.
    ``shapes``: the same for kernels that do not say it, by all ways to walk over a layer (``shape_work``).
    They hold up to ``shapes_up_to`` instructions of a layer; larger layers are like those of models.
    ``own_loops``: what the work of loops in the model's own C takes (``cost/loops/loop_work.py``).
    ``rectified``: for kernels on floats, without an FPU, the part that it takes if ReLU was applied before.
    """

    kernels: Mapping[str, Figures] = field(default_factory=dict)
    operations: Figures = field(default_factory=dict)
    factors: Figures = field(default_factory=dict)
    error: float = 0
    loops: Mapping[str, Figures] = field(default_factory=dict)
    shapes: Mapping[str, Figures] = field(default_factory=dict)
    shapes_up_to: Figures = field(default_factory=dict)
    core: str = ""
    own_loops: Figures = field(default_factory=dict)
    rectified: Figures = field(default_factory=dict)
    loops_up_to: Figures = field(default_factory=dict)

    def of_layer(self, layer: Layer, kernel: Kernel[Any], tally: Tally | None) -> float | None:
        """None if the kernel was never measured."""
        if (looped := looped_layers(layer)) is not None:
            return self._of_turns(layer, kernel, tally, *looped)
        if (inside := banded_layers(layer)) is not None:
            zeros = [tally is not None and tally.rectified, *(ends_at_zero(part.op) for part, _ in inside)]
            parts = [
                self._of_bands(*part, calls, after)
                for part, calls, after in zip(inside, calls_in_bands(layer), zeros[:-1], strict=True)
                if part[1].library is not Library.GENERATED
            ]
            own = self.of_bands_loops(layer, tally)
            known = [part for part in parts if part is not None]
            return own + sum(known) if len(known) == len(parts) else None
        if kernel.library is not Library.GENERATED or kernel.name in self.loops:
            return self._of_kernel(layer, kernel, tally)
        return self.of_loops(layer, kernel, tally)

    def _of_turns(
        self,
        layer: Layer,
        kernel: Kernel[Any],
        tally: Tally | None,
        turns: int,
        inside: Sequence[Selected],
    ) -> float | None:
        """What a loop does itself, and for each turn its layers."""
        if tally is None:
            return 0.0
        parts = [
            self.of_layer(one.layer, one.kernel, own) for one, own in zip(inside, tally.inside, strict=True)
        ]
        known = [part for part in parts if part is not None]
        own = weighted(self.operations, executed(layer, tally))
        return own + turns * sum(known) if len(known) == len(parts) else None

    def _of_bands(
        self, layer: Layer, kernel: Kernel[Any], calls: Sequence[tuple[Layer, int]], rectified: bool
    ) -> float | None:
        """What a kernel takes that is called band by band; figures for sizes know nothing of calls."""
        each = [self._by_loops(kernel, part) for part, _ in calls]
        known = [bands * spent for (_, bands), spent in zip(calls, each, strict=True) if spent is not None]
        if not calls or len(known) < len(calls):
            return self._of_kernel(layer, kernel)
        return sum(known) * (self._part_of_zeros(kernel) if rectified else 1.0)

    def _of_kernel(self, layer: Layer, kernel: Kernel[Any], tally: Tally | None = None) -> float | None:
        counted = self._by_loops(kernel, layer, tally)
        if counted is not None:
            return counted * (self._part_of_zeros(kernel) if tally is not None and tally.rectified else 1.0)
        by_sizes = estimated(self.kernels, kernel, work(layer))
        if kernel.name not in self.shapes or (amounts := shape_work(layer)) is None:
            return by_sizes
        found = weighted(self.shapes[kernel.name], amounts)
        return found if by_sizes is None or found <= self.shapes_up_to[kernel.name] else by_sizes

    def _by_loops(self, kernel: Kernel[Any], layer: Layer, tally: Tally | None = None) -> float | None:
        """None if the figures of loops are unknown, or do not hold for a layer of this size."""
        if not self.loops:
            return None
        found = by_loops(self.loops, kernel, layer, find_target(self.core), tally)
        most = self.loops_up_to.get(kernel.name, math.inf)
        return found if found is None or found < most else None

    def _part_of_zeros(self, kernel: Kernel[Any]) -> float:
        return self.rectified.get(kernel.name, 1.0)

    def bar_name(self, kernel: Kernel[Any], tally: Tally | None) -> str:
        """Under which name layers like this one were held out."""
        zeros = tally is not None and tally.rectified and kernel.name in self.rectified
        return f"{kernel.name}{AFTER_RELU}" if zeros else kernel.name

    def of_bands_loops(self, layer: Layer, tally: Tally | None) -> float:
        """The loops of all operators of a chain, and what it does besides: its turns, and rows it moves."""
        if tally is None:
            return 0.0
        links, besides = banded_layers(layer) or [], Counter(tally.executed)
        own = 0.0
        for part in tally.in_bands:
            besides.subtract({name: part.bands * count for name, count in part.tally.executed.items()})
            inside, kernel = links[part.link]
            if kernel.library is Library.GENERATED:
                own += part.bands * self.of_loops(inside, kernel, part.tally)
        return own + weighted(self.operations, _classed(number_class(layer), besides))

    def of_loops(self, layer: Layer, kernel: Kernel[Any], tally: Tally | None) -> float:
        if tally is None:
            return 0.0
        rough = factor_of(self.factors, layer, kernel, tally) * weighted(
            self.operations, executed(layer, tally)
        )
        if f"layer {kernel.name}" in self.own_loops:
            found = weighted(self.own_loops, loop_work(layer, kernel.name, tally))
            most = self.own_loops.get(by_models(layer, kernel), math.inf)
            return max(1.0, rough / FAR_OFF, found) if found < most else rough
        return rough


@dataclass(frozen=True)
class Code:
    """Bytes of code: of every function of the libraries, and of the model's own C."""

    pieces: tuple[tuple[str, int], ...] = ()
    functions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # what each of them links
    helpers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # that the compiler calls unasked
    operations: Figures = field(default_factory=dict)
    factors: Figures = field(default_factory=dict)
    whole: Figures = field(default_factory=dict)  # from the layers' sizes to that of the model's own code
    constants: Figures = field(default_factory=dict)  # bytes of constants that are not weights
    error: float = 0

    def linked(self, names: Iterable[str], prefix: str = "") -> int:
        """The bytes of these functions and of all that they call; only pieces that start with ``prefix``."""
        kept = {piece for name in names for piece in self.functions.get(name, ())}
        return sum(size for name, size in (self.pieces[i] for i in kept) if name.startswith(prefix))

    def of_loops(self, layer: Layer, kernel: Kernel[Any], tally: Tally) -> float:
        return factor_of(self.factors, layer, kernel, tally) * weighted(
            self.operations, written(layer, tally)
        )


@dataclass(frozen=True)
class CostModel:
    """All that was fitted for one core."""

    target: str
    compiler: str
    instructions: Speed
    cycles: Speed | None
    cycles_note: str
    code: Code


@cache
def find_model(target: str) -> CostModel | None:
    """The costs of a core; None if it has none."""
    path = data_file(target)
    if not path.is_file():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    code = data["code"]
    return CostModel(
        target,
        data["compiler"],
        Speed(**data["instructions"], core=path.stem, own_loops=own_loops(target)),
        Speed(**data["cycles"]) if data["cycles"] else None,
        data["cycles_note"],
        Code(**{**code, "pieces": tuple((name, size) for name, size in code["pieces"])}),
    )


def own_loops(target: str) -> Figures:
    """What the work of loops costs on a core, by name; empty if no loops were counted on it."""
    path = own_loops_file(target)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def by_models(layer: Layer, kernel: Kernel[Any]) -> str:
    """The name of a limit among the figures of loops: from so many instructions on, what was fitted to models
    estimates such layers of models better, because their time depends on data."""
    return f"by models {kernel.name} {layer.op.label()} {number_class(layer)}"


def factor_keys(layer: Layer, kernel: Kernel[Any], tally: Tally) -> tuple[str, str]:
    """The names of a kernel's factor: that of loops of this shape, and that of all its loops."""
    general = f"{kernel.name} {number_class(layer)}"
    return f"{general}, {tally.shape}", general


def factor_of(factors: Figures, layer: Layer, kernel: Kernel[Any], tally: Tally) -> float:
    special, general = factor_keys(layer, kernel, tally)
    return factors.get(special, factors.get(general, 1.0))


def number_class(layer: Layer) -> str:
    """What a layer computes with: it decides how long an operation takes."""
    types = [t.dtype for t in (*layer.inputs, *layer.outputs) if t is not None]
    if any(dtype.is_float for dtype in types):
        return "float"
    return "wide" if any(dtype.bytes == 8 for dtype in types) else "integer"


def executed(layer: Layer, tally: Tally) -> dict[str, float]:
    return _classed(number_class(layer), tally.executed)


def written(layer: Layer, tally: Tally) -> dict[str, float]:
    return _classed(number_class(layer), tally.written)


def _classed(kind: str, counts: Mapping[str, int]) -> dict[str, float]:
    """Calls keep their names; an operation's cost depends on the type of numbers."""
    found = {
        (name if name.endswith("()") else f"{kind} {name}"): float(count) for name, count in counts.items()
    }
    return found | {"layer": 1.0}


def library_parts(layer: Layer) -> list[tuple[Layer, Kernel[Any]]] | None:
    """The layers inside a layer that runs a few rows at a time, if a library computes them; else None."""
    inside = banded_layers(layer)
    if inside is None:
        return None
    return [(part, kernel) for part, kernel in inside if kernel.library is not Library.GENERATED]
