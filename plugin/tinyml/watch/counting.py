# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The counters in numpy: the same integers as runtime/watch/ has on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinyml.ir import Array, DType
from tinyml.watch.keys import keys, log2
from tinyml.watch.plan import BINS, Classes, Values, WatchPlan

POWERS = tuple(round(256 * 2 ** (-i / 16)) for i in range(16))
DRIFT = 10000
TYPES = {dtype: number for number, dtype in enumerate(DType)}
"""enum tinyml_type."""


def drift(bins: Sequence[int], reference: Sequence[int]) -> int:
    """The Jensen-Shannon divergence in 1/10000; -1 if there is nothing to compare."""
    shift = 0
    while sum(count >> shift for count in bins) >= 65536:
        shift += 1
    total = sum(count >> shift for count in bins)
    if not reference or not total:
        return -1
    sum_ = 0
    for count, expected in zip(bins, reference, strict=True):
        counted = ((count >> shift) << 15) // total
        sum_ += _product(counted, 0) + _product(expected, 0) - _product(counted + expected, 65536)
    return max(sum_, 0) * DRIFT >> 32


def _product(share: int, less: int) -> int:
    return share * (log2(share) - less) if share else 0


class _Values:
    def __init__(self, plan: Values) -> None:
        self.plan = plan
        self.bins = [0] * BINS

    def add(self, array: Array, run: int) -> None:
        plan = self.plan
        if plan.edges:
            self.take(array.reshape(-1)[run % plan.stride :: plan.stride])

    def take(self, elements: Array) -> None:
        """Count all of these."""
        found = np.bincount(np.searchsorted(self.plan.edges, keys(elements), side="right"), minlength=BINS)
        self.bins = [count + int(more) for count, more in zip(self.bins, found, strict=True)]

    def report(self) -> dict[str, Any]:
        plan = self.plan
        found: dict[str, Any] = {"name": plan.name}
        if plan.edges:
            found |= {"type": TYPES[plan.dtype], "bins": list(self.bins), "edges": list(plan.edges)}
        if plan.edges and plan.reference:
            found |= {"reference": list(plan.reference), "drift": drift(self.bins, plan.reference)}
        return found


def _fixed(key: int) -> int:
    """A positive float in 1/256."""
    exponent = key >> 23
    if exponent > 141:
        return 1 << 23
    return ((key & 0x7FFFFF) | 0x800000) >> (31 if exponent < 119 else 142 - exponent)


def _real(key: int) -> int:
    return -_fixed(~key) if key < 0 else _fixed(key)


def _exponential(x: int) -> int:
    """exp(-x) in 1/256, for x in 1/256."""
    sixteenths = (x * 369) >> 12
    return POWERS[sixteenths & 15] >> (sixteenths >> 4) if x < 4096 else 0


class _Classes:
    def __init__(self, plan: Classes) -> None:
        self.plan = plan
        self.top = self.margin = self.entropy = self.switches = self.last = 0
        self.decisions = [0] * plan.classes
        self.transitions = bytearray(plan.classes * (plan.classes - 1))

    def add(self, array: Array, run: int) -> None:
        order = [int(key) for key in keys(array.reshape(-1))]
        decision = order.index(max(order))
        self._score([self._weight(key, max(order)) for key in order])
        self.decisions[decision] += 1
        if self.last and self.last != decision + 1:
            self.switches += 1
            self._move(self.last - 1, decision)
        self.last = decision + 1

    def _weight(self, key: int, best: int) -> int:
        """The score of an element, or a number in proportion to it."""
        plan, is_float = self.plan, self.plan.dtype is DType.FLOAT32
        if plan.logits:
            apart = _real(best) - _real(key) if is_float else ((best - key) * plan.multiplier) >> 16
            return _exponential(apart)
        if is_float:
            return 0 if key <= 0 else _fixed(key) if key < 0x3F800000 else 256
        return max(key - plan.zero_point, 0) * plan.multiplier >> 16

    def _score(self, weights: list[int]) -> None:
        second, top = sorted(weights)[-2:]
        if total := sum(weights):
            self.top += (top << 8) // total
            self.margin += ((top - second) << 8) // total
            products = sum(weight * (log2(weight) >> 8) for weight in weights if weight)
            self.entropy += ((log2(total) >> 8) - products // total + 4) >> 3

    def _move(self, source: int, to: int) -> None:
        place = source * (self.plan.classes - 1) + to - (to > source)
        if self.transitions[place] == 255:
            self.transitions = bytearray(count >> 1 for count in self.transitions)
        self.transitions[place] += 1

    def report(self) -> dict[str, Any]:
        plan = self.plan
        found: dict[str, Any] = {"name": plan.name, "classes": plan.classes}
        found |= {"switches": self.switches, "last": self.last}
        found |= {"top": self.top, "margin": self.margin, "entropy": self.entropy}
        if plan.decisions:
            found["decisions"] = list(self.decisions)
        if plan.transitions:
            found["transitions"] = bytes(self.transitions)
        return found


class _Channels:
    """Of the first input; the last axis."""

    def __init__(self, plan: Sequence[Values]) -> None:
        self.counted = [_Values(values) for values in plan]

    def add(self, array: Array, run: int) -> None:
        stride = self.counted[0].plan.stride
        places = np.arange(array.size)[run % stride :: stride]
        stored = array.reshape(-1)
        for channel, counted in enumerate(self.counted):
            counted.take(stored[places[places % len(self.counted) == channel]])


class Counter:
    """The counters of a model, from the arrays of its runs."""

    def __init__(self, name: str, sha256: str, plan: WatchPlan) -> None:
        self.name, self.sha256, self.plan = name, sha256, plan
        self.reset()

    def reset(self) -> None:
        """Start the next period."""
        self.runs = 0
        self.inputs = [_Values(values) for values in self.plan.inputs]
        self.channels = _Channels(self.plan.channels)
        self.outputs = [
            _Classes(part) if isinstance(part, Classes) else _Values(part) for part in self.plan.outputs
        ]

    def add(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> None:
        """Count one run; arrays as the model stores them, by name."""
        if self.runs >= self.plan.most_runs:
            return
        if self.plan.order is not None:
            inputs = {name: self.plan.order.arranged(array) for name, array in inputs.items()}
        for values in self.inputs:
            values.add(inputs[values.plan.name], self.runs)
        if self.channels.counted:
            self.channels.add(inputs[self.plan.inputs[0].name], self.runs)
        for part in self.outputs:
            part.add(outputs[part.plan.name], self.runs)
        self.runs += 1

    def report(self) -> dict[str, Any]:
        """What the CBOR of a device has; the cycles are 0."""
        found: dict[str, Any] = {
            "name": self.name,
            "sha256": bytes.fromhex(self.sha256[:16]),
            "version": self.plan.version,
            "runs": self.runs,
            "most": self.plan.most_runs,
            "errors": 0,
            "cycles": [0, 0, 0],
            "inputs": [values.report() for values in self.inputs],
        }
        if self.channels.counted:
            found["channels"] = [values.report() for values in self.channels.counted]
        return found | {"outputs": [part.report() for part in self.outputs]}
