# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The cases that ``record_tflite.py`` records: one operator each, family by family."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.tflite_case import (
    IMAGE,
    INT16,
    INT16_UNIT,
    PROBABILITY,
    UNIT,
    A,
    B,
    Cases,
    Q,
    TfliteCase,
    Y,
    bias,
    every_byte,
    f32,
    i8,
    i16,
    ints,
    per_channel,
    positive,
    reals,
    weights,
)
from tests.support.tflite_writer import Value


def element_wise(cases: Cases) -> None:
    for op_type, table in (("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions")):
        for act in (0, 1, 3):
            pair = [i8("a", IMAGE), i8("b", IMAGE, B)]
            cases.add(f"int8 {act}", op_type, pair, [i8("y", IMAGE, Y)], table, FusedActivationFunction=act)
        row = [i8("a", IMAGE), i8("b", (4, 1), B)]
        cases.add("int8 broadcast", op_type, row, [i8("y", IMAGE, Y)], table)
        words = [i16("a", IMAGE), i16("b", IMAGE, Q(0.0003, 0))]
        exact: dict[str, Any] = {} if op_type == "MUL" else {"PotScaleInt16": False}
        cases.add("int16", op_type, words, [i16("y", IMAGE, Q(0.0007, 0))], table, **exact)
        floats = [f32("a", IMAGE), f32("b", (5,))]
        cases.add("float", op_type, floats, [f32("y", IMAGE)], table, FusedActivationFunction=1)
    for op_type in ("MAXIMUM", "MINIMUM"):
        pair = [i8("a", IMAGE), i8("b", (5,))]
        cases.add("int8", op_type, pair, [i8("y", IMAGE)], "MaximumMinimumOptions")
    pair = [i8("a", IMAGE), i8("b", IMAGE, B)]
    cases.add("int8", "SQUARED_DIFFERENCE", pair, [i8("y", IMAGE, Y)], "SquaredDifferenceOptions")
    slopes = weights("b", (1, 1, 5), B)
    cases.add("int8", "PRELU", [i8("a", IMAGE), slopes], [i8("y", IMAGE, Y)])
    for op_type in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
        table = "".join(word.capitalize() for word in op_type.split("_")) + "Options"
        cases.add("int8", op_type, pair, [Value("y", IMAGE, "bool")], table)
    edges = [-1.5, 0.0, 0.0, 0.25, 7.0]
    for dtype in ("float32", "int32", "int64"):
        x, y = Value("a", IMAGE, dtype), Value("y", IMAGE, "int32")
        cases.add(dtype, "BUCKETIZE", [x], [y], "BucketizeOptions", Boundaries=edges)
    cases.add("no boundary", "BUCKETIZE", [x], [y], "BucketizeOptions", Boundaries=[])
    cases.add("int32", "FLOOR_MOD", [Value("a", IMAGE, "int32"), ints("b", 7)], [Value("y", IMAGE, "int32")])


