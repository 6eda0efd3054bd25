# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Figures of kernels that say how often their loops run, or of which their shapes let it be guessed.

They are fitted to layers of no model; published layers only decide which kernels keep them. What is left is
what depends on data, so every layer counts by its relative error, whatever its size.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import nnls

from tools import contender_counts, tree_counts
from tools.contender_counts import ContenderCount
from tools.cost_examples import Example, Known, examples, single_layers
from tools.environment import ROOT
from tools.fit_figures import DIGITS, figures

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.cost.model import Speed
from tinyml.ir import Layer
from tinyml.ops.classical.trees import TreeWalk
from tinyml.ops.framework.kernel import Kernel, Library, kernels_of
from tinyml.ops.framework.kernel_costs import Figures
from tinyml.ops.framework.tally import Tally
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.shape_work import shape_work

FEWEST = 40
"""Counts of a kernel, below which its pieces of code are not told apart."""
FEW, FOR_EACH = 10, 1
"""Fewer counts are enough for few pieces: at least so many of all, and for each."""
RESTRAINT = 0.3
"""What the sum of all figures of shapes weighs, each as the part of a layer that it makes at most."""
PARTS = (0.9, 0.7, 0.5, 0.3)
"""Of the layers that figures of shapes were fitted to: larger ones are estimated by sizes, which are fitted
to models. The first part with which no published model is far off."""
FULL = 0.95
"""From this part on, zeros make no difference that could not be chance."""
MATTERS = 0.006
"""The part of a model by which the estimate of a single layer must be off to matter."""
FAR = 0.05
"""Of the tenth by which estimates of published models may miss, what one kernel alone may take."""


@cache
def loop_figures(machine: str) -> Mapping[str, Figures]:
    """The figures of all such kernels that were counted on a machine, in instructions."""
    target = harness.find_machine(machine).target
    samples: defaultdict[str, list[tuple[Work, float, float]]] = defaultdict(list)
    for kernel, layer, tally, spent in _counted(machine):
        counts = kernel.placed_counts(layer, target, tally)
        if counts is not None:
            samples[kernel.name].append((counts, spent, spent))
    for one in tree_counts.load():
        if one.machine == machine and not one.is_held_out:
            samples[TreeWalk.name].append((one.work, one.instructions, one.instructions))
    return enough(samples)


def enough(samples: Mapping[str, list[tuple[Work, float, float]]]) -> Mapping[str, Figures]:
    """Figures of the kernels that were counted often enough."""
    return {name: figures(found) for name, found in sorted(samples.items()) if _are_enough(found)}


def _are_enough(samples: Sequence[tuple[Work, float, float]]) -> bool:
    pieces = {name for counts, _, _ in samples for name, count in counts.items() if count}
    return len(samples) >= min(FEWEST, max(FEW, FOR_EACH * len(pieces)))


@cache
def shape_figures(machine: str) -> Mapping[str, Figures]:
    """The figures of kernels with weights that do not say how often their loops run, by ``shape_work``."""
    target = harness.find_machine(machine).target
    samples: defaultdict[str, list[tuple[Work, float]]] = defaultdict(list)
    for kernel, layer, _, spent in _counted(machine):
        if kernel.library is Library.PORTABLE and kernel.loop_counts(layer, target) is None:
            amounts = shape_work(layer)
            if amounts is not None:
                samples[kernel.name].append((amounts, spent))
    return {name: few_figures(found) for name, found in sorted(samples.items()) if len(found) >= FEWEST}


def shape_limits(machine: str, part: float) -> dict[str, float]:
    """The instructions that ``part`` of the layers take at most that the figures of shapes were fitted to."""
    spent: defaultdict[str, list[float]] = defaultdict(list)
    for kernel, _, _, amount in _counted(machine):
        spent[kernel.name].append(amount)
    return {name: float(np.quantile(spent[name], part)) for name in shape_figures(machine)}


def few_figures(samples: Sequence[tuple[Work, float]]) -> Figures:
    """Non-negative figures for (work, cost), of a few of the many names: their sum adds to what is least."""
    rows = [dict(work) for work, _ in samples]
    names = sorted({name for row in rows for name, amount in row.items() if amount})
    spent = np.array([cost for _, cost in samples], float)
    amounts = np.array([[row.get(name, 0.0) for name in names] for row in rows]) / spent[:, np.newaxis]
    largest = amounts.max(axis=0)
    system = np.vstack([amounts / largest, np.full(len(names), RESTRAINT)])
    found, _ = nnls(system, np.append(np.ones(len(spent)), 0.0), maxiter=30 * len(names))
    return {
        name: float(f"{figure:.{DIGITS}g}")
        for name, figure in zip(names, found / largest, strict=True)
        if figure > 0
    }


def _counted(machine: str) -> Iterator[tuple[Kernel[Any], Layer, Tally, float]]:
    for known in single_layers(machine, "instructions"):
        if not (_depends_on_places(known.kernel) and known.kernel.overlays(known.layer)):
            yield known.kernel, known.layer, Tally(), known.spent
    for one in contender_counts.load():
        if one.machine == machine:
            graph, _ = contender_counts.made(one.batch)
            layer = graph.layer(graph.nodes[one.step])
            kernel = _named(layer, one.kernel)
            if kernel is not None:
                yield kernel, layer, _places(kernel, one), float(one.instructions)


