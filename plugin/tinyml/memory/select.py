# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Node + target → kernel. Before planning, because scratch memory depends on the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from tinyml.base import limits
from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import short
from tinyml.cores import core_data
from tinyml.cores.targets import Target
from tinyml.ir import Graph, Layer
from tinyml.memory.float16 import as_floats
from tinyml.memory.four_bits import (
    fast_enough,
    few_bits,
    hardly_slower,
    large_enough,
    made_for_core,
    worth_storing,
)
from tinyml.ops.framework.kernel import Kernel, Library, Overlay, kernels_of
from tinyml.ops.framework.kernel_costs import instructions
from tinyml.settings.optimize import BALANCED, Goal


@dataclass(frozen=True, eq=False)
class Selected:
    """A layer and the kernel that will compute it."""

    layer: Layer
    kernel: Kernel[Any]
    scratch_bytes: int

    @property
    def in_float(self) -> bool:
        """Whether the layer computes with floats: what an FPU makes fast."""
        layer = self.layer
        return any(t is not None and t.dtype.is_float for t in (*layer.inputs, *layer.outputs))

    @cached_property
    def overlays(self) -> tuple[Overlay, ...]:
        """Inputs that output 0 may be written over, and how."""
        return self.kernel.overlays(self.layer)


def select(
    graph: Graph,
    target: Target,
    libraries: frozenset[Library],
    cheapest: bool = False,
    goal: Goal = BALANCED,
) -> tuple[Selected, ...]:
    """For each layer the first kernel that the target, the libraries and the layer allow.

    With ``cheapest``, CMSIS-NN and our own kernels compete: fewer instructions win, and of two that take
    about the same, the one with less memory in the arena. ``goal`` may prefer less code. Weights that fit
    into four bits are stored in them where that makes the image smaller (``four_bits.py``). Instructions are
    estimated with figures that were fitted to counted layers: ``ops/framework/kernel_costs.py``.
    """
    chosen: list[Selected] = []
    own: dict[int, Kernel[Any]] = {}  # by step: what CMSIS-NN has won against
    problems: list[str] = []
    for layer in graph.layers():
        limits.check_time()
        kernel = _first_fit(layer, target, libraries, halves=goal.float16_sums)
        if cheapest and isinstance(kernel, Kernel) and kernel.library is Library.CMSIS_NN:
            rival = _first_fit(layer, target, libraries - {Library.CMSIS_NN})
            kernel = _cheaper(kernel, rival, layer, target, goal.tie)
            if isinstance(rival, Kernel) and kernel is not rival:
                own[len(chosen)] = rival
        if isinstance(kernel, Kernel):
            chosen.append(Selected(layer, kernel, kernel.scratch_bytes(layer, target)))
        else:
            problems.append(f"  {layer.op.kind} {short(layer.name)!r} ({_types(layer)}): {kernel}")
    if problems:
        unique = list(dict.fromkeys(problems))
        raise UnsupportedError(
            "no kernel supports these layers:\n" + "\n".join(unique), "`tinyml ops` lists what is supported"
        )
    chosen = _worth_linking(chosen, own, target, goal.worthwhile)
    chosen = _in_four_bits(chosen, target, libraries, cheapest, goal)
    for step, kernel in as_floats([(one.layer, one.kernel) for one in chosen], goal.float16).items():
        chosen[step] = replace(chosen[step], kernel=kernel)
    return _sharing_code(chosen, target, libraries, goal.slower) if goal.slower > 1 else tuple(chosen)