def activations(cases: Cases) -> None:
    for scale in (A, Q(0.2, -128)):
        for op_type, table, y in (
            ("LOGISTIC", "", PROBABILITY),
            ("TANH", "", UNIT),
            ("HARD_SWISH", "HardSwishOptions", Q(0.04, -40)),
            ("LEAKY_RELU", "LeakyReluOptions", Q(0.04, -60)),
            ("RELU", "", B),
            ("RELU6", "", B),
            ("RELU_N1_TO_1", "", B),
            ("ABS", "AbsOptions", B),
            ("EXP", "ExpOptions", Q(3.0, -128)),
            ("GELU", "GeluOptions", B),
        ):
            fields: dict[str, Any] = {"Alpha": 0.1} if op_type == "LEAKY_RELU" else {}
            name = f"int8 {scale.scale:g}"
            x, out = i8("a", (256,), scale), i8("y", (256,), y)
            cases.add(name, op_type, [x], [out], table, every_byte, **fields)
    for op_type in ("LOGISTIC", "TANH", "SQRT", "RSQRT", "LOG", "SIN", "NEG", "HARD_SWISH"):
        cases.add("float", op_type, [f32("a", IMAGE)], [f32("y", IMAGE)], source=positive)
    for scale in (Q(2.0**-12, 0), Q(0.0003, 0)):
        words, name = i16("a", (200,), scale), f"int16 {scale.scale:g}"
        for op_type, y in (("LOGISTIC", INT16_UNIT), ("TANH", INT16_UNIT), ("RELU", INT16)):
            cases.add(name, op_type, [words], [i16("y", (200,), y)])
        cases.add(name, "LEAKY_RELU", [words], [i16("y", (200,))], "LeakyReluOptions", Alpha=0.1)
    words = i16("a", (5, 10))
    cases.add("int16", "SOFTMAX", [words], [i16("y", (5, 10), INT16_UNIT)], "SoftmaxOptions", Beta=1.0)
    for depth in (1, 4, 300):
        row, soft = i8("a", (3, depth)), i8("y", (3, depth), PROBABILITY)
        cases.add(f"int8 {depth}", "SOFTMAX", [row], [soft], "SoftmaxOptions", Beta=1.0)
    cases.add("float", "SOFTMAX", [f32("a", (3, 9))], [f32("y", (3, 9))], "SoftmaxOptions", Beta=0.5)
    cases.add("int8", "LOG_SOFTMAX", [i8("a", (3, 7))], [i8("y", (3, 7), Q(16 / 256, 127))])
    cases.add("float", "L2_NORMALIZATION", [f32("a", (3, 7))], [f32("y", (3, 7))], "L2NormOptions")


def convolutions(cases: Cases) -> None:
    for padding, extents in ((0, (4, 3)), (1, (3, 2))):
        window: dict[str, Any] = {
            "Padding": padding,
            "StrideH": 2,
            "StrideW": 2,
            "FusedActivationFunction": 1,
        }
        x, y, z = i8("x", (1, 7, 6, 3)), i8("y", (1, *extents, 6), Q(0.9, 11)), (1, 7, 6, 3)
        w = weights("w", (6, 3, 3, 3), per_channel(6, 0))
        cases.add(f"int8 {padding}", "CONV_2D", [x, w, bias(6)], [y], "Conv2DOptions", **window)
        words = [i16("x", z), w, bias(6, "int64")]
        out = i16("y", (1, *extents, 6), Q(0.003, 0))
        cases.add(f"int16 {padding}", "CONV_2D", words, [out], "Conv2DOptions", **window)
        floats = [f32("x", z), reals("w", 6, 3, 3, 3), reals("b", 6)]
        cases.add(
            f"float {padding}", "CONV_2D", floats, [f32("y", (1, *extents, 6))], "Conv2DOptions", **window
        )
        deep = weights("w", (1, 3, 3, 6), per_channel(6, 3))
        table, window = "DepthwiseConv2DOptions", {**window, "DepthMultiplier": 2}
        cases.add(f"int8 {padding}", "DEPTHWISE_CONV_2D", [x, deep, bias(6)], [y], table, **window)
        words = [i16("x", z), deep, bias(6, "int64")]
        cases.add(f"int16 {padding}", "DEPTHWISE_CONV_2D", words, [out], table, **window)
        sizes = (1, 8, 6, 4) if padding == 0 else (1, 9, 8, 4)
        spread = weights("w", (4, 3, 4, 2), per_channel(4, 0))
        small = [ints("s", *sizes), spread, i8("x", (1, 4, 3, 2)), bias(4)]
        stride: dict[str, Any] = {"Padding": padding, "StrideH": 2, "StrideW": 2}
        table = "TransposeConvOptions"
        cases.add(f"int8 {padding}", "TRANSPOSE_CONV", small, [i8("y", sizes, Q(0.9, 11))], table, **stride)
    dilated: dict[str, Any] = {
        "Padding": 1,
        "StrideH": 1,
        "StrideW": 1,
        "DilationHFactor": 2,
        "DilationWFactor": 2,
    }
    w = weights("w", (6, 3, 2, 3), per_channel(6, 0))
    x, y = i8("x", (2, 9, 8, 3)), i8("y", (2, 5, 6, 6), Q(0.9, 11))
    cases.add("int8 dilated", "CONV_2D", [x, w, bias(6)], [y], "Conv2DOptions", **dilated)
    grouped = [i8("x", (1, 9, 8, 6)), weights("w", (4, 3, 2, 3), per_channel(4, 0)), bias(4)]
    plain: dict[str, Any] = {"Padding": 1, "StrideH": 1, "StrideW": 1}
    cases.add(
        "int8 groups", "CONV_2D", grouped, [i8("y", (1, 7, 7, 4), Q(0.9, 11))], "Conv2DOptions", **plain
    )
    unsigned = Value.constant(
        "w", np.random.default_rng(1).integers(0, 256, (6, 3, 3, 3), np.uint8), Q(0.02, 110)
    )
    old = [Value("x", (1, 7, 6, 3), "uint8", Q(0.05, 120)), unsigned, bias(6)]
    cases.add(
        "uint8", "CONV_2D", old, [Value("y", (1, 5, 4, 6), "uint8", Q(0.9, 100))], "Conv2DOptions", **plain
    )


