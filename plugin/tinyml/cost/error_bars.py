# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How far estimates of instructions are off: ``data/errors/CORE.json``, which ``tools.cost_errors`` writes.

The bars come from layers that the figures were not fitted to: random ones, and those of published models that
were left out of a fit. There is one for each kernel and size of layer, which 95 % of these layers keep.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.core_data import DATA, SAME_CODE

EDGES = (2_000, 20_000, 200_000)
"""Estimated instructions at which one class of sizes ends and the next begins."""
UNKNOWN_SHARE = 0.05
"""Of a model's instructions: if kernels without a bar take more, the model has none either."""
DOUBTFUL = 0.5
"""Above this, an estimate says little, and is shown as unknown."""
AFTER_RELU = " after ReLU"
"""Added to the names of kernels on floats, whose time then depends on how many zeros there are."""


@dataclass(frozen=True)
class ErrorBars:
    """For each kernel, the bar of each class of sizes; ``layers``: how many were held out."""

    kernels: Mapping[str, Sequence[float]]
    layers: Mapping[str, int]

    def of_layer(self, kernel: str, instructions: float) -> float | None:
        """As a part of the estimate; None if no layer of the kernel was held out."""
        bars = self.kernels.get(kernel) or self.kernels.get(kernel.removesuffix(AFTER_RELU))
        return None if bars is None else bars[size_class(instructions)]

    def of_model(self, layers: Iterable[tuple[str, float]]) -> float | None:
        """Layers of one kernel and about one size err alike, so their errors add up; others are independent.

        Of the published models, each estimated without itself, 96 % are within it on Cortex-M4; the other
        cores were not checked.
        """
        off: defaultdict[tuple[str, int], float] = defaultdict(float)
        whole = unknown = 0.0
        for kernel, instructions in layers:
            bar = self.of_layer(kernel, instructions)
            unknown += instructions if bar is None else 0.0
            off[kernel, int(instructions).bit_length()] += (1.0 if bar is None else bar) * instructions
            whole += instructions
        if not whole or unknown > UNKNOWN_SHARE * whole:
            return None
        return math.hypot(*off.values()) / whole


def size_class(instructions: float) -> int:
    return sum(instructions >= edge for edge in EDGES)


@cache
def find_bars(target: str) -> ErrorBars | None:
    """None if no layers were held out on the core."""
    path = DATA / "errors" / f"{SAME_CODE.get(target, target)}.json"
    if not path.is_file():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    return ErrorBars(data["kernels"], data["layers"])
