# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``--auto``: of all ways that reach the goal, the one with the fewest instructions."""

from __future__ import annotations

from tinyml.base import late
from tinyml.quantize import search
from tinyml.quantize.constants import float_bytes
from tinyml.quantize.precision import Precision
from tinyml.quantize.report import Choice
from tinyml.quantize.work import Work

ALIKE = 1.05
"""Estimates do not tell ways apart that differ by less: the first of them is taken, which changes least."""


def cheapest(work: Work, wanted: Precision) -> tuple[Precision, tuple[Choice, ...]]:
    """The types to take, and all choices; the first one if nothing is known about its costs."""
    assert work.request.auto is not None
    found = search.ways(
        work.candidates(), work.widened(), wanted, work.request.auto, work.trial, work.progress
    )
    models = [work.model(way.precision) for way in found]
    prices: list[int | None] = [None] * len(found)
    if len(found) > 1:
        for number, model in enumerate(models):
            work.progress("costs", number, len(models))
            prices[number] = late.instructions(model.SerializeToString(), work.request.core)
        work.progress("costs", len(models), len(models))
    known = [number for number, price in enumerate(prices) if price is not None]
    comparable = bool(known) and prices[0] is not None  # else the way with the fewest changes would never win
    least = min((price for price in prices if price is not None), default=0)
    best = next(n for n in known if (prices[n] or 0) <= ALIKE * least) if comparable else 0
    choices = tuple(
        Choice(
            way.name,
            way.decibels,
            price,
            float_bytes(model),
            len(way.precision.floats),
            len(way.precision.int16),
            number == best,
        )
        for number, (way, model, price) in enumerate(zip(found, models, prices, strict=True))
    )
    return found[best].precision, choices
