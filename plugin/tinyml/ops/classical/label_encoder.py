# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""LabelEncoder: whole numbers to other numbers, as a table. Isolation forests have one for each tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import DType, Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import cast
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.indexing.gather import gather
from tinyml.ops.reshape import Reshape

MOST_ENTRIES = 65536


@onnx_op("LabelEncoder", domain="ai.onnx.ml")
def read_label_encoder(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """A table from the smallest key to the largest; the entries before and after it are the default."""
    keys = [int(key) for key in node.attr("keys_int64s", ())]
    floats, whole = node.attr("values_floats", ()), node.attr("values_int64s", ())
    values = list(floats or whole)
    if not keys or len(values) != len(keys) or max(keys) - min(keys) >= MOST_ENTRIES:
        raise UnsupportedError(
            f"LabelEncoder node {node.name!r} is not a table from whole numbers to numbers",
            f"keys_int64s that span less than {MOST_ENTRIES:,}, with values_floats or values_int64s",
        )
    low, high = min(keys), max(keys)
    default = node.attr("default_float", -0.0) if floats else node.attr("default_int64", -1)
    table = np.full(high - low + 3, default, np.float32 if floats else np.int64)
    for key, value in zip(reversed(keys), reversed(values), strict=True):  # of equal keys the first counts
        table[key - low + 1] = value
    x = cast(build, node.input(0), DType.INT64)
    for function, bound in (("max", low - 1), ("min", high + 1), ("sub", low - 1)):
        x = build.add1(Binary(function), [x, build.constant(np.asarray(bound, np.int64))])
    flat = build.add1(Reshape((x.elements,)), [x])
    return [build.add1(Reshape(x.shape), [gather(build, build.constant(table), flat, 0)])]