def _depends_on_places(kernel: Kernel[Any]) -> bool:
    """Whether it matters where the tensors of a layer are."""
    return type(kernel).placed_counts is not Kernel.placed_counts


def _places(kernel: Kernel[Any], one: ContenderCount) -> Tally:
    image = contender_counts.placed(one.machine, one.batch) if _depends_on_places(kernel) else None
    return image.tallies().get((one.step, kernel.name), Tally()) if image else Tally()


def _named(layer: Layer, name: str) -> Kernel[Any] | None:
    """The kernel that computes the layer, of those with this name."""
    found = [kernel for kernel in kernels_of(type(layer.op)) if kernel.name == name]
    if len(found) > 1:
        found = [kernel for kernel in found if kernel.refusal(layer) is None]
    return found[0] if found else None


def with_loops(speed: Speed, machine: str) -> Speed:
    """Instructions with figures of loops, but for large layers that those of sizes estimate better.

    Their kernel alone would miss a published model by more than ``FAR``. The figures of its pieces come from
    other data, on which the time of a sum of floats may depend.
    """
    core = harness.find_machine(machine).target.name
    by_sizes = missed_by(replace(speed, loops={}, shapes={}, core=core), machine)
    shapes, limits = shape_figures(machine), shape_limits(machine, PARTS[0])
    found = replace(
        speed,
        loops=loop_figures(machine),
        loops_up_to={},
        rectified={},
        shapes=shapes,
        shapes_up_to=limits,
        core=core,
    )
    found = replace(found, rectified=parts_of_zeros(found, examples(machine)))
    missed = missed_by(found, machine)
    far = {name for name, most in missed.items() if most > max(FAR, by_sizes[name])}
    for part in PARTS[1:]:
        lower = shape_limits(machine, part)
        limits = {name: lower[name] if name in far else limit for name, limit in limits.items()}
        found = replace(found, shapes_up_to=limits)
        missed = missed_by(found, machine)
        far = {name for name, most in missed.items() if most > max(FAR, by_sizes[name])}
    missing = smallest_missed(found, examples(machine))
    small = {name: limit for name, limit in missing.items() if name in far}
    far -= small.keys()
    return replace(
        found,
        loops={name: figures for name, figures in found.loops.items() if name not in far},
        loops_up_to=small,
        rectified={name: part for name, part in found.rectified.items() if name not in far},
        shapes={name: figures for name, figures in shapes.items() if name not in far},
        shapes_up_to={name: limit for name, limit in limits.items() if name not in far},
    )


def smallest_missed(speed: Speed, known: Iterable[Example]) -> dict[str, float]:
    """By kernel, half of what the smallest layer takes whose estimate is off by more than matters."""
    found: dict[str, float] = {}
    for one in known:
        for layer in one.layers("instructions"):
            guess = speed.of_layer(layer.layer, layer.kernel, layer.tally) or 0.0
            name = layer.kernel.name
            if name in speed.loops and abs(guess - layer.spent) > MATTERS * layer.whole:
                found[name] = float(f"{min(found.get(name, np.inf), guess / 2):.3g}")
    return dict(sorted(found.items()))


def parts_of_zeros(speed: Speed, known: Iterable[Example]) -> dict[str, float]:
    """By kernel, the part of an estimate that layers after ReLU take, if that is less than all of it.

    Random layers have no zeros, so models tell. All layers weigh the same; kernels with few of them share
    what all of them tell. With an FPU, zeros take as long as other numbers.
    """
    parts: defaultdict[str, list[float]] = defaultdict(list)
    for one in known:
        for layer in one.layers("instructions"):
            if layer.tally is None or not layer.tally.rectified or layer.kernel.name not in speed.loops:
                continue
            guess = speed.of_layer(layer.layer, layer.kernel, layer.tally)
            if guess and layer.layer.input(0).dtype.is_float and layer.spent > 0:
                parts[layer.kernel.name].append(layer.spent / guess)
    every = [part for found in parts.values() for part in found]
    if len(every) < FEW or np.median(every) > FULL:
        return {}
    usual = {name: np.median(found if len(found) >= FEW else every) for name, found in parts.items()}
    return {name: float(f"{min(part, 1.0):.3g}") for name, part in sorted(usual.items())}


def by_kernel(known: Known) -> str:
    return known.kernel.name


def missed_by(
    speed: Speed, machine: str, name_of: Callable[[Known], str] = by_kernel
) -> defaultdict[str, float]:
    """The most that estimates of layers of each name miss together, as a part of a published model."""
    worst: defaultdict[str, float] = defaultdict(float)
    for one in examples(machine):
        missed: defaultdict[str, float] = defaultdict(float)
        for known in one.layers("instructions"):
            guess = speed.of_layer(known.layer, known.kernel, known.tally)
            if guess is not None:
                missed[name_of(known)] += (guess - known.spent) / known.whole
        for name, part in missed.items():
            worst[name] = max(worst[name], abs(part))
    return worst
