# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``CompiledModel.adapt``: what a model would learn on a device, before there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tinyml.adapt.last import LastLayer
from tinyml.adapt.plan import SQUARED, AdaptPlan
from tinyml.adapt.simulation import Simulation
from tinyml.api.data import DataLike, check_data, test_set
from tinyml.base.errors import ConfigError
from tinyml.compare.accuracy import truth
from tinyml.datasets.arrays import real
from tinyml.ir import Array, Graph
from tinyml.pipeline import read_samples
from tinyml.settings.quantize_request import Request

EVERY = 1 << 31
"""More samples than any data has."""


class Adapted:
    """A model that learns, simulated in numpy: the bits that a device learns from the same examples."""

    def __init__(self, name: str, graph: Graph, plan: AdaptPlan) -> None:
        self.name = name
        self._simulation = Simulation(graph, plan)

    def __repr__(self) -> str:
        return f"Adapted({self.name!r}, {self._simulation.plan.kind}, learnt {self.count} times)"

    @property
    def kind(self) -> str:
        """``last``, ``prototypes`` or ``threshold``."""
        return self._simulation.plan.kind

    @property
    def count(self) -> int:
        """Steps, or examples."""
        return self._simulation.learner.count

    @property
    def learnt(self) -> bytes:
        """The bytes that NAME_learnt() gives on a device, and NAME_restore() takes."""
        return self._simulation.learnt

    @property
    def values(self) -> Array:
        """Of ``last``: what is added to biases and weights, in real numbers; one row for each class."""
        learner = self._simulation.learner
        if not isinstance(learner, LastLayer):
            raise ConfigError("only the last layer has weights to show", "adapt: last")
        part = learner.part
        bias = learner.values[: part.classes].astype(np.float64) * part.unit
        weights = learner.values[part.classes :].reshape(part.classes, -1).astype(np.float64)
        return np.concatenate([bias[:, np.newaxis], weights * part.step[:, np.newaxis]], axis=1)

    def check(self) -> None:
        """The self-test of ``holdout``: Worse is raised, and all is forgotten, if accuracy was lost."""
        if isinstance(self._simulation.learner, LastLayer):
            self._simulation.learner.check()

    def restore(self, data: bytes) -> None:
        """Take back what a device or a simulation has learnt; bytes of another model are refused."""
        self._simulation.restore(data)

    def factory(self) -> None:
        """Forget all that was learnt."""
        self._simulation.learner.factory()

    def run(self, x: DataLike) -> dict[str, Array]:
        """The outputs for each row of ``x``, by name."""
        runs = [self._simulation.run(sample) for sample in self._samples(x)[0]]
        return {name: np.concatenate([outputs[name] for outputs in runs]) for name in runs[0]}

    def learn(self, x: DataLike, y: DataLike | None = None, *, batch: bool = False) -> None:
        """Run each row of ``x`` and learn its label; with ``batch``, one step with all of them.

        For ``prototypes`` labels are classes, -1 for a new one; ``threshold`` needs none.
        """
        with test_set(x, y) as (path, labels):
            self.learn_from(Request(path, labels=labels, samples=EVERY), batch=batch)

    def learn_from(self, request: Request, *, batch: bool = False) -> int:
        """``learn`` with the data of a request; how many examples there were."""
        samples, labels = self._read(request)
        learner, kind = self._simulation.learner, self.kind
        if labels is None:
            if kind != "threshold":
                raise ConfigError("there are no labels to learn from", "adapt(x, y)")
            labels = np.zeros(len(samples), np.int64)
        if batch and not isinstance(learner, LastLayer):
            raise ConfigError(f"{kind} has no batches", "batch=False")
        squared = isinstance(learner, LastLayer) and learner.part.loss == SQUARED
        if batch and isinstance(learner, LastLayer):
            learner.begin()
        for sample, label in zip(samples, labels, strict=True):
            self._simulation.run(sample)
            learner.learn(label if squared else int(label))
        if batch and isinstance(learner, LastLayer):
            learner.end()
        return len(samples)

    def decide(self) -> tuple[int, float]:
        """Of ``prototypes`` and ``threshold``: the decision about the last run, and its distance."""
        learner = self._simulation.learner
        if isinstance(learner, LastLayer):
            raise ConfigError("the model's own outputs are its decision", "run(x), or predict(x)")
        return learner.decide()

    def predict(self, x: DataLike) -> Array:
        """Decisions: classes, -2 for none of the prototypes, 1 for an unusual score."""
        return np.array([self._decide(sample) for sample in self._samples(x)[0]], np.int64)

    def accuracy(self, x: DataLike, y: DataLike | None = None) -> float:
        """The share of rows that are decided as their labels say."""
        with test_set(x, y) as (path, labels):
            return self.accuracy_of(Request(path, labels=labels, samples=EVERY))

    def accuracy_of(self, request: Request) -> float:
        """``accuracy`` with the data of a request."""
        samples, labels = self._read(request)
        if labels is None:
            raise ConfigError("there are no labels to compare with", "accuracy(x, y)")
        return float(
            np.mean([self._decide(s) == int(label) for s, label in zip(samples, labels, strict=True)])
        )

    def _decide(self, sample: Mapping[str, Array]) -> int:
        outputs = self._simulation.run(sample)
        learner = self._simulation.learner
        if not isinstance(learner, LastLayer):
            return learner.decide()[0]
        graph = self._simulation.graph
        first = real(outputs[graph.outputs[0]], graph.tensors[graph.outputs[0]])
        return int(truth.decisions(first.reshape(1, -1), False)[0])

    def _samples(
        self, x: DataLike, y: DataLike | None = None
    ) -> tuple[Sequence[Mapping[str, Array]], Array | None]:
        with test_set(x, y) as (path, labels):
            return self._read(Request(path, labels=labels, samples=EVERY))

    def _read(self, request: Request) -> tuple[Sequence[Mapping[str, Array]], Array | None]:
        graph = self._simulation.graph
        check_data(request.calibration)
        found = read_samples(request, graph)
        given = found.labels
        if given is not None and given.dtype.kind == "U":
            given = truth.class_numbers(given, np.zeros((len(given), len(graph.labels))), graph.labels)
        return found.inputs, given
