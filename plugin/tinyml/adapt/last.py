# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The last layer's learning in numpy: the same float32 in the same order as runtime/adapt/last.c."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.adapt.errors import Full, InfiniteLoss, NoRun, OutOfRange, Worse
from tinyml.adapt.plan import SQUARED, Last
from tinyml.ir import Array
from tinyml.ops.framework import fixed_point as fp

_FACTORS = tuple(np.float32(1) / np.float32(n) for n in (720, 120, 24, 6, 2))
_BOUND = np.float32(1 << 30)


def exp(x: Array) -> Array:
    """exp(x) for x <= 0, as last_exp() computes it."""
    x = x.astype(np.float32)
    usual = np.maximum(x, np.float32(-87))
    whole = np.trunc(usual * np.float32(1.44269502) - np.float32(0.5)).astype(np.int32)
    rest = usual - whole.astype(np.float32) * np.float32(0.693359375)
    rest = rest + whole.astype(np.float32) * np.float32(0.000212194442)
    power = np.zeros_like(x)
    for factor in _FACTORS:
        power = power * rest
        power = power + factor
    power = power * rest
    power = power * rest
    power = power + rest
    scale = ((whole + 127).astype(np.uint32) << 23).view(np.float32)
    found: Array = np.where(x > -87, (power + np.float32(1)) * scale, np.float32(0)).astype(np.float32)
    return found


