# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Labels and probabilities from scores, as the machine-learning operators of ONNX define them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import Array, DType, Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import cast
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.reading import Builder, OnnxNode
from tinyml.ops.indexing.gather import gather
from tinyml.ops.reduce.arg_reduce import ArgReduce
from tinyml.ops.reshape import Reshape
from tinyml.ops.softmax.softmax import Softmax


def added(build: Builder, scores: Tensor, base: Array) -> Tensor:
    """Scores plus the base values."""
    if not np.any(base):
        return scores
    return build.add1(Binary("add"), [scores, build.constant(np.asarray(base, np.float32))])


def post_transform(node: OnnxNode, build: Builder, scores: Tensor) -> Tensor:
    how = str(node.attr("post_transform", "NONE"))
    if how == "NONE":
        return scores
    if how == "LOGISTIC":
        return build.add1(Unary("sigmoid"), [scores])
    if how == "SOFTMAX":
        return build.add1(Softmax(1), [scores])
    raise UnsupportedError(
        f"{node.op_type} node {node.name!r} has post_transform {how}", "NONE, LOGISTIC or SOFTMAX"
    )


def to_labels(build: Builder, scores: Tensor, labels: Sequence[Any]) -> Tensor:
    """The label of the largest score in each row."""
    best = build.add1(ArgReduce(1), [scores])
    return named(build, build.add1(Reshape((scores.shape[0],)), [best]), labels)


def named(build: Builder, numbers: Tensor, labels: Sequence[Any]) -> Tensor:
    """Class indices as labels; string labels stay indices, in the model's order."""
    if any(isinstance(label, str) for label in labels):
        build.labels = tuple(map(str, labels))
        return numbers
    if list(labels) == list(range(len(labels))):
        return numbers
    return gather(build, build.constant(np.asarray(labels, np.int64)), numbers, 0)


def decided(build: Builder, score: Tensor, limit: float, labels: Sequence[Any]) -> Tensor:
    """The second of two labels where the score is above the limit, else the first."""
    least = build.constant(np.asarray(limit, np.float32))
    yes = cast(build, build.add1(Binary("greater"), [score, least]), DType.INT64)
    return named(build, build.add1(Reshape((score.shape[0],)), [yes]), labels)


def rest(build: Builder, score: Tensor) -> Tensor:
    """1 - score: the probability of the first class."""
    return build.add1(Binary("sub"), [build.constant(np.asarray(1, np.float32)), score])
