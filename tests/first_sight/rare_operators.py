# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators that few models have: read, or refused with what to do instead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto

from tests.first_sight import Case, Holds, Right
from tests.support.onnx_models import model, node
from tinyml.importers import inventory
from tools.supported_ops import onnx_without_reader


def regions() -> bytes:
    rois = np.array([[0, 0, 0, 4, 3], [0, 1, 2, 5, 5]], np.float32)
    nodes = [
        node("Relu", "x", "h"),
        node("MaxRoiPool", "h rois", "y", pooled_shape=[2, 2], spatial_scale=0.5),
    ]
    return model(nodes, {"x": [1, 3, 6, 6]}, "y", rois=rois)


def features() -> bytes:
    nodes = [
        node("FeatureVectorizer", "a b", "v", domain="ai.onnx.ml", inputdimensions=[2, 3]),
        node("Relu", "v", "y"),
    ]
    return model(nodes, {"a": [1, 2], "b": [1, 3]}, "y", domains={"ai.onnx.ml": 1})


def boxes() -> bytes:
    nodes = [node("NonMaxSuppression", "boxes scores", "y")]
    inputs = {"boxes": [1, 4, 4], "scores": [1, 1, 4]}
    return model(nodes, inputs, "y", types={"y": TensorProto.INT64})


def all_have_a_reason(folder: Path) -> None:
    """Every operator of ONNX is read, a function of others, or has an entry that says what to do instead."""
    have = {name for family in inventory.families() for name in family.onnx}
    assert not [name for name, why in onnx_without_reader(have).items() if not why]


CASES: list[Case] = [
    Right("regions", regions),
    Right("features", features),
    Right("boxes", boxes),
    Holds("reasons", all_have_a_reason),
]