class LastLayer:
    """A last layer that learns. ``values`` are the differences from the model file: biases, then weights."""

    def __init__(self, part: Last) -> None:
        self.part = part
        self.values = np.zeros(part.classes * (part.features + 1), np.float32)
        self.factory()

    def factory(self) -> None:
        """Forget all that was learnt."""
        self.values[:] = 0
        self.velocity = np.zeros_like(self.values)
        self.count = 0
        self.examples: list[tuple[Array, Array]] = []  # errors, embedding
        self.in_batch = False
        self.seen: tuple[Array, Array] | None = None  # logits, embedding

    def _sums(self, embedding: Array) -> tuple[Array, Array]:
        """The integer sums, and what was learnt in addition."""
        part, x = self.part, embedding.reshape(-1).astype(np.int32)
        sums = (part.bias.astype(np.int64) + part.weights.astype(np.int64) @ x).astype(np.int32)
        learnt = self.values[: part.classes]
        if self.count:
            weights = self.values[part.classes :].reshape(part.classes, part.features)
            products = weights * (x - part.in_zero).astype(np.float32)
            terms = np.concatenate([learnt[:, np.newaxis], products], axis=1)
            learnt = np.add.accumulate(terms, axis=1, dtype=np.float32)[:, -1]
        return sums, learnt

    def logits(self, embedding: Array) -> Array:
        """Real numbers, before they are quantised."""
        sums, learnt = self._sums(embedding)
        found: Array = (sums.astype(np.float32) + learnt) * self.part.unit
        return found

    def run(self, embedding: Array) -> Array:
        """The int8 output of the layer; the next ``learn`` is about this run."""
        part = self.part
        sums, learnt = self._sums(embedding)
        if len(self.examples) < part.batch:
            logits = (sums.astype(np.float32) + learnt) * part.unit
            self.seen = logits, (embedding.reshape(-1).astype(np.int32) - part.in_zero).astype(np.float32)
        kept = np.clip(learnt, -_BOUND, _BOUND)
        steps = np.where(kept < 0, kept - np.float32(0.5), kept + np.float32(0.5)).astype(np.int64)
        most = 1 << (30 - np.maximum(part.shift, 0).astype(np.int64))
        totals = np.where(steps == 0, sums, np.clip(sums + steps, -most, most))
        rescale = (
            fp.multiply_by_quantized_multiplier_once
            if part.round_once
            else fp.multiply_by_quantized_multiplier
        )
        scaled = rescale(totals.astype(np.int64), part.multiplier, part.shift)
        found: Array = np.clip(scaled + part.out_zero, part.low, part.high).astype(np.int8)
        return found

    def learn(self, truth: int | Sequence[float] | Array) -> None:
        """A label, or the targets of a regression, for the last run; a step unless in a batch."""
        part = self.part
        squared = part.loss == SQUARED
        if not squared and not 0 <= int(np.asarray(truth)) < part.classes:
            raise OutOfRange(f"label {truth}", f"0 to {part.classes - 1}")
        if len(self.examples) >= part.batch:
            raise Full("the batch is full", f"learn_end() after {part.batch} examples, or a larger batch")
        if self.seen is None:
            raise NoRun("there was no run since the last example", "run, then learn")
        logits, embedding = self.seen
        errors = self._differences(logits, truth) if squared else self._errors(logits, int(np.asarray(truth)))
        self.seen = None
        self.examples.append((errors, embedding))
        if not self.in_batch:
            self._step()

    def begin(self) -> None:
        """Start a batch."""
        self.examples, self.seen, self.in_batch = [], None, True

    def end(self) -> None:
        """A step with the mean gradient of the batch."""
        if not self.in_batch or not self.examples:
            raise NoRun("there is no batch, or nothing is in it", "learn_begin(), then runs and learn()")
        self.in_batch, self.seen = False, None
        self._step()

    def _errors(self, logits: Array, label: int) -> Array:
        if not (np.abs(logits) < np.float32(1e30)).all():
            raise InfiniteLoss()
        powers = exp(logits - logits.max())
        if powers[label] == 0:
            raise InfiniteLoss()
        total = np.add.accumulate(powers, dtype=np.float32)[-1]
        errors: Array = powers / total
        errors[label] = errors[label] - np.float32(1)
        return errors

    def _differences(self, logits: Array, targets: int | Sequence[float] | Array) -> Array:
        wanted = np.asarray(targets, np.float32).reshape(-1)
        if wanted.size != self.part.classes:
            raise OutOfRange(f"{wanted.size} targets", f"{self.part.classes}, one for each output")
        if not (np.abs(np.concatenate([logits, wanted])) < np.float32(1e30)).all():
            raise InfiniteLoss()
        difference: Array = logits - wanted
        return difference

    def _step(self) -> None:
        part, values = self.part, self.values
        examples = np.float32(len(self.examples))
        gradient = np.zeros_like(values)
        for errors, embedding in self.examples:
            mean = errors / examples
            gradient[: part.classes] += part.bias_rate * mean
            gradient[part.classes :] += np.multiply.outer(part.rate * mean, embedding).reshape(-1)
        if part.decay > 0:
            gradient = gradient + np.float32(part.decay) * values
        if part.momentum > 0:
            gradient = np.float32(part.momentum) * self.velocity + gradient
            self.velocity = gradient
        limits = self.limits()
        self.values = np.clip(values - gradient, -limits, limits).astype(np.float32)
        self.count += 1
        self.examples = []

    def limits(self) -> Array:
        """How far each value may move."""
        part = self.part
        return np.concatenate([part.bias_limit, np.repeat(part.limit, part.features)]).astype(np.float32)

    def right(self, embeddings: Array, labels: Array) -> int:
        """How many labelled embeddings are decided as their labels say."""
        decisions = [int(np.argmax(self.logits(embedding))) for embedding in embeddings]
        return int(np.sum(np.array(decisions, np.int64) == labels))

    def check(self) -> None:
        """The self-test, if there is one: what loses accuracy is forgotten."""
        if not self.passes():
            self.factory()
            raise Worse(
                "what was learnt loses accuracy on the self-test: it is forgotten",
                "examples with right labels",
            )

    def passes(self) -> bool:
        """Whether the self-test has at least as many right as before learning."""
        held = self.part.holdout
        return held is None or self.right(*held) >= self.part.holdout_correct

    def valid(self, values: Array) -> bool:
        """Whether values can have been learnt."""
        return bool((np.abs(values) <= self.limits()).all())
