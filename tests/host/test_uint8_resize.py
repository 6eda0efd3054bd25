# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""RESIZE_BILINEAR of uint8 against LiteRT.

TensorFlow Lite interpolates uint8 in float32. Whether products are fused with sums depends on how LiteRT was
compiled, so only elements that lie halfway between two integers, but for float32's error, may differ.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.random_graphs.recipe import Model, Recipe
from tests.support.interpret import interpret
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.importers import tflite_graph
from tinyml.ir import Array, Quant
from tinyml.ops.resize.bilinear import ResizeBilinear
from tinyml.pipeline import optimize

FLOAT_ERROR = 1e-3
SHAPE = (1, 5, 4, 7)


def file_of(height: int, width: int, corners: bool, centres: bool) -> bytes:
    quant = Quant.per_tensor(0.05, 77)
    values = [
        Value("x", SHAPE, "uint8", quant),
        Value("y", (1, height, width, SHAPE[3]), "uint8", quant),
        Value.constant("size", np.array([height, width], np.int32)),
    ]
    fields = {"AlignCorners": corners, "HalfPixelCenters": centres}
    call = Call("RESIZE_BILINEAR", ["x", "size"], ["y"], "ResizeBilinearOptions", fields)
    return write(Part(values, [call], ["x"], ["y"]))


def interpolated(x: Array, graph: Any) -> Array:
    """The same in double, before it is rounded."""
    (node,) = [node for node in graph.nodes if isinstance(node.op, ResizeBilinear)]
    rows, columns = node.op.axes(graph.tensors[node.inputs[0]])
    down = rows.fraction.astype(np.float64).reshape(1, -1, 1, 1)
    right = columns.fraction.astype(np.float64).reshape(1, 1, -1, 1)
    wide = x.astype(np.float64)
    y = wide[:, rows.first] * (1 - down) + wide[:, rows.second] * down
    return np.asarray(y[:, :, columns.first] * (1 - right) + y[:, :, columns.second] * right)


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True)])
def test_all_but_ties_are_equal(flags: tuple[bool, bool]) -> None:
    pytest.importorskip("ai_edge_litert", reason="the reference")
    from tests.random_graphs.tflite_model import litert

    x = np.random.default_rng(6).integers(0, 256, SHAPE).astype(np.uint8)
    for height, width in product((1, 2, 3, 6, 10), (1, 5, 7, 8)):
        model = Model(Recipe("tflite_u8", 1, 1, 1, ()), file_of(height, width, *flags), [[x]])
        ((wanted,),) = litert(model)
        graph = tflite_graph.read(Path("resize.tflite"), model.content, {})
        (found,) = interpret(optimize(graph), {"x": x}).values()
        real = interpolated(x, graph)
        tie = np.abs(real - np.floor(real) - 0.5) < FLOAT_ERROR
        np.testing.assert_array_equal(found[~tie], wanted[~tie])
        assert np.abs(found.astype(int) - wanted).max() <= 1
