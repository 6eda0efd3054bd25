# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Resize, transposed convolution, and operators that read an image between its elements."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, Const, onnx_case
from tests.support.data import real, whole

X = real(1, 2, 4, 5)
EMPTY = Const(np.array([], np.float32))
UP = Const(np.array([1, 1, 2.3, 1.6], np.float32))
DOWN = Const(np.array([1, 1, 0.6, 0.8], np.float32))
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
GRID = real(1, 3, 4, 2, seed=3)


def sizes(*values: int) -> Const:
    return Const(np.array(values, np.int64))


CASES: list[Case] = [
    *(
        onnx_case(
            f"resize_{mode}_{where}_{name}",
            "Resize",
            [X, EMPTY, scales],
            mode=mode,
            coordinate_transformation_mode=where,
            rtol=1e-4,
            atol=1e-5,
        )
        for mode in ("nearest", "linear", "cubic")
        for where in COORDINATES
        for name, scales in (("up", UP), ("down", DOWN))
        if (mode, where, name) != ("nearest", "align_corners", "down")  # onnxruntime rounds the extent
        and not (mode != "nearest" and where == "align_corners")  # and uses the rounded one here
    ),
    *(
        onnx_case(f"nearest_{how}", "Resize", [X, EMPTY, UP], mode="nearest", nearest_mode=how)
        for how in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    ),
    *(
        onnx_case(  # 1/6 in float32 is more than 1/6: the middle of 6 elements is still at 3, not below
            f"nearest_to_one_{where}",
            "Resize",
            [real(1, 2, 7, 6), EMPTY, Const(np.array([1, 1, 1 / 7, 1 / 6], np.float32))],
            mode="nearest",
            nearest_mode="floor",
            coordinate_transformation_mode=where,
        )
        for where in ("tf_half_pixel_for_nn", "half_pixel", "asymmetric")
    ),
    onnx_case(
        "align_corners",
        "Resize",
        [X, EMPTY, EMPTY, sizes(1, 2, 7, 9)],
        mode="linear",
        coordinate_transformation_mode="align_corners",
    ),
    onnx_case("exclude_outside", "Resize", [X, EMPTY, UP], mode="cubic", exclude_outside=1, atol=1e-5),
    onnx_case("resize_bytes", "Resize", [whole(1, 2, 3, 3, dtype="int8"), EMPTY, EMPTY, sizes(1, 2, 6, 9)]),
    onnx_case("upsample", "Upsample", [X, Const(np.array([1, 1, 2, 3], np.float32))], opset=9),
    onnx_case(
        "transposed",
        "ConvTranspose",
        [X, Const(real(2, 3, 3, 2, seed=1)), Const(real(3, seed=2))],
        strides=[2, 3],
        pads=[1, 0, 0, 1],
        output_padding=[1, 0],
        atol=1e-5,
    ),
    onnx_case(
        "transposed_groups",
        "ConvTranspose",
        [X, real(2, 2, 2, 2, seed=1)],
        group=2,
        dilations=[2, 1],
        atol=1e-5,
    ),
    onnx_case(
        "transposed_1d",
        "ConvTranspose",
        [real(2, 3, 6), Const(real(3, 2, 4, seed=1))],
        strides=[2],
        auto_pad="SAME_UPPER",
        atol=1e-5,
    ),
    *(
        onnx_case(
            f"grid_{mode}_{outside}_{corners}",
            "GridSample",
            [X, GRID],
            mode=mode,
            padding_mode=outside,
            align_corners=corners,
            atol=1e-5,
        )
        for mode in ("nearest", "linear", "cubic")
        for outside in ("zeros", "border", "reflection")
        for corners in (0, 1)
    ),
    *(
        onnx_case(
            f"regions_{mode}_{where}",
            "RoiAlign",
            [X, np.array([[0, 0, 3, 2], [1, 1, 9, 9]], np.float32), np.array([0, 0], np.int64)],
            output_height=2,
            output_width=3,
            sampling_ratio=2,
            spatial_scale=0.7,
            mode=mode,
            coordinate_transformation_mode=where,
            atol=1e-5,
        )
        for mode in ("avg", "max")
        for where in ("half_pixel", "output_half_pixel")
    ),
    *(
        onnx_case(
            f"max_regions_{number}",
            "MaxRoiPool",
            [X, np.array(regions, np.float32)],
            pooled_shape=[3, 2],
            spatial_scale=scale,
        )
        for number, (scale, regions) in enumerate(
            (
                (1.0, [[0, 0, 0, 3, 2], [0, 1, 1, 9, 9], [0, 2, 2, 2, 2]]),
                (0.7, [[0, -3, -2, 4.4, 2.6], [0, 5, 4, 1, 1], [0, 20, 20, 30, 30]]),
            )
        )
    ),
    onnx_case(
        "deformed",
        "DeformConv",
        [X, real(2, 2, 2, 2, seed=1), real(1, 8, 3, 4, seed=2), real(2, seed=3), real(1, 4, 3, 4, seed=4)],
        oracle="reference",
        opset=22,
        atol=1e-5,
    ),
]
