# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TreeEnsembleClassifier and TreeEnsembleRegressor of ONNX, as scikit-learn, XGBoost and LightGBM export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Tensor
from tinyml.ops.classical.classes import added, decided, post_transform, rest, to_labels
from tinyml.ops.classical.tree_stream import LEAF
from tinyml.ops.classical.trees import Trees
from tinyml.ops.concat import concat
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import cast
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import MALFORMED, Builder, OnnxNode, onnx_op

SWAPPED = {"BRANCH_GT": "BRANCH_LEQ", "BRANCH_GTE": "BRANCH_LT"}
"""Comparisons that are the opposite of a supported one: their two branches are swapped."""


def attribute(node: OnnxNode, name: str) -> Array:
    """A list of numbers, which may also come as a tensor."""
    return np.asarray(node.attr(f"{name}_as_tensor", node.attr(name, ()))).reshape(-1)


def at_most(limit: float, strict: bool) -> np.float32:
    """The largest float32 that is at most (``strict``: less than) the limit, which may be a double.

    Nothing is less than the smallest infinity, and nothing is at most a NaN.
    """
    if strict and limit == -np.inf:
        return np.float32(np.nan)
    single = np.float32(limit)
    if float(single) > limit or (strict and float(single) == limit):
        with np.errstate(over="ignore"):  # below the largest numbers are others, and below -max is -inf
            single = np.nextafter(single, np.float32(-np.inf))
    return single


@dataclass
class _Layout:
    """The tables of ``Trees`` while they are filled."""

    roots: list[int] = field(default_factory=list)
    features: list[int] = field(default_factory=list)
    limits: list[np.float32] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    targets: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    missing: list[bool] = field(default_factory=list)
    leaves: dict[tuple[tuple[int, float], ...], int] = field(default_factory=dict)

    def leaf(self, held: Sequence[tuple[int, float]]) -> int:
        """The number of a leaf with these outputs and weights: equal leaves are stored once, zeros never.

        Sums begin with a zero that is not negative, so that adding a zero of either sign changes nothing.
        """
        key = tuple((target, weight) for target, weight in held if weight != 0)
        if key not in self.leaves:
            self.leaves[key] = len(self.starts) - 1
            self.targets += [target for target, _ in key]
            self.weights += [weight for _, weight in key]
            self.starts.append(len(self.targets))
        return self.leaves[key]

    def tensors(self, build: Builder) -> list[Tensor]:
        tables: list[Array] = [
            smallest(self.roots),
            smallest(self.features),
            np.asarray(self.limits, np.float32),
            smallest(self.others),
            smallest(self.starts),
            smallest(self.targets),
            np.asarray(self.weights, np.float32),
        ]
        if any(self.missing):
            tables.append(np.asarray(self.missing, np.int8))
        return [build.constant(table) for table in tables]


def smallest(values: Sequence[int]) -> Array:
    """Indices in the smallest type that fits."""
    highest = max(values, default=0)
    kinds = (np.int8, np.int16, np.int32)
    return np.asarray(values, next(kind for kind in kinds if highest <= np.iinfo(kind).max))


def trees(node: OnnxNode, build: Builder, word: str, targets: Mapping[int, int]) -> Tensor:
    """The sums of all leaves; ``targets`` maps classes or targets to outputs."""
    x = node.input(0)
    if x.dtype is DType.FLOAT64 or len(x.shape) != 2:
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} on {x.dtype.value} of shape {x.shape}",
            "rows of float32 features; in skl2onnx, FloatTensorType",
        )
    layout = _layout(node, word, targets)
    if max(layout.features) >= x.shape[1]:
        raise ModelError(f"{node.op_type} node {node.name!r} uses features that {x.name!r} does not have")
    operands = [cast(build, x, DType.FLOAT32), *layout.tensors(build)]
    return build.add1(Trees(max(targets.values()) + 1), operands)


