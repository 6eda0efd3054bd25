# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Support-vector machines as dense layers: the support vectors are their weights."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import Array, DType, Tensor
from tinyml.ops.classical.classes import post_transform, to_labels
from tinyml.ops.classical.coupling import PairwiseCoupling
from tinyml.ops.concat import Concat
from tinyml.ops.dense.dense import Dense
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import cast
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.power import Power
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.reduce.reduce import Reduce
from tinyml.ops.reshape import Reshape

ML = "ai.onnx.ml"


def _numbers(node: OnnxNode, name: str) -> Array:
    return np.asarray(node.attr(name, ()), np.float32)


def _constant(build: Builder, value: float) -> Tensor:
    return build.constant(np.asarray(value, np.float32))


def _squared_distances(build: Builder, x: Tensor, points: Array) -> Tensor:
    """|x - p|² of every row of x and every point, as |x|² - 2xp + |p|²: a dense layer and a sum."""
    wide = points.astype(np.float64)
    norms = (wide * wide).sum(axis=1).astype(np.float32)
    products = build.add1(Dense(), [x, build.constant(np.float32(-2) * points), build.constant(norms)])
    square = build.add1(Binary("mul"), [x, x])
    own = build.add1(Reshape((x.shape[0], 1)), [build.add1(Reduce("sum", (1,)), [square])])
    return build.add1(Binary("add"), [products, own])


def _kernel(node: OnnxNode, build: Builder, x: Tensor, points: Array) -> Tensor:
    """The kernel function of every row of x and every support vector."""
    kind = str(node.attr("kernel_type", "LINEAR"))
    given = [float(value) for value in _numbers(node, "kernel_params")]
    gamma, offset, degree = (*given, *(0.0, 0.0, 3.0)[len(given) :])
    if kind == "RBF":
        distances = _squared_distances(build, x, points)
        return build.add1(Unary("exp"), [build.add1(Binary("mul"), [distances, _constant(build, -gamma)])])
    if kind == "LINEAR":
        return build.add1(Dense(), [x, build.constant(points)])
    bias = build.constant(np.full(len(points), offset, np.float32))
    scaled = build.add1(Dense(), [x, build.constant(np.float32(gamma) * points), bias])
    if kind == "SIGMOID":
        return build.add1(Unary("tanh"), [scaled])
    if kind == "POLY":
        return build.add1(Power(), [scaled, _constant(build, degree)])
    raise UnsupportedError(
        f"{node.op_type} node {node.name!r} has kernel {kind}", "LINEAR, POLY, RBF, SIGMOID"
    )


def _input(node: OnnxNode, build: Builder) -> tuple[Tensor, Array]:
    """The features as float32, and the support vectors."""
    x = cast(build, node.input(0), DType.FLOAT32)
    vectors = _numbers(node, "support_vectors")
    if len(x.shape) != 2 or not vectors.size or vectors.size % x.shape[1]:
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} has {vectors.size} numbers of vectors for input {x.shape}",
            "support vectors with as many features as a row of the input",
        )
    return x, vectors.reshape(-1, x.shape[1])


@onnx_op("SVMRegressor", domain=ML)
def read_svm_regressor(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, vectors = _input(node, build)
    weights = build.constant(_numbers(node, "coefficients").reshape(1, -1))
    y = build.add1(
        Dense(), [_kernel(node, build, x, vectors), weights, build.constant(_numbers(node, "rho"))]
    )
    if node.attr("one_class", 0):  # 1 or -1
        inside = cast(build, build.add1(Binary("greater"), [y, _constant(build, 0)]), DType.FLOAT32)
        y = build.add1(Binary("sub"), [build.add1(Binary("add"), [inside, inside]), _constant(build, 1)])
    return [post_transform(node, build, y)]


@onnx_op("SVMClassifier", domain=ML)
def read_svm_classifier(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """One decision for every pair of classes; the label is that of the class with the most votes."""
    labels = node.attr("classlabels_ints") or node.attr("classlabels_strings") or ()
    classes, counts = len(labels), [int(count) for count in node.attr("vectors_per_class", ())]
    pairs = list(combinations(range(classes), 2))
    prob_a, prob_b = _numbers(node, "prob_a"), _numbers(node, "prob_b")
    if len(counts) != classes or classes < 2 or prob_a.size not in (0, len(pairs)):
        raise UnsupportedError(
            f"SVMClassifier node {node.name!r} lacks support vectors of a class",
            "LinearSVC is a LinearClassifier; an SVC has some for each class",
        )
    if prob_a.size != prob_b.size:
        raise UnsupportedError(
            f"SVMClassifier node {node.name!r} has prob_a without prob_b", "export it again"
        )
    x, vectors = _input(node, build)
    weights = _pair_weights(_numbers(node, "coefficients").reshape(classes - 1, -1), counts, pairs)
    rho = build.constant(_numbers(node, "rho"))
    scores = build.add1(Dense(), [_kernel(node, build, x, vectors), build.constant(weights), rho])
    label = to_labels(build, _votes(build, scores, classes, pairs), labels)
    if prob_a.size:
        return [label, post_transform(node, build, _probabilities(build, scores, prob_a, prob_b, classes))]
    if classes == 2:  # onnxruntime gives both classes a score
        scores = build.add1(Concat(1), [build.add1(Unary("neg"), [scores]), scores])
    return [label, post_transform(node, build, scores)]


def _probabilities(build: Builder, scores: Tensor, a: Array, b: Array, classes: int) -> Tensor:
    """Of all classes, from a logistic function of each pair's decision (Platt), coupled as libsvm does."""
    line = build.add1(Binary("mul"), [scores, build.constant(-a)])
    line = build.add1(Binary("sub"), [line, build.constant(b)])
    pairs = build.add1(Clamp(1e-7, 1 - 1e-7), [build.add1(Unary("sigmoid"), [line])])
    return build.add1(PairwiseCoupling(classes), [pairs])


def _pair_weights(coefficients: Array, counts: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Array:
    """One row for each pair: the coefficients of the vectors of both classes, zeros for all others."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    weights = np.zeros((len(pairs), coefficients.shape[1]), np.float32)
    for row, (i, j) in enumerate(pairs):
        first, second = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        weights[row, first] = coefficients[j - 1, first]
        weights[row, second] = coefficients[i, second]
    return weights


def _votes(build: Builder, scores: Tensor, classes: int, pairs: Sequence[tuple[int, int]]) -> Tensor:
    """Votes of each class: a positive score is one for the first class of the pair, else for the second."""
    gains, bias = np.zeros((classes, len(pairs)), np.float32), np.zeros(classes, np.float32)
    for row, (i, j) in enumerate(pairs):
        gains[i, row], gains[j, row] = 1, -1
        bias[j] += 1
    won = cast(build, build.add1(Binary("greater"), [scores, _constant(build, 0)]), DType.FLOAT32)
    return build.add1(Dense(), [won, build.constant(gains), build.constant(bias)])