def volumes(cases: Cases) -> None:
    """TensorFlow Lite has them in float alone."""
    for padding, extents in ((0, (3, 3, 4)), (1, (2, 3, 2))):
        window: dict[str, Any] = {"Padding": padding, "StrideD": 2, "StrideH": 2, "StrideW": 1}
        x, y = f32("x", (2, 5, 6, 4, 3)), f32("y", (2, *extents, 4))
        floats = [x, reals("w", 2, 2, 3, 3, 4), reals("b", 4)]
        table = "Conv3DOptions"
        cases.add(f"float {padding}", "CONV_3D", floats, [y], table, **window, FusedActivationFunction=1)
        sizes = (2, 4, 6, 5, 2) if padding else (2, 4, 6, 3, 2)
        back = [ints("s", *sizes), reals("w", 2, 2, 3, 2, 3), f32("x", (2, 2, 3, 3, 3)), reals("b", 2)]
        cases.add(f"float {padding}", "CONV_3D_TRANSPOSE", back, [f32("y", sizes)], table, **window)
    dilated: dict[str, Any] = {
        "Padding": 0,
        "StrideD": 1,
        "StrideH": 1,
        "StrideW": 1,
        "DilationDFactor": 2,
        "DilationHFactor": 2,
    }
    operands = [f32("x", (1, 5, 6, 4, 3)), reals("w", 3, 3, 3, 3, 4)]
    cases.add("float dilated", "CONV_3D", operands, [f32("y", (1, 5, 6, 4, 4))], "Conv3DOptions", **dilated)


def products(cases: Cases) -> None:
    table = "FullyConnectedOptions"
    w = weights("w", (7, 10), Q(0.02, 0))
    cases.add("int8", "FULLY_CONNECTED", [i8("x", (2, 10)), w, None], [i8("y", (2, 7), B)], table)
    channels = weights("w", (7, 10), per_channel(7, 0))
    cases.add(
        "int8 channels", "FULLY_CONNECTED", [i8("x", (2, 10)), channels, bias(7)], [i8("y", (2, 7), B)], table
    )
    words = [i16("x", (2, 10)), w, bias(7, "int64")]
    cases.add("int16", "FULLY_CONNECTED", words, [i16("y", (2, 7), Q(0.001, 0))], table)
    both = [i8("x", (2, 10)), i8("w", (7, 10), Q(0.02, 0)), None]
    cases.add("int8 computed weights", "FULLY_CONNECTED", both, [i8("y", (2, 7), B)], table)
    for adjoint in (False, True):
        b = (1, 3, 6, 5) if adjoint else (1, 3, 5, 6)
        pair = [i8("x", (2, 3, 4, 5)), i8("w", b, B)]
        y = i8("y", (2, 3, 4, 6), Q(0.9, 11))
        cases.add(f"int8 {adjoint}", "BATCH_MATMUL", pair, [y], "BatchMatMulOptions", AdjY=adjoint)
    pair = [i16("x", (2, 4, 5)), i16("w", (2, 5, 6))]
    cases.add("int16", "BATCH_MATMUL", pair, [i16("y", (2, 4, 6), Q(0.003, 0))], "BatchMatMulOptions")


