# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""DENSIFY of TFLite: sparse constants as dense ones, which is how the importer reads them anyway."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.ir import Tensor
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_op


@tflite_op("DENSIFY")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    node.const(0)
    return [node.input(0)]
