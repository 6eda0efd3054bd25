# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Node + target → kernel. Before planning, because scratch memory depends on the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tinyml import limits
from tinyml.errors import UnsupportedError
from tinyml.ir import Graph, Layer
from tinyml.kernel import Kernel, Library, Overlay, kernels_of
from tinyml.naming import short
from tinyml.targets import Target


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


TIE = 1.03
"""Kernels whose costs differ by less count as equal: the figures are averages over layers."""


def select(
    graph: Graph, target: Target, libraries: frozenset[Library], cheapest: bool = False
) -> tuple[Selected, ...]:
    """For each layer the first kernel that the target, the libraries and the layer allow.

    With ``cheapest``, CMSIS-NN and our own kernels compete: fewer instructions win, and of two that take
    about the same, the one with less memory in the arena.
    """
    chosen: list[Selected] = []
    problems: list[str] = []
    for layer in graph.layers():
        limits.check_time()
        kernel = _first_fit(layer, target, libraries)
        if cheapest and isinstance(kernel, Kernel) and kernel.library is Library.CMSIS_NN:
            kernel = _cheaper(
                kernel, _first_fit(layer, target, libraries - {Library.CMSIS_NN}), layer, target
            )
        if isinstance(kernel, Kernel):
            chosen.append(Selected(layer, kernel, kernel.scratch_bytes(layer, target)))
        else:
            problems.append(f"  {layer.op.kind} {short(layer.name)!r} ({_types(layer)}): {kernel}")
    if problems:
        unique = list(dict.fromkeys(problems))
        raise UnsupportedError(
            "no kernel supports these layers:\n" + "\n".join(unique), "`tinyml ops` lists what is supported"
        )
    return tuple(chosen)


def _first_fit(layer: Layer, target: Target, libraries: frozenset[Library]) -> Kernel[Any] | str:
    """A kernel, or the reason why there is none: what each candidate requires."""
    refusals: list[str] = []
    for kernel in kernels_of(type(layer.op)):
        if kernel.library not in libraries or not kernel.runs_on(target):
            continue
        refusal = kernel.refusal(layer)
        if refusal is None:
            return kernel
        refusals.append(f"{kernel.name} requires: {refusal}")
    return "; ".join(refusals) or "this operator has no kernel"


def _cheaper(kernel: Kernel[Any], rival: Kernel[Any] | str, layer: Layer, target: Target) -> Kernel[Any]:
    """``kernel``, unless there is a rival, both costs are known, and the rival's is lower."""
    if not isinstance(rival, Kernel) or kernel.cost is None or rival.cost is None:
        return kernel
    ratio = rival.cost.instructions(layer, target) / max(kernel.cost.instructions(layer, target), 1)
    if 1 / TIE < ratio < TIE:
        return min(rival, kernel, key=lambda each: _memory_bytes(each, layer, target))
    return rival if ratio < 1 else kernel


def _memory_bytes(kernel: Kernel[Any], layer: Layer, target: Target) -> int:
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