def pools_and_reductions(cases: Cases) -> None:
    for make, name in ((i8, "int8"), (i16, "int16")):
        for padding, extents in ((0, (4, 3)), (1, (3, 2))):
            window: dict[str, Any] = {
                "Padding": padding,
                "StrideW": 2,
                "StrideH": 2,
                "FilterWidth": 3,
                "FilterHeight": 3 - padding,
            }
            for op_type in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
                x, y = make("a", (1, 7, 6, 3)), make("y", (1, *extents, 3))
                cases.add(f"{name} {padding}", op_type, [x], [y], "Pool2DOptions", **window)
    norm: dict[str, Any] = {"Padding": 0, "StrideW": 2, "StrideH": 1, "FilterWidth": 3, "FilterHeight": 2}
    for act in (0, 3):
        operands, results = [f32("a", (1, 5, 6, 3))], [f32("y", (1, 5, 3, 3))]
        cases.add(f"float {act}", "L2_POOL_2D", operands, results, "Pool2DOptions",
                  **norm, FusedActivationFunction=act)  # fmt: skip
    for axes, shape in (((1, 2), (2, 5)), ((3,), (2, 3, 4)), ((0, 1, 2, 3), ())):
        x = i8("a", IMAGE)
        cases.add(f"int8 {axes}", "MEAN", [x, ints("x", *axes)], [i8("y", shape, B)], "ReducerOptions")
    reduced = [i16("a", IMAGE), ints("x", 1, 2)]
    cases.add("int16", "MEAN", reduced, [i16("y", (2, 5), Q(0.0006, 0))], "ReducerOptions")
    for op_type in ("REDUCE_MAX", "REDUCE_MIN"):
        operands = [i8("a", IMAGE), ints("x", 1, -1)]
        cases.add("int8", op_type, operands, [i8("y", (2, 4))], "ReducerOptions")
    for op_type, table in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
        operands = [i8("a", (3, 7)), ints("x", 1, shape=())]
        cases.add("int8", op_type, operands, [Value("y", (3,), "int32")], table, OutputType=2)


