# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``CompiledModel.adapt``: what a model would learn on a device, before there is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tinyml.adapt.errors import AdaptError
from tinyml.adapt.last import LastLayer
from tinyml.adapt.plan import AdaptPlan
from tinyml.adapt.simulation import Simulation
from tinyml.adapt.threshold import Normal
from tinyml.api.data import DataLike, check_data, test_set
from tinyml.api.example_labels import as_truth, folder_names, is_regression
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.compare.accuracy import truth
from tinyml.datasets.arrays import real
from tinyml.ir import Array, Graph
from tinyml.pipeline import read_samples
from tinyml.settings.quantize_request import Request

EVERY = 1 << 31
"""More samples than any data has."""


class NoLabels(ConfigError):
    """Examples or a test set without labels."""


@dataclass(frozen=True)
class _Rows:
    """Samples, what is true about each, and where sequences begin."""

    inputs: Sequence[Mapping[str, Array]]
    truth: Array | None
    starts: frozenset[int]


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

    def run(self, x: DataLike, *, reset: bool = True) -> dict[str, Array]:
        """The outputs for each row of ``x``, by name. ``reset``: forget the state of the model first."""
        with test_set(x, None) as (path, _):
            rows = self._read(Request(path, samples=EVERY))
        runs = list(self._runs(rows if reset else replace(rows, starts=frozenset())))
        return {name: np.concatenate([outputs[name] for outputs in runs]) for name in runs[0]}

    def learn(self, x: DataLike, y: DataLike | None = None, *, batch: bool = False) -> None:
        """Run each row of ``x`` and learn its label; with ``batch``, one step with all of them.

        For ``prototypes`` labels are classes, -1 for a new one; ``threshold`` needs none.
        """
        with test_set(x, y) as (path, labels):
            self.learn_from(Request(path, labels=labels, samples=EVERY), batch=batch)

    def learn_from(self, request: Request, *, batch: bool = False, names: Sequence[str] = ()) -> int:
        """``learn`` with the data of a request; how many examples there were."""
        examples = self._read(request, names, learns=True)
        learner = self._simulation.learner
        if examples.truth is None:
            raise NoLabels("there are no labels to learn from", "adapt(x, y)")
        if batch and not isinstance(learner, LastLayer):
            raise ConfigError(f"{self.kind} has no batches", "batch=False")
        if batch and isinstance(learner, LastLayer):
            learner.begin()
        for number, _ in enumerate(self._runs(examples)):
            label = examples.truth[number]
            try:
                learner.learn(label if is_regression(learner) else int(label))
            except AdaptError as error:
                error.message = f"example {number}: {error.message}"
                raise
        if batch and isinstance(learner, LastLayer):
            learner.end()
        return len(examples.inputs)

    def learn_last_run(self, label: int | Array = 0) -> int | None:
        """Learn from the last run alone; for ``prototypes``, the class that has learnt."""
        return self._simulation.learner.learn(label)  # type: ignore[arg-type]

    def decide(self) -> tuple[int, float]:
        """Of ``prototypes`` and ``threshold``: the decision about the last run, and its distance."""
        learner = self._simulation.learner
        if isinstance(learner, LastLayer):
            raise ConfigError("the model's own outputs are its decision", "run(x), or predict(x)")
        return learner.decide()

    def predict(self, x: DataLike) -> Array:
        """Decisions: classes, -2 for none of the prototypes, 1 for an unusual score."""
        with test_set(x, None) as (path, _):
            rows = self._read(Request(path, samples=EVERY))
        return np.array([self._decide(outputs) for outputs in self._runs(rows)], np.int64)

    def accuracy(self, x: DataLike, y: DataLike | None = None) -> float:
        """The share of rows that are decided as their labels say."""
        with test_set(x, y) as (path, labels):
            return self.accuracy_of(Request(path, labels=labels, samples=EVERY))

    def accuracy_of(self, request: Request, names: Sequence[str] = ()) -> float:
        """``accuracy`` with the data of a request."""
        if self.is_regression:
            raise ConfigError("a regression has no accuracy", "error(x, y), or loss: cross_entropy")
        rows = self._labelled(request, names)
        return float(np.mean([self._decide(outputs) for outputs in self._runs(rows)] == rows.truth))

    @property
    def is_regression(self) -> bool:
        """Whether it learns values instead of classes."""
        return is_regression(self._simulation.learner)

    def error(self, x: DataLike, y: DataLike | None = None) -> float:
        """Of a regression: the mean absolute difference from the values that the labels state."""
        with test_set(x, y) as (path, labels):
            return self.error_of(Request(path, labels=labels, samples=EVERY))

    def error_of(self, request: Request) -> float:
        """``error`` with the data of a request."""
        if not self.is_regression:
            raise ConfigError("a model that decides has no mean error", "accuracy(x, y)")
        rows = self._labelled(request, ())
        return float(
            np.mean(np.abs(np.stack([self._first(outputs) for outputs in self._runs(rows)]) - rows.truth))
        )

    def _decide(self, outputs: Mapping[str, Array]) -> int:
        learner = self._simulation.learner
        if not isinstance(learner, LastLayer):
            return learner.decide()[0]
        return int(truth.decisions(self._first(outputs).reshape(1, -1), False)[0])

    def _first(self, outputs: Mapping[str, Array]) -> Array:
        graph = self._simulation.graph
        return real(outputs[graph.outputs[0]], graph.tensors[graph.outputs[0]]).reshape(-1)

    def _runs(self, rows: _Rows) -> Iterator[dict[str, Array]]:
        """The outputs of each row. A model that keeps state forgets it where a sequence begins."""
        for number, sample in enumerate(rows.inputs):
            if number in rows.starts:
                self._simulation.reset()
            yield self._simulation.run(sample)

    def _labelled(self, request: Request, names: Sequence[str]) -> _Rows:
        rows = self._read(request, names)
        if rows.truth is None:
            raise NoLabels("there are no labels to compare with", "accuracy(x, y)")
        return rows

    def _read(self, request: Request, names: Sequence[str] = (), *, learns: bool = False) -> _Rows:
        graph, learner = self._simulation.graph, self._simulation.learner
        check_data(request.calibration)
        found = read_samples(request, graph)
        labels = None if found.labels is None else np.asarray(found.labels)
        if labels is None and learns and isinstance(learner, Normal):
            labels = np.zeros(len(found), np.int64)
        if labels is not None:
            known = names or graph.labels or folder_names(request.calibration, labels)
            labels = as_truth(labels, learner, known, learns=learns)
        return _Rows(found.inputs, labels, found.starts | {0})
