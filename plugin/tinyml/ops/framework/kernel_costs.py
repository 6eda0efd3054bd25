# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How many instructions a kernel of a library takes for a layer, by the figures in ``cost/data``.

``python -m tools.fit_costs`` fits them to layers that were counted. Kernels are chosen by the figures for
sizes of layers; ``tinyml cost`` estimates by how often loops run where a kernel says that, and else by the
same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinyml.cores.core_data import measured
from tinyml.cores.targets import Target
from tinyml.ir import Layer
from tinyml.ops.framework.kernel import Kernel
from tinyml.ops.framework.tally import Tally
from tinyml.ops.framework.work import Work, work

Figures = Mapping[str, float]
"""What one of each kind of work costs."""

ROUGH: Figures = {"macs": 5.0, "outputs": 150.0}
"""Of layers whose kernel has no figures: a dense layer and two convolutions on int16, counted on a Cortex-M3
and a Cortex-M4 in QEMU. Coarse, but float and int8 are far away."""


def instructions(kernel: Kernel[Any], layer: Layer, target: Target) -> float | None:
    """By the sizes of a layer, which all rivals have figures of; None if the kernel was never measured."""
    kernels: Mapping[str, Figures] = measured(target.name)["instructions"]["kernels"]
    return estimated(kernels, kernel, work(layer))


def by_loops(
    loops: Mapping[str, Figures],
    kernel: Kernel[Any],
    layer: Layer,
    target: Target,
    tally: Tally | None = None,
) -> float | None:
    """The cost by how often the kernel's loops run; None if it does not say that, or was not counted so."""
    figures = loops.get(kernel.name)
    if not figures:
        return None
    counts = kernel.placed_counts(layer, target, tally) if tally else kernel.loop_counts(layer, target)
    return weighted(figures, counts) if figures and counts is not None else None


def estimated(kernels: Mapping[str, Figures], kernel: Kernel[Any], amounts: Work) -> float | None:
    """The cost by the sizes of a layer; None if there are no figures of this kernel."""
    figures = kernels.get(variant(kernel, amounts), kernels.get(kernel.name))
    return None if figures is None else weighted(figures, amounts)


def weighted(figures: Figures, amounts: Work) -> float:
    return sum(figure * amounts.get(name, 0.0) for name, figure in figures.items())


def variant(kernel: Kernel[Any], amounts: Work) -> str:
    """Kernels have code of their own for windows of one element, and depthwise ones for nine."""
    positions = amounts.get("positions", 0.0)
    taps = amounts["taps"] / positions if positions and "taps" in amounts else 0
    special = 9 if "depthwise" in kernel.name else 1
    return f"{kernel.name} {taps:.0f}" if taps == special else kernel.name
