# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The self-test of a last layer that learns: labelled embeddings, computed by the frozen layers before it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from tinyml.adapt.last import LastLayer
from tinyml.adapt.plan import SQUARED, AdaptPlan
from tinyml.base.errors import ConfigError
from tinyml.datasets.reader import Samples
from tinyml.ir import Graph
from tinyml.ir.interpreter import interpret

MOST = 4096


def with_holdout(
    graph: Graph, plan: AdaptPlan, samples: Samples, file: Path, tolerance: float = 0.0
) -> AdaptPlan:
    """The plan with the embeddings of ``samples``, and how many of them must be right."""
    part = plan.last
    if part.loss == SQUARED:
        raise ConfigError(
            "a regression has no labels to be tested with", "no holdout, or loss: cross_entropy"
        )
    labels = None if samples.labels is None else np.asarray(samples.labels).reshape(-1)
    if labels is None or len(labels) != len(samples.inputs):
        raise ConfigError(f"{file.name} has no label for each sample", "an array called labels in the .npz")
    if not 0 < len(labels) <= MOST:
        raise ConfigError(f"{file.name} has {len(labels)} samples", f"1 to {MOST}, since they are in flash")
    if labels.dtype.kind == "U":
        known = {name: number for number, name in enumerate(graph.labels)}
        labels = np.array([known.get(str(label), -1) for label in labels])
    if labels.dtype.kind not in "iuf" or ((labels < 0) | (labels >= part.classes) | (labels % 1 != 0)).any():
        raise ConfigError(
            f"{file.name} has labels that are no classes", f"numbers from 0 to {part.classes - 1}"
        )
    runs = interpret(graph, samples.inputs)
    embeddings = np.stack([values[part.tensor].reshape(-1) for values in runs]).astype(np.int8)
    numbers = labels.astype(np.int64)
    least = max(LastLayer(part).right(embeddings, numbers) - math.floor(tolerance * len(numbers)), 0)
    return replace(plan, part=replace(part, holdout=(embeddings, numbers), holdout_correct=least))