def _in_four_bits(
    chosen: Sequence[Selected], target: Target, libraries: frozenset[Library], cheapest: bool, goal: Goal
) -> list[Selected]:
    """With kernels for weights of four bits where the weights allow that and the goal gains by it.

    Where a user wants CMSIS-NN's kernels, these are its own as well.
    """
    fours: list[Kernel[Any] | None] = []
    own: dict[int, Kernel[Any]] = {}  # by step: what CMSIS-NN has won against
    slow: dict[int, Kernel[Any]] = {}  # by step: kernels that take too long for their layer
    for step, one in enumerate(chosen):
        layer, eight = one.layer, one.kernel
        four, rival = _four_bit_kernels(layer, eight, target, libraries, cheapest, goal.tie)
        if not isinstance(four, Kernel) or not (large_enough(layer) or made_for_core(four, eight)):
            fours.append(None)
            continue
        fast = fast_enough(four, eight, layer, target, goal.four_bits)
        fours.append(four if fast else None)
        if not fast:
            slow[step] = four
        elif rival is not None:
            own[step] = rival
    choices = [(one.layer, one.kernel) for one in chosen]
    left = 0.0
    if goal.four_bits > 1:
        steps, left = hardly_slower(choices, slow, target, goal.four_bits_more)
        for step in steps:
            fours[step] = slow[step]
    if own:
        packed = [replace(one, kernel=four or one.kernel) for one, four in zip(chosen, fours, strict=True)]
        packed = _worth_linking(packed, own, target, goal.worthwhile)
        fours = [one.kernel if four else None for one, four in zip(packed, fours, strict=True)]
    if not any(fours):
        return list(chosen)
    ours = libraries - {Library.CMSIS_NN}
    others = [
        [k for k in _candidates(one.layer, target, ours, True) if k.refusal(one.layer) is None]
        if cheapest or one.kernel.library in ours
        else []
        for one in chosen
    ]
    best = worth_storing(choices, fours, target, others, left)
    return [
        one if kernel is one.kernel else Selected(one.layer, kernel, kernel.scratch_bytes(one.layer, target))
        for one, kernel in zip(chosen, best, strict=True)
    ]


def _four_bit_kernels(
    layer: Layer,
    eight: Kernel[Any],
    target: Target,
    libraries: frozenset[Library],
    cheapest: bool,
    tie: float,
) -> tuple[Kernel[Any] | str, Kernel[Any] | None]:
    """The kernel for four bits that the choice of libraries leads to; if it is CMSIS-NN's, ours as well."""
    theirs = _first_fit(layer, target, libraries & {Library.CMSIS_NN}, True)
    if not cheapest and eight.library is Library.CMSIS_NN:
        return theirs, None
    ours = _first_fit(layer, target, libraries - {Library.CMSIS_NN}, True)
    if not cheapest or not isinstance(theirs, Kernel) or not isinstance(ours, Kernel):
        return ours, None
    best = _cheaper(theirs, ours, layer, target, tie)
    return best, ours if best is theirs else None


def _first_fit(
    layer: Layer,
    target: Target,
    libraries: frozenset[Library],
    four_bits: bool = False,
    halves: bool = False,
) -> Kernel[Any] | str:
    """A kernel, or the reason why there is none: what each candidate requires."""
    refusals: list[str] = []
    for kernel in _candidates(layer, target, libraries, four_bits, halves):
        refusal = kernel.refusal(layer)
        if refusal is None:
            return kernel
        refusals.append(f"{kernel.name} requires: {refusal}")
    return "; ".join(refusals) or "this operator has no kernel"


def _candidates(
    layer: Layer, target: Target, libraries: frozenset[Library], four_bits: bool, halves: bool = False
) -> Iterator[Kernel[Any]]:
    """The kernels of the operator that target and libraries allow; ``halves``: float16 sums as well."""
    for kernel in kernels_of(type(layer.op)):
        fits = kernel.library in libraries and kernel.runs_on(target) and few_bits(kernel) == four_bits
        if fits and (halves or not kernel.adds_in_float16):
            yield kernel


def _cheaper(
    kernel: Kernel[Any], rival: Kernel[Any] | str, layer: Layer, target: Target, tie: float
) -> Kernel[Any]:
    """The rival, a kernel of our own, unless there is none or ``kernel`` is known to take less."""
    if not isinstance(rival, Kernel):
        return kernel
    spent, other = instructions(kernel, layer, target), instructions(rival, layer, target)
    if spent is None or other is None:
        return rival
    ratio = other / max(spent, 1)
    if 1 / tie < ratio < tie:
        return min(rival, kernel, key=lambda each: memory_bytes(each, layer, target))
    return rival if ratio < 1 else kernel


