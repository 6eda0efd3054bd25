# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Figures for kinds of work, found by least squares from what layers cost."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import nnls

from tools.cost_examples import Known, tally_of
from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml.cost.model import factor_keys
from tinyml.ops.framework.kernel_costs import Figures, weighted
from tinyml.ops.framework.work import Work

EVENNESS = 0.6
"""How much a layer counts by its relative error: 1 entirely, 0 by its share of the model's cost."""

DIGITS = 5


def figures(samples: Sequence[tuple[Work, float, float]]) -> Figures:
    """Non-negative figures for (work, cost, cost of the model)."""
    names = sorted({name for amounts, _, _ in samples for name, amount in amounts.items() if amount})
    if not names:
        return {}
    spent = np.maximum(np.array([cost for _, cost, _ in samples], float), 1)
    whole = np.maximum(np.array([total for _, _, total in samples], float), 1)
    weights = 1 / (spent**EVENNESS * whole ** (1 - EVENNESS))
    amounts = np.array([[amounts.get(name, 0.0) for name in names] for amounts, _, _ in samples])
    scaled = amounts * weights[:, np.newaxis]
    largest = np.maximum(scaled.max(axis=0), 1e-30)
    found, _ = nnls(scaled / largest, spent * weights, maxiter=50 * len(names))
    return {
        name: float(f"{figure:.{DIGITS}g}")
        for name, figure in zip(names, found / largest, strict=True)
        if figure > 0
    }


def factors(
    layers: Sequence[Known], amounts: Callable[[Known], Work], operations: Figures
) -> dict[str, float]:
    """By how much all layers of a kernel together differ from the sum over their operations."""
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for one in layers:
        guess = weighted(operations, amounts(one))
        for key in factor_keys(one.layer, one.kernel, tally_of(one)):
            sums[key][0] += one.spent
            sums[key][1] += guess
    return {
        key: float(f"{real / guess:.{DIGITS}g}") for key, (real, guess) in sorted(sums.items()) if guess > 0
    }
