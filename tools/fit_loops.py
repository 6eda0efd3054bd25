# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Figures of kernels that say how often their loops run: what each piece of their code takes.

They are fitted to layers of no model; published layers only decide which kernels keep them. What is left is
what depends on data, so every layer counts by its relative error, whatever its size.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from tools import contender_counts
from tools.cost_examples import examples, single_layers
from tools.environment import ROOT
from tools.fit_figures import figures

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.cost.model import Speed
from tinyml.ir import Layer
from tinyml.ops.framework.kernel import Kernel, kernels_of
from tinyml.ops.framework.kernel_costs import Figures
from tinyml.ops.framework.work import Work

FEWEST = 40
"""Counts of a kernel, below which its pieces of code are not told apart."""
FAR = 0.03
"""Of the tenth by which estimates of published models may miss, what one kernel alone may take."""


@cache
def loop_figures(machine: str) -> Mapping[str, Figures]:
    """The figures of all such kernels that were counted on a machine, in instructions."""
    target = harness.find_machine(machine).target
    samples: defaultdict[str, list[tuple[Work, float, float]]] = defaultdict(list)
    for kernel, layer, spent in _counted(machine):
        counts = kernel.loop_counts(layer, target)
        if counts is not None:
            samples[kernel.name].append((counts, spent, spent))
    return enough(samples)


def enough(samples: Mapping[str, list[tuple[Work, float, float]]]) -> Mapping[str, Figures]:
    """Figures of the kernels that were counted often enough."""
    return {name: figures(found) for name, found in sorted(samples.items()) if len(found) >= FEWEST}


def _counted(machine: str) -> Iterator[tuple[Kernel[Any], Layer, float]]:
    for known in single_layers(machine, "instructions"):
        yield known.kernel, known.layer, known.spent
    for one in contender_counts.load():
        if one.machine == machine:
            graph, _ = contender_counts.made(one.batch)
            layer = graph.layer(graph.nodes[one.step])
            kernel = _named(layer, one.kernel)
            if kernel is not None:
                yield kernel, layer, float(one.instructions)


def _named(layer: Layer, name: str) -> Kernel[Any] | None:
    """The kernel that computes the layer, of those with this name."""
    found = [kernel for kernel in kernels_of(type(layer.op)) if kernel.name == name]
    if len(found) > 1:
        found = [kernel for kernel in found if kernel.refusal(layer) is None]
    return found[0] if found else None


def with_loops(speed: Speed, machine: str) -> Speed:
    """Instructions with figures of loops, but for kernels of which those of sizes estimate models better.

    Such a kernel alone would miss a published model by more than ``FAR``. The figures of its pieces come from
    other data, on which the time of a sum of floats may depend.
    """
    core = harness.find_machine(machine).target.name
    by_loops = replace(speed, loops=loop_figures(machine), core=core)
    missed = missed_by(by_loops, machine)
    by_sizes = missed_by(replace(speed, loops={}), machine)
    kept = {name: found for name, found in by_loops.loops.items() if missed[name] <= max(FAR, by_sizes[name])}
    return replace(by_loops, loops=kept)


def missed_by(speed: Speed, machine: str) -> defaultdict[str, float]:
    """The most that estimates of each kernel's layers miss, as a part of a published model."""
    worst: defaultdict[str, float] = defaultdict(float)
    for one in examples(machine):
        missed: defaultdict[str, float] = defaultdict(float)
        for known in one.layers("instructions"):
            guess = speed.of_layer(known.layer, known.kernel, known.tally)
            if guess is not None:
                missed[known.kernel.name] += (guess - known.spent) / known.whole
        for name, part in missed.items():
            worst[name] = max(worst[name], abs(part))
    return worst
