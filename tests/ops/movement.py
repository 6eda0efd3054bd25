# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators that only move elements: slice, split, concat, pad, tile, gather, scatter and others."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, Const, onnx_case, op_case
from tests.support.data import real, truth, whole
from tinyml.ir import Array
from tinyml.ops.indexing.dynamic_update import DynamicUpdate

X = real(3, 4, 5)
INTS = whole(3, 4, 5, dtype="int16")


def ints(*values: int) -> Const:
    return Const(np.array(values, np.int64))


def indices(values: object, dtype: str = "int64") -> Array:
    return np.array(values, dtype)


def _positions(batch: int, count: int, depth: int) -> Array:
    """Positions in X after ``batch`` of its axes, some counted from the end."""
    found = whole(*X.shape[:batch], count, depth, low=0, high=1 << 20).astype(np.int64)
    sizes = np.array(X.shape[batch : batch + depth])
    return found % (2 * sizes) - sizes


SLICES = {
    "rows": (ints(1), ints(3), ints(0), ints(1)),
    "steps": (ints(0, 1), ints(3, 5), ints(0, 2), ints(2, 3)),
    "backwards": (ints(-1, 4), ints(-1000, 0), ints(1, 2), ints(-2, -1)),
    "far": (ints(-1000), ints(1000), ints(-1), ints(2)),
    "nothing": (ints(2), ints(2), ints(1), ints(1)),
}
WIDTHS = {"both": (1, 0, 2, 0, 3, 1), "cut": (-1, 1, 0, 2, -2, -1)}

CASES: list[Case] = [
    *(onnx_case(f"slice_{name}", "Slice", [X, *operands]) for name, operands in SLICES.items()),
    onnx_case("slice_type", "Slice", [INTS, *SLICES["steps"]]),
    onnx_case("split_parts", "Split", [X, ints(1, 0, 3)], outputs=3, axis=1),
    onnx_case("split_uneven", "Split", [X], outputs=2, axis=2, num_outputs=2),
    onnx_case("concat_first", "Concat", [X, real(1, 4, 5, seed=1), X], axis=0),
    onnx_case("concat_last", "Concat", [X, Const(real(3, 4, 2, seed=1))], axis=-1),
    onnx_case("concat_types", "Concat", [truth(2, 3), truth(2, 1, seed=1)], axis=1),
    *(
        onnx_case(f"pad_{mode}_{name}", "Pad", [X, ints(*widths)], mode=mode)
        for mode in ("constant", "edge", "reflect", "wrap")
        for name, widths in WIDTHS.items()
        if name == "both" or mode in ("constant", "edge")  # others disagree on what to reflect after a cut
    ),
    onnx_case("pad_value", "Pad", [X, ints(*WIDTHS["both"]), Const(np.float32(-1.5))]),
    onnx_case("pad_axes", "Pad", [X, ints(1, 2), Const(np.float32(2)), ints(-1)]),
    onnx_case("tile", "Tile", [X, ints(2, 1, 3)]),
    onnx_case("expand", "Expand", [real(3, 1, 5), ints(2, 1, 4, 1)]),
    onnx_case("gather_rows", "Gather", [X, indices([[2, -1], [0, 1]])], axis=0),
    onnx_case("gather_columns", "Gather", [X, indices([3, 0], "int32")], axis=-1),
    onnx_case("gather_known", "Gather", [X, ints(0, 3, 2)], axis=1),
    onnx_case("gather_regular", "Gather", [X, ints(3, 1)], axis=1),
    onnx_case("gather_one", "Gather", [X, Const(np.int64(-2))], axis=2),
    onnx_case("gather_elements", "GatherElements", [X, indices([[[0, -1, 2, 1, 0]] * 2] * 3)], axis=1),
    onnx_case("gather_nd", "GatherND", [X, indices([[0, 1], [2, -1]])]),
    onnx_case("gather_nd_batch", "GatherND", [X, indices([[0], [2], [-1]])], batch_dims=1),
    *(
        onnx_case(
            f"gather_nd_batch{batch}_count{count}_depth{depth}",
            "GatherND",
            [X, _positions(batch, count, depth)],
            batch_dims=batch,
        )
        for batch in range(3)
        for count in (1, 3)
        for depth in range(1, 4 - batch)
    ),
    *(
        onnx_case(
            f"scatter_elements_{how}",
            "ScatterElements",
            [X, indices([[[0, 1, 0, 2, 3]], [[3, 3, 3, 3, -1]]]), real(2, 1, 5, seed=1)],
            axis=1,
            reduction=how,
        )
        for how in ("none", "add", "mul", "max", "min")
    ),
    *(
        onnx_case(
            f"scatter_nd_{how}",
            "ScatterND",
            [
                X,
                indices([[0, 1], [2, 0], [0, 1]] if how != "none" else [[0, 1], [2, 0]]),
                real(3 if how != "none" else 2, 5, seed=1),
            ],
            reduction=how,
        )
        for how in ("none", "add", "mul", "max", "min")
    ),
    *(
        op_case(f"dynamic_update_{start}", DynamicUpdate(), [X, real(2, 4, 3, seed=1), indices([start] * 3)])
        for start in (0, 1, 9, -3)
    ),
    onnx_case("compress", "Compress", [X, Const(np.array([True, False, True, True]))], axis=1),
    onnx_case("compress_flat", "Compress", [X, Const(np.array([False, True, False, True]))]),
    onnx_case("depth_to_space", "DepthToSpace", [real(1, 8, 2, 3)], blocksize=2),
    onnx_case("depth_to_space_crd", "DepthToSpace", [real(1, 8, 2, 3)], blocksize=2, mode="CRD"),
    onnx_case("space_to_depth", "SpaceToDepth", [real(1, 2, 4, 6)], blocksize=2),
    onnx_case("reverse", "ReverseSequence", [X, indices([1, 3, 2, 3])], batch_axis=1, time_axis=0),
    onnx_case("reverse_batch_first", "ReverseSequence", [X, indices([4, 1, 2])], batch_axis=0, time_axis=1),
    onnx_case("top_k", "TopK", [X, ints(2)], outputs=2, axis=1),
    onnx_case("top_k_smallest", "TopK", [whole(4, 6), ints(4)], outputs=2, axis=-1, largest=0),
    onnx_case("col2im", "Col2Im", [real(1, 8, 6), ints(4, 5), ints(2, 2)], strides=[2, 2], pads=[0, 1, 0, 0]),
]
