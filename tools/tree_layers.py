# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers of trees that ``tools.tree_counts`` counts: random ones for figures, trained ones for their error.

All leaves of a random tree are equally deep, so it is known how many nodes a row passes. Trained forests come
from scikit-learn and its own data; the rows that are counted were not used to train them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tinyml.importers import ModelFile, load
from tinyml.ir import Array, Quant
from tinyml.ops.classical.tree_stream import LEAF
from tinyml.ops.classical.trees import ROOTS, Trees
from tinyml.pipeline import optimize

SEED = 65
RANDOM = 96
ROWS = 6
TESTED = 12
"""Rows of a trained forest that are counted."""
FLOAT, INT8, INT16 = "float32", "int8", "int16"


@dataclass(frozen=True)
class TreeLayer:
    """A layer, and the rows that go through it."""

    op: Trees
    tables: tuple[Array, ...]  # all operands but the first
    x: Array
    quant: Quant | None = None


def _complete(random: np.random.Generator, depth: int, features: int) -> tuple[list[int], list[int]]:
    """The features and the targets of "no" of a tree in depth-first order; leaves have a target of -1."""
    compared: list[int] = []
    others: list[int] = []

    def add(levels: int) -> None:
        here = len(compared)
        compared.append(int(random.integers(features)) if levels else LEAF)
        others.append(-1)
        if levels:
            add(levels - 1)
            others[here] = len(compared)
            add(levels - 1)

    add(depth)
    return compared, others


def random_layer(random: np.random.Generator) -> TreeLayer:
    """Trees of one depth, with any of the types and forms that the kernel has code for."""
    features = int(random.choice([3, 8, 20, 64, 300]))
    count, depth, outputs = (
        int(random.integers(1, 25)),
        int(random.integers(1, 8)),
        int(random.integers(1, 9)),
    )
    dtype = str(random.choice([FLOAT, FLOAT, INT8, INT16]))
    roots: list[int] = []
    compared: list[int] = []
    others: list[int] = []
    for _ in range(count):
        own, nos = _complete(random, depth, features)
        roots.append(len(compared))
        others += [no + len(compared) if no >= 0 else no for no in nos]
        compared += own
    nodes, leaf = np.asarray(compared, np.int16), np.asarray(compared) == LEAF
    leaves = int(leaf.sum())
    several = int(random.integers(2, outputs + 1)) if outputs > 1 and random.random() < 0.3 else 1
    whole = np.asarray(others, np.int32)
    whole[leaf] = np.arange(leaves)
    spread = 100 if dtype == INT8 else 20_000
    limits = (
        random.normal(size=len(nodes)) if dtype == FLOAT else random.integers(-spread, spread, len(nodes))
    )
    values = random.normal(size=leaves * several)
    integers = dtype != FLOAT and random.random() < 0.7
    tables: list[Array] = [
        np.asarray(roots, np.int32),
        nodes,
        limits.astype(np.float32 if dtype == FLOAT else np.int16),
        whole,
        np.arange(0, leaves * several + 1, several).astype(np.int32),
        np.concatenate([random.permutation(outputs)[:several] for _ in range(leaves)]).astype(np.int8),
        (values * 40).astype(np.int16) if integers else values.astype(np.float32),
    ]
    if dtype == FLOAT and random.random() < 0.25:
        tables.append(random.integers(0, 2, len(nodes)).astype(np.int8))
    shape = (ROWS, features)
    x = random.normal(size=shape) if dtype == FLOAT else random.integers(-spread, spread, shape)
    quant = None if dtype == FLOAT else Quant.per_tensor(0.01, 0)
    return TreeLayer(Trees(outputs, 2.0**-8 if integers else 1.0), tuple(tables), x.astype(dtype), quant)


@cache
def random_layers() -> Mapping[str, TreeLayer]:
    random = np.random.default_rng(SEED)
    return {f"random_{number}": random_layer(random) for number in range(RANDOM)}


def _data() -> Iterator[tuple[str, Array, Array, bool]]:
    """Name, rows, targets, and whether these are classes."""
    from sklearn import datasets

    for name in ("digits", "wine", "breast_cancer", "iris", "diabetes"):
        found = getattr(datasets, f"load_{name}")()
        yield name, found.data, found.target, name != "diabetes"
    for seed, features in enumerate((8, 12, 24, 40)):
        made = datasets.make_classification(
            600, features, n_informative=4, n_classes=2 + seed % 3, random_state=seed
        )
        yield f"made_{features}", *made, True
    yield "regression", *datasets.make_regression(500, 12, noise=5, random_state=0), False


def _models(classes: bool) -> Iterator[tuple[str, Any]]:
    from sklearn import ensemble, tree

    word = "Classifier" if classes else "Regressor"
    yield "forest", getattr(ensemble, f"RandomForest{word}")(12, random_state=0)
    yield "shallow_forest", getattr(ensemble, f"RandomForest{word}")(20, max_depth=5, random_state=0)
    yield "extra_trees", getattr(ensemble, f"ExtraTrees{word}")(10, max_depth=8, random_state=0)
    yield (
        "boosted",
        getattr(ensemble, f"GradientBoosting{word}")(n_estimators=15, max_depth=3, random_state=0),
    )
    yield "tree", getattr(tree, f"DecisionTree{word}")(max_depth=7, random_state=0)


def trained_layers() -> Iterator[tuple[str, TreeLayer]]:
    """Layers of trees as the compiler has them, of models that skl2onnx writes."""
    from skl2onnx import to_onnx

    for data, rows, targets, classes in _data():
        order = np.random.default_rng(0).permutation(len(rows))
        x, y = rows[order].astype(np.float32), targets[order]
        split = len(x) - TESTED
        for kind, model in _models(classes):
            model.fit(x[:split], y[:split])
            content = to_onnx(model, x[:1], options={"zipmap": False} if classes else None)
            graph = optimize(load(ModelFile(Path(f"{kind}.onnx"), content.SerializeToString())))
            for layer in graph.layers():
                if isinstance(layer.op, Trees):
                    tables = [t.value for t in layer.inputs[ROOTS:] if t is not None]
                    yield f"{data}_{kind}", TreeLayer(layer.op, tuple(tables), x[split:])
