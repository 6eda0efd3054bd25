# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What kernels and loops cost in instructions or cycles, fitted to layers that were counted."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tools.cost_examples import Example, Known, tally_of
from tools.environment import ROOT
from tools.fit_figures import EVENNESS, factors, figures

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml.cost.model import Speed, executed, library_parts
from tinyml.ops.framework.kernel import Library
from tinyml.ops.framework.kernel_costs import variant, weighted
from tinyml.ops.framework.work import Work, work
from tinyml.pipeline import banded_layers

ROUNDS = 3  # of sharing out what layers in bands cost among the kernels in them
EMPHASES = 4  # rounds with more weight on what is estimated worst


def fit_speed(layers: Sequence[Known]) -> Speed:
    """Loops first; then kernels, to whose layers the parts of layers in bands are added round by round."""
    loops = [one for one in layers if _own(one)]
    operations = figures([(executed(o.layer, tally_of(o)), o.spent, o.whole) for o in loops])
    speed = Speed({}, operations, factors(loops, lambda o: executed(o.layer, tally_of(o)), operations))
    direct = [
        (variant(one.kernel, work(one.layer)), work(one.layer), one.spent, one.whole)
        for one in layers
        if one.kernel.library is not Library.GENERATED
    ]
    shared: list[tuple[str, Work, float, float]] = []
    for _ in range(ROUNDS):
        samples: defaultdict[str, list[tuple[Work, float, float]]] = defaultdict(list)
        for key, amounts, spent, whole in (*direct, *shared):
            samples[key].append((amounts, spent, whole))
        speed = replace(speed, kernels={key: figures(found) for key, found in sorted(samples.items())})
        shared = list(_shared_out(speed, layers))
    return speed


def fit_evenly(known: Sequence[Example], single: Sequence[Known], cost: str) -> Speed:
    """``fit_speed`` again, with more weight on the models that it estimates worst; the best of all.

    ``single``: layers of no model, which every kernel was counted on.
    """
    layers = [one.layers(cost) for one in known]
    weight: defaultdict[str, float] = defaultdict(lambda: 1.0)
    best, least = Speed(), float("inf")
    for _ in range(1 + EMPHASES):
        models = [_emphasised(layer, weight[layer.model]) for own in layers for layer in own]
        speed = fit_speed([*models, *single])
        errors = {own[0].model: abs(_sum(speed, own) / own[0].whole - 1) for own in layers if own}
        worst = max(errors.values(), default=0.0)
        if worst < least:
            best, least = speed, worst
        for model, error in errors.items():
            weight[model] *= 1 + error / max(worst, 1e-9)
    return best


def _emphasised(layer: Known, weight: float) -> Known:
    """``figures`` divides by a power of ``whole``."""
    return replace(layer, whole=layer.whole / weight ** (1 / (1 - EVENNESS)))


def _sum(speed: Speed, layers: Sequence[Known]) -> float:
    return sum(speed.of_layer(one.layer, one.kernel, one.tally) or 0.0 for one in layers)


def _shared_out(speed: Speed, layers: Sequence[Known]) -> Iterator[tuple[str, Work, float, float]]:
    """What the kernels inside layers in bands cost, by their present estimates."""
    for one in layers:
        if (inside := library_parts(one.layer)) is not None:
            parts = [(variant(kernel, work(part)), work(part)) for part, kernel in inside]
            left = max(one.spent - speed.of_bands_loops(one.layer, one.tally), 1)
            guesses = [
                weighted(speed.kernels[key], amounts) if key in speed.kernels else amounts["macs"]
                for key, amounts in parts
            ]
            for (key, amounts), guess in zip(parts, guesses, strict=True):
                yield key, amounts, left * guess / max(sum(guesses), 1), one.whole


def _own(one: Known) -> bool:
    """Whether a layer is only loops in the model's own source."""
    return one.kernel.library is Library.GENERATED and banded_layers(one.layer) is None
