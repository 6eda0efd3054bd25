# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Dense layers whose weights are mostly zero: mel filter banks, pruned layers. Only the others are stored."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinyml.ir import Layer
from tinyml.kernel import Constraint, Kernel, Library, Sheet
from tinyml.ops.weighted.records import constant_weights, float_limits, float_tensors, matrix
from tinyml.ops.weighted.weighted import Weighted

MOST = 0.5
"""Share of weights that are not zero up to which this is faster and smaller: an index costs two bytes."""


def mostly_zero(layer: Layer) -> bool:
    """at least half of the weights are zero, and there are at most 65,535 inputs"""
    weights = layer.input(1).value
    return bool(weights.shape[1] <= 0xFFFF and np.count_nonzero(weights) <= MOST * weights.size)


class DenseSparse(Kernel[Weighted]):
    """Float products with the weights that are not zero, in the order of the inputs."""

    name = "tinyml_dense_sparse_f32"
    library = Library.PORTABLE
    sources = ("dense/dense_sparse_f32.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (float_tensors, constant_weights, mostly_zero)

    def emit(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        weights = layer.input(1).value
        output, place = np.nonzero(weights)
        counts = np.bincount(output, minlength=len(weights))
        sheet.include("<tinyml/dense.h>")
        members = {
            **matrix(layer),
            ".weights": sheet.table("weights", weights[output, place]),
            ".places": sheet.table("places", place.astype(np.uint16)),
            ".counts": sheet.table("counts", counts.astype(np.uint16)),
            **float_limits(layer, sheet),
        }
        name = sheet.record("struct tinyml_dense_sparse_f32", "params", members)
        sheet.line(f"tinyml_dense_sparse_f32(&{name}, {sheet.x()}, {sheet.y()});")
