# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The machine-learning operators of ONNX that are arithmetic: linear models, scaling, choosing features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import Array, DType, Tensor
from tinyml.ops.classical.classes import post_transform, to_labels
from tinyml.ops.dense.dense import Dense
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import cast
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.indexing.gather import gather
from tinyml.ops.normalization.lp_normalization import normalized
from tinyml.ops.reshape import Reshape

ML = "ai.onnx.ml"


def _features(node: OnnxNode, build: Builder) -> Tensor:
    return cast(build, node.input(0), DType.FLOAT32)


def _numbers(node: OnnxNode, name: str) -> Array:
    return np.asarray(node.attr(name, ()), np.float32)


def _linear(node: OnnxNode, build: Builder, targets: int) -> Tensor:
    """x W^T + b."""
    x = _features(node, build)
    weights, bias = _numbers(node, "coefficients"), _numbers(node, "intercepts")
    if len(x.shape) != 2 or weights.size != targets * x.shape[1]:
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} has {weights.size} coefficients for {targets} results of "
            f"input {x.shape}",
            "one row of coefficients for each class or target",
        )
    operands = [x, build.constant(weights.reshape(targets, -1))]
    return build.add1(Dense(), [*operands, build.constant(bias)] if bias.size else operands)


@onnx_op("LinearRegressor", domain=ML)
def read_linear_regressor(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [post_transform(node, build, _linear(node, build, int(node.attr("targets", 1))))]


@onnx_op("LinearClassifier", domain=ML)
def read_linear_classifier(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    labels = node.attr("classlabels_ints") or node.attr("classlabels_strings") or ()
    scores = _linear(node, build, len(labels))
    return [to_labels(build, scores, labels), post_transform(node, build, scores)]


@onnx_op("Scaler", domain=ML)
def read_scaler(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """(x - offset) * scale, one of each per feature or for all."""
    y = _features(node, build)
    for function, name in (("sub", "offset"), ("mul", "scale")):
        values = _numbers(node, name)
        if values.size:
            y = build.add1(Binary(function), [y, build.constant(values)])
    return [y]


@onnx_op("Normalizer", domain=ML)
def read_normalizer(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    norm = str(node.attr("norm", "MAX"))
    if norm not in ("L1", "L2"):
        raise UnsupportedError(f"Normalizer node {node.name!r} has the unknown norm {norm}", "L1 or L2")
    x = _features(node, build)
    return [normalized(build, x, len(x.shape) - 1, int(norm[1]))]


@onnx_op("Binarizer", domain=ML)
def read_binarizer(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    limit = build.constant(np.asarray(node.attr("threshold", 0.0), x.dtype.numpy))
    return [cast(build, build.add1(Binary("greater"), [x, limit]), x.dtype)]


@onnx_op("ArrayFeatureExtractor", domain=ML)
def read_feature_extractor(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Columns by number."""
    x, columns = node.input(0), node.input(1)
    flat = build.add1(Reshape((columns.elements,)), [columns])
    y = gather(build, x, flat, len(x.shape) - 1)
    return [build.add1(Reshape((1, *y.shape)), [y]) if len(x.shape) == 1 else y]


@onnx_op("ZipMap", domain=ML)
def read_zip_map(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Probabilities by label: here they are an array, in the order of the labels."""
    return [node.input(0)]
