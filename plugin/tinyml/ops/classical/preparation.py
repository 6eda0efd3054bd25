# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The machine-learning operators of ONNX that prepare features: missing values, categories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import DType, Tensor
from tinyml.ops.concat import concat
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import cast
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.elementwise.where import Where
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.reshape import Reshape

ML = "ai.onnx.ml"


@onnx_op("Imputer", domain=ML)
def read_imputer(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Another value for a missing one, one for each feature or for all; NaN is the usual mark."""
    x = node.input(0)
    kind = "float" if x.dtype.is_float else "int64"
    values = np.asarray(node.attr(f"imputed_value_{kind}s", ()), x.dtype.numpy)
    if not x.shape or values.size not in (1, x.shape[-1]):
        raise UnsupportedError(
            f"Imputer node {node.name!r} has {values.size} values of type {kind} for input {x.shape}",
            "one value for each feature, or one for all",
        )
    mark = np.asarray(node.attr(f"replaced_value_{kind}", 0), x.dtype.numpy)
    if np.isnan(mark):
        missing = build.add1(Unary("is_nan"), [x])
    else:
        missing = build.add1(Binary("equal"), [x, build.constant(mark)])
    return [build.add1(Where(), [missing, build.constant(values), x])]


@onnx_op("OneHotEncoder", domain=ML)
def read_one_hot_encoder(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """A new last axis with a 1 at the category; all are 0 for an unknown one, even where that is an error."""
    categories = node.attr("cats_int64s", ())
    if not categories:
        raise UnsupportedError(
            f"OneHotEncoder node {node.name!r} has categories that are texts", "give them numbers first"
        )
    x = cast(build, node.input(0), DType.INT64)
    each = build.add1(Reshape((*x.shape, 1)), [x])
    found = build.add1(Binary("equal"), [each, build.constant(np.asarray(categories, np.int64))])
    return [cast(build, found, DType.FLOAT32)]


@onnx_op("FeatureVectorizer", domain=ML)
def read_feature_vectorizer(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """All inputs side by side, as float32: rows of numbers, or single numbers."""
    parts = []
    for index in range(len(node.inputs)):
        x = cast(build, node.input(index), DType.FLOAT32)
        parts.append(x if len(x.shape) == 2 else build.add1(Reshape((1, x.elements)), [x]))
    return [concat(build, parts, 1)]