def _worth_linking(
    chosen: Sequence[Selected], own: Mapping[int, Kernel[Any]], target: Target, least: float
) -> list[Selected]:
    """Without the kernels of CMSIS-NN that save less than the part ``least`` of a run in all of their layers.

    Their code would be linked beside ours for next to nothing.
    """
    best = list(chosen)
    total = sum(instructions(one.kernel, one.layer, target) or 0 for one in chosen)
    for name in dict.fromkeys(chosen[step].kernel.name for step in own):
        steps = [step for step, one in enumerate(chosen) if one.kernel.name == name]
        if not all(step in own for step in steps):
            continue  # some layer needs it
        layers = [(step, chosen[step].layer) for step in steps]
        more = sum(instructions(own[step], layer, target) or 0 for step, layer in layers)
        less = sum(instructions(chosen[step].kernel, layer, target) or 0 for step, layer in layers)
        if more - less < least * total:
            for step, layer in layers:
                best[step] = Selected(layer, own[step], own[step].scratch_bytes(layer, target))
    return best


def rivals(
    kernel: Kernel[Any], layer: Layer, target: Target, libraries: frozenset[Library], factor: float
) -> Iterator[Kernel[Any]]:
    """Other kernels for a layer that take at most ``factor`` times as many instructions as ``kernel``.

    Only for integers: every kernel computes the same ones, from tables of about the same size.
    """
    spent = instructions(kernel, layer, target)
    if spent is None or not layer.output.dtype.is_integer:
        return
    for other in kernels_of(type(layer.op)):
        fits = other is not kernel and other.library in libraries and other.runs_on(target)
        fits = fits and other.weight_bits == kernel.weight_bits
        if not fits or other.refusal(layer) is not None:
            continue
        found = instructions(other, layer, target)
        if found is not None and found <= factor * spent:
            yield other


def _sharing_code(
    chosen: Sequence[Selected], target: Target, libraries: frozenset[Library], slower: float
) -> tuple[Selected, ...]:
    """Replace one kernel after the other by others, in all of its layers, as long as less code is linked."""
    others = [list(rivals(one.kernel, one.layer, target, libraries, slower)) for one in chosen]
    best, size = list(chosen), code_bytes(chosen, target)
    while True:
        limits.check_time()
        smaller = [
            (code_bytes(other, target), other)
            for name in dict.fromkeys(one.kernel.name for one in best)
            for other in _without(name, best, others, target)
        ]
        least, found = min(smaller, key=lambda each: each[0], default=(size, best))
        if least >= size:
            return tuple(best)
        best, size = found, least


def _without(
    name: str, chosen: Sequence[Selected], others: Sequence[Sequence[Kernel[Any]]], target: Target
) -> Iterator[list[Selected]]:
    """The selections that replace kernel ``name`` by one other in all of its layers."""
    layers = [i for i, one in enumerate(chosen) if one.kernel.name == name]
    for other in others[layers[0]]:
        if all(other in others[i] for i in layers):
            scratch = {i: other.scratch_bytes(chosen[i].layer, target) for i in layers}
            yield [
                replace(one, kernel=other, scratch_bytes=scratch[i]) if i in scratch else one
                for i, one in enumerate(chosen)
            ]


def code_bytes(chosen: Sequence[Selected], target: Target) -> int:
    """What the kernels link, shared parts once."""
    functions = (name for one in chosen for name in one.kernel.functions(one.layer))
    return core_data.linked_bytes(target.name, functions)


def memory_bytes(kernel: Kernel[Any], layer: Layer, target: Target) -> int:
    """What a kernel adds to the arena while its layer runs."""
    grown = [_grown_bytes(layer, overlay) for overlay in kernel.overlays(layer)]
    return kernel.scratch_bytes(layer, target) + min(grown, default=layer.output.bytes)


def _grown_bytes(layer: Layer, overlay: Overlay) -> int:
    """How much the memory of an input must grow so that the output can overlap it."""
    before, size = layer.input(overlay.input).bytes, overlay.distance + layer.output.bytes
    return max(before, size) - min(overlay.distance, 0) - before


def _types(layer: Layer) -> str:
    operands: Sequence[str] = [t.dtype.value for t in layer.inputs if t is not None]
    return f"{', '.join(operands)} -> {', '.join(t.dtype.value for t in layer.outputs)}"