def movement(cases: Cases) -> None:
    add = cases.add
    parts = [i8("a", (2, 3, 4)), i8("b", (2, 2, 4))]
    add("int8", "CONCATENATION", parts, [i8("y", (2, 5, 4))], "ConcatenationOptions", Axis=1)
    add(
        "int8",
        "PACK",
        [i8("a", (2, 3)), i8("b", (2, 3))],
        [i8("y", (2, 2, 3))],
        "PackOptions",
        Axis=1,
        ValuesCount=2,
    )
    pieces = [i8(n, (2, 4)) for n in "yzw"]
    add("int8", "UNPACK", [i8("a", (2, 3, 4))], pieces, "UnpackOptions", Axis=1, Num=3)
    halves = [i8("y", (2, 3)), i8("z", (2, 3))]
    add("int8", "SPLIT", [ints("s", 1, shape=()), i8("a", (2, 6))], halves, "SplitOptions", NumSplits=2)
    thirds = [i8("y", (2, 1)), i8("z", (2, 3)), i8("w", (2, 2))]
    sizes = [i8("a", (2, 6)), ints("s", 1, -1, 2), ints("x", -1, shape=())]
    add("int8", "SPLIT_V", sizes, thirds, "SplitVOptions", NumSplits=3)
    place = [i8("a", IMAGE), ints("b", 0, 1, 0, 2), ints("s", 2, 2, -1, 3)]
    add("int8", "SLICE", place, [i8("y", (2, 2, 4, 3))], "SliceOptions")
    for name, begin, end, step, shape, masks in (
        ("backwards", (0, -1, 3, 0), (2, -4, 0, 5), (1, -1, -2, 2), (2, 3, 2, 3), {"BeginMask": 1}),
        ("one row", (1, 0, 0, -2), (2, 9, 4, 9), (1, 1, 1, 1), (3, 4, 2), {"ShrinkAxisMask": 1}),
        ("open", (0,) * 4, (0,) * 4, (1, -1, 1, -2), (2, 3, 4, 3), {"BeginMask": 15, "EndMask": 15}),
        ("ellipsis", (1, 0, 1), (2, 0, 4), (1, 1, 2), (1, 3, 4, 2), {"EllipsisMask": 2}),
        ("no more", (0, 2), (0, 3), (1, 1), (2, 3, 4), {"EllipsisMask": 1, "ShrinkAxisMask": 2}),
        ("new axis", (0, 1), (0, 2), (1, 1), (1, 1, 3, 4, 5), {"NewAxisMask": 1}),
        (
            "new last",
            (1, 0, 0),
            (2, 0, 0),
            (1, 1, 1),
            (3, 4, 5, 1),
            {"EllipsisMask": 2, "NewAxisMask": 4, "ShrinkAxisMask": 1},
        ),
    ):
        operands = [i8("a", IMAGE), ints("b", *begin), ints("e", *end), ints("s", *step)]
        fields: dict[str, Any] = dict(masks)
        add(name, "STRIDED_SLICE", operands, [i8("y", shape)], "StridedSliceOptions", **fields)
    border = ints("p", 0, 0, 1, 2, 0, 1, 0, 0, shape=(4, 2))
    add("int8", "PAD", [i8("a", IMAGE), border], [i8("y", (2, 6, 5, 5))], "PadOptions")
    fill = Value.constant("c", np.asarray([5], np.int8), A)
    add("int8", "PADV2", [i8("a", IMAGE), border, fill], [i8("y", (2, 6, 5, 5))], "PadV2Options")
    for mode in (0, 1):
        operands = [i8("a", (4, 5)), ints("p", 2, 1, 0, 3, shape=(2, 2))]
        add(f"int8 {mode}", "MIRROR_PAD", operands, [i8("y", (7, 8))], "MirrorPadOptions", Mode=mode)
    add(
        "int8",
        "GATHER",
        [i8("a", (3, 4, 5)), ints("i", 2, 0, 3, 3)],
        [i8("y", (3, 4, 5))],
        "GatherOptions",
        Axis=1,
    )
    add(
        "int8",
        "TRANSPOSE",
        [i8("a", IMAGE), ints("p", 0, 3, 1, 2)],
        [i8("y", (2, 5, 3, 4))],
        "TransposeOptions",
    )
    add(
        "int8",
        "SPACE_TO_DEPTH",
        [i8("a", (1, 4, 6, 3))],
        [i8("y", (1, 2, 3, 12))],
        "SpaceToDepthOptions",
        BlockSize=2,
    )
    add(
        "int8",
        "DEPTH_TO_SPACE",
        [i8("a", (1, 2, 3, 12))],
        [i8("y", (1, 4, 6, 3))],
        "DepthToSpaceOptions",
        BlockSize=2,
    )
    blocks = [i8("a", (2, 4, 5, 3)), ints("b", 2, 3), ints("p", 0, 0, 1, 0, shape=(2, 2))]
    add("int8", "SPACE_TO_BATCH_ND", blocks, [i8("y", (12, 2, 2, 3))], "SpaceToBatchNDOptions")
    blocks = [i8("a", (12, 2, 2, 3)), ints("b", 2, 3), ints("p", 0, 1, 1, 0, shape=(2, 2))]
    add("int8", "BATCH_TO_SPACE_ND", blocks, [i8("y", (2, 3, 5, 3))], "BatchToSpaceNDOptions")
    for corners, centres in ((False, False), (True, False), (False, True)):
        grid: dict[str, Any] = {"AlignCorners": corners, "HalfPixelCenters": centres}
        for op_type, table in (
            ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
            ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
        ):
            for make in (i8, i16, f32):
                operands = [make("a", (1, 3, 5, 2)), ints("s", 7, 4)]
                name = f"{make.__name__} {int(corners)}{int(centres)}"
                add(name, op_type, operands, [make("y", (1, 7, 4, 2))], table, **grid)
    lengths = Value.constant("l", np.array([3, 1], np.int32))
    reverse: dict[str, Any] = {"SeqDim": 1, "BatchDim": 0}
    add("float", "REVERSE_SEQUENCE", [f32("a", (2, 4, 3)), lengths], [f32("y", (2, 4, 3))],
        "ReverseSequenceOptions", **reverse)  # fmt: skip
    places = [ints("i", 4, 1, 4, shape=(3, 1)), f32("a", (3, 2)), ints("s", 6, 2)]
    add("float", "SCATTER_ND", places, [f32("y", (6, 2))], "ScatterNdOptions")
    for name, at in (("inside", (1, 2)), ("beyond", (9, -4))):
        block = [f32("a", (4, 5)), f32("b", (2, 2)), ints("i", *at)]
        add(f"float {name}", "DYNAMIC_UPDATE_SLICE", block, [f32("y", (4, 5))], "DynamicUpdateSliceOptions")
    chosen = [Value("c", (5,), "bool"), i8("a", (3, 5)), i8("b", (3, 1))]
    add("int8", "SELECT_V2", chosen, [i8("y", (3, 5))], "SelectV2Options")
    for name, x, y in (
        ("rescale", i8("a", IMAGE, B), i8("y", IMAGE)),
        ("from uint8", Value("a", IMAGE, "uint8", Q(0.05, 131)), i8("y", IMAGE)),
        ("to uint8", i8("a", IMAGE), Value("y", IMAGE, "uint8", Q(0.02, 100))),
        ("from int16", i16("a", IMAGE, Q(0.002, 0)), i8("y", IMAGE)),
        ("from float", f32("a", IMAGE), i8("y", IMAGE)),
    ):
        add(name, "QUANTIZE", [x], [y], "QuantizeOptions")
    add("int8", "DEQUANTIZE", [i8("a", IMAGE)], [f32("y", IMAGE)], "DequantizeOptions")


