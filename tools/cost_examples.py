# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers and models that were counted: what ``tools.fit_costs`` fits costs to."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from tools import kernel_counts, layer_counts
from tools.environment import ROOT
from tools.layer_counts import Counted

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.ir import Layer
from tinyml.ops.framework.kernel import Kernel, kernels_of
from tinyml.ops.framework.tally import Tally
from tinyml.pipeline import Compiled

SHARE = 0.3
"""A layer that was counted alone weighs as much as one that takes this share of a model."""


@dataclass(frozen=True)
class Known:
    """A layer whose cost was counted. ``whole``: what its model costs."""

    model: str
    layer: Layer
    kernel: Kernel[Any]
    tally: Tally | None
    spent: float
    whole: float


def tally_of(one: Known) -> Tally:
    return one.tally or Tally()


@dataclass(frozen=True)
class Example:
    """A model that was counted, compiled again."""

    counted: Counted
    model: Compiled

    @property
    def is_current(self) -> bool:
        """Whether it still has the layers and kernels that were counted."""
        return layer_counts.is_current(self.counted, self.model)

    def layers(self, cost: str) -> list[Known]:
        tallies = self.model.tallies
        chosen = self.model.selected
        whole = self.counted.instructions if cost == "instructions" else self.counted.cycles
        return [
            Known(
                self.counted.model,
                chosen[one.step].layer,
                chosen[one.step].kernel,
                tallies.get(one.step),
                float(getattr(one, cost)),
                float(whole or 0),
            )
            for one in self.counted.layers
        ]


@cache
def _counted_again(machine: str) -> tuple[tuple[Counted, Example | None], ...]:
    """All counts of models on a machine, with the model if its file is here."""
    files = {path.stem: path for path in layer_counts.published()}
    target = harness.find_machine(machine).target.name
    return tuple(
        (one, Example(one, layer_counts.compiled(files[one.model], target, one.cmsis_nn)))
        if one.model in files and not one.wrapped
        else (one, None)
        for one in layer_counts.load()
        if one.machine == machine
    )


@cache
def examples(machine: str) -> list[Example]:
    """All models that were counted on a machine, but for those of ``left_out``."""
    return [one for _, one in _counted_again(machine) if one is not None and one.is_current]


def left_out(machine: str) -> dict[str, str]:
    """Models that say nothing about the estimates of a machine, and why: a worst error is not theirs."""
    found = {}
    for counted, one in _counted_again(machine):
        if one is None:
            found[counted.model] = "runs longer than the timer" if counted.wrapped else "the file is not here"
        elif not one.is_current:
            found[counted.model] = "has other kernels since it was counted: `python -m tools.layer_counts`"
    return found


def single_layers(machine: str, cost: str) -> list[Known]:
    """The layers that every kernel was counted on, one by one."""
    found = []
    for one in kernel_counts.load():
        spent = getattr(one, cost)
        if one.machine != machine or spent is None or one.layer not in kernel_counts.CASES:
            continue
        layer = kernel_counts.layer_of(one.layer)
        kernel = next((k for k in kernels_of(type(layer.op)) if k.name == one.kernel), None)
        if kernel is not None:
            found.append(Known(one.layer, layer, kernel, None, float(spent), spent / SHARE))
    return found