def _layout(node: OnnxNode, word: str, targets: Mapping[int, int]) -> _Layout:
    modes, limits = node.attr("nodes_modes"), attribute(node, "nodes_values")
    names = ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids")
    tree, number, feature, yes, no = (node.ints(name) for name in names)
    tracks = node.ints("nodes_missing_value_tracks_true") or (0,) * len(tree)
    places = {key: i for i, key in enumerate(zip(tree, number, strict=True))}
    unknown = {*modes} - {"BRANCH_LEQ", "BRANCH_LT", "LEAF", *SWAPPED}
    if unknown:
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} has nodes of mode {', '.join(sorted(unknown))}",
            "comparisons of numbers: BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT",
        )
    if np.isnan(limits).any():
        raise ModelError(f"{node.op_type} node {node.name!r} compares features with NaN", MALFORMED)
    held: dict[tuple[int, int], list[tuple[int, float]]] = {}
    ids = (node.ints(f"{word}_{name}") for name in ("treeids", "nodeids", "ids"))
    for t, n, target, weight in zip(*ids, attribute(node, f"{word}_weights"), strict=True):
        held.setdefault((t, n), []).append((targets[target], float(weight)))
    result = _Layout()
    inner = [i for i, mode in enumerate(modes) if mode != "LEAF"]
    children = {(tree[i], child) for i in inner for child in (yes[i], no[i])}
    for root in [key for key in places if key not in children]:
        result.roots.append(len(result.features))
        waiting: list[tuple[tuple[int, int], int]] = [(root, LEAF)]  # with the node whose "no" leads here
        while waiting:
            key, parent = waiting.pop()
            i, here = places[key], len(result.features)
            if here > len(tree):
                raise ModelError(f"{node.op_type} node {node.name!r}: its nodes are not a tree")
            if parent != LEAF:
                result.others[parent] = here
            mode = SWAPPED.get(modes[i], modes[i])
            swapped = mode != modes[i]
            is_leaf = mode == "LEAF"
            result.features.append(LEAF if is_leaf else feature[i])
            result.limits.append(np.float32(0) if is_leaf else at_most(float(limits[i]), mode == "BRANCH_LT"))
            result.missing.append(not is_leaf and bool(tracks[i]) != swapped)
            result.others.append(result.leaf(held.get(key, [])) if is_leaf else LEAF)
            if is_leaf:
                continue
            first, second = (no[i], yes[i]) if swapped else (yes[i], no[i])
            waiting += [((key[0], second), here), ((key[0], first), LEAF)]
    if not result.weights:  # C has no empty tables
        result.targets.append(0)
        result.weights.append(0.0)
    return result


quantizes("TreeEnsembleRegressor", "TreeEnsembleClassifier", activations=False, trees=True)


@onnx_op("TreeEnsembleRegressor", domain="ai.onnx.ml")
def read_regressor(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    count = int(node.attr("n_targets", 1))
    y = trees(node, build, "target", {target: target for target in range(count)})
    how = str(node.attr("aggregate_function", "SUM"))
    if how not in ("SUM", "AVERAGE"):
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} aggregates its trees by {how}, which is not supported",
            "SUM or AVERAGE",
        )
    if how == "AVERAGE":
        number = len(set(node.ints("nodes_treeids")))
        y = build.add1(Binary("div"), [y, build.constant(np.asarray(number, np.float32))])
    return [post_transform(node, build, added(build, y, attribute(node, "base_values")))]


@onnx_op("TreeEnsembleClassifier", domain="ai.onnx.ml")
def read_classifier(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    labels = node.attr("classlabels_int64s") or node.attr("classlabels_strings") or ()
    used, base = sorted(set(node.ints("class_ids"))), attribute(node, "base_values")
    if not labels or not used or used[0] < 0 or used[-1] >= len(labels):
        raise ModelError(
            f"TreeEnsembleClassifier node {node.name!r} names {len(labels)} classes, and has scores of "
            f"class {used[-1] if used else 'none'}",
            "onnxruntime refuses such files too (CatBoost writes them for regressions of several values): "
            "export one model for each value",
        )
    if len(labels) == 2 and len(used) == 1:
        score = added(build, trees(node, build, "class", {used[0]: 0}), base[-1:])
        return _two_classes(node, build, score, labels, used[0])
    scores = trees(node, build, "class", {number: number for number in range(len(labels))})
    scores = added(build, scores, base)
    return [to_labels(build, scores, labels), post_transform(node, build, scores)]


def _two_classes(
    node: OnnxNode, build: Builder, score: Tensor, labels: Sequence[Any], named: int
) -> Sequence[Tensor]:
    """Weights exist for one class only: usually for the first, although they mean the second."""
    how, base = str(node.attr("post_transform", "NONE")), attribute(node, "base_values")
    if how not in ("NONE", "LOGISTIC") or base.size > 1 - named:
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} has two classes, weights for class {named} only, "
            f"{base.size} base values and post_transform {how}",
            "post_transform NONE or LOGISTIC, weights for class 0, and at most one base value; "
            "other combinations have no defined meaning",
        )
    positive = bool((attribute(node, "class_weights") >= 0).all())
    if named == 1:
        other = build.constant(np.zeros(score.shape, np.float32))
    elif positive and how == "NONE":  # the score is a probability
        return [decided(build, score, 0.5, labels), concat(build, [rest(build, score), score], 1)]
    else:
        other = build.add1(Unary("neg"), [score])
    both = concat(build, [other, score], 1)
    return [decided(build, score, 0.5 if positive else 0.0, labels), post_transform(node, build, both)]