def recurrent(cases: Cases) -> None:
    for rank in (1, 2):
        filters = 4 * rank
        state = Value("state", (2, 6 * filters), "float32", variable=True)
        operands = [f32("x", (2, 5)), reals("wf", filters, 5), reals("wt", filters, 6), reals("b", 4), state]
        cases.add(f"float {rank}", "SVDF", operands, [f32("y", (2, 4))], "SVDFOptions", runs=8, Rank=rank)
        time = np.random.default_rng(rank).integers(-9000, 9000, (filters, 6)).astype(np.int16)
        whole = [
            i8("x", (2, 5)),
            weights("wf", (filters, 5), Q(0.01, 0)),
            Value.constant("wt", time, Q(0.0001, 0)),
            bias(4),
            Value("state", (2, 6 * filters), "int16", INT16, variable=True),
        ]
        out = [i8("y", (2, 4), Q(0.1, -128))]
        fields: dict[str, Any] = {"Rank": rank, "FusedActivationFunction": 1}
        cases.add(f"int8 {rank}", "SVDF", whole, out, "SVDFOptions", runs=8, **fields)
    for name, coupled, peephole, projection, clip in (
        ("plain", False, False, False, 0.0),
        ("clipped", False, False, False, 0.5),
        ("everything", True, True, True, 1.0),
    ):
        cells, outs = 5, 3 if projection else 5
        gates = range(1, 4) if coupled else range(4)
        lstm: list[Value | None] = [f32("x", (2, 3, 4))]
        lstm += [reals(f"w{g}", cells, 4) if g in gates else None for g in range(4)]
        lstm += [reals(f"r{g}", cells, outs) if g in gates else None for g in range(4)]
        lstm += [reals(f"p{g}", cells) if peephole and g in gates else None for g in range(3)]
        lstm += [reals(f"b{g}", cells) if g in gates else None for g in range(4)]
        lstm += [reals("pw", outs, cells), reals("pb", outs)] if projection else [None, None]
        lstm += [Value(n, (2, s), variable=True) for n, s in (("h", outs), ("c", cells))]
        cases.add(
            f"float {name}",
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            [*lstm, None, None, None, None],
            [f32("y", (2, 3, outs))],
            "UnidirectionalSequenceLSTMOptions",
            runs=3,
            FusedActivationFunction=4,
            CellClip=clip,
        )


def all_cases() -> list[TfliteCase]:
    cases = Cases()
    for family in (
        element_wise,
        activations,
        convolutions,
        volumes,
        products,
        pools_and_reductions,
        movement,
        recurrent,
    ):
        family(cases)
    return cases.found
