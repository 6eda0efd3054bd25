# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite operators that move, choose or convert elements: every option, all types."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.random_graphs.tflite_draw import Draw
from tests.support.tflite_writer import Value

ANY = ("float32", "int8", "uint8", "int16", "int32", "int64", "bool")
BYTES = ("float32", "int8", "uint8", "int16")


def concatenation(draw: Draw) -> None:
    dtype = draw.pick("float32", "int8", "uint8", "int16", "int32")
    shape = draw.shape(1, 2, 3, 4)
    axis = int(draw.rng.integers(-len(shape), len(shape)))
    place = axis % len(shape)
    parts: list[Value] = []
    for _ in range(draw.pick(1, 2, 3)):
        own = (*shape[:place], int(draw.rng.integers(1, 4)), *shape[place + 1 :])
        # uint8 is rescaled in float32, by LiteRT with or without a fused multiplication, as the CPU has it
        like = parts[0].quant if parts and (dtype in ("uint8", "int16") or draw.chance(0.6)) else None
        parts.append(draw.tensor(own, dtype, like))
    y = draw.output(dtype, like=parts[0] if dtype in ("uint8", "int16") or draw.chance(0.7) else None)
    fields = {"Axis": axis, "FusedActivationFunction": draw.activation}
    draw.call("CONCATENATION", parts, [y], "ConcatenationOptions", **fields)


def packing(draw: Draw) -> None:
    x = draw.tensor(draw.shape(1, 2, 3), draw.pick(*ANY))
    if draw.chance(0.5):
        other = draw.tensor(x.shape, x.dtype, x.quant)
        axis = int(draw.rng.integers(-len(x.shape) - 1, len(x.shape) + 1))
        draw.call("PACK", [x, other], [draw.output(x.dtype, like=x)], "PackOptions", Axis=axis, ValuesCount=2)
        return
    axis = int(draw.rng.integers(-len(x.shape), len(x.shape)))
    count = x.shape[axis]
    results = [draw.output(x.dtype, like=x) for _ in range(count)]
    draw.call("UNPACK", [x], results, "UnpackOptions", Axis=axis, Num=count)


def splitting(draw: Draw) -> None:
    x = draw.tensor(draw.shape(1, 2, 3, most=6), draw.pick("float32", "int8", "uint8", "int16", "int32"))
    axis = int(draw.rng.integers(-len(x.shape), len(x.shape)))
    size = x.shape[axis]
    if draw.chance(0.5):
        count = int(draw.pick(*(n for n in range(1, size + 1) if size % n == 0)))
        results = [draw.output(x.dtype, like=x) for _ in range(count)]
        place = draw.constant(np.asarray(axis, np.int32))
        draw.call("SPLIT", [place, x], results, "SplitOptions", NumSplits=count)
        return
    first = int(draw.rng.integers(0, size + 1))
    sizes = draw.pick([first, size - first], [first, -1], [-1, size - first])
    results = [draw.output(x.dtype, like=x) for _ in sizes]
    operands = [x, draw.ints(sizes), draw.constant(np.asarray(axis, np.int32))]
    draw.call("SPLIT_V", operands, results, "SplitVOptions", NumSplits=len(sizes))


def strided_slice(draw: Draw) -> None:
    x = draw.tensor(draw.shape(1, 2, 3, 4, most=6), draw.pick(*ANY))
    count = int(draw.rng.integers(1, len(x.shape) + 1))
    begins, ends = (draw.rng.integers(-7, 8, count) for _ in range(2))
    steps = draw.rng.choice([1, 1, 1, 2, 3, -1, -2], count)
    bits = 1 << count
    fields: dict[str, Any] = {
        "BeginMask": int(draw.pick(0, draw.rng.integers(bits))),
        "EndMask": int(draw.pick(0, draw.rng.integers(bits))),
        "EllipsisMask": int(draw.pick(0, 0, 0, 1 << int(draw.rng.integers(count)))),
        "NewAxisMask": int(draw.pick(0, 0, 0, draw.rng.integers(bits))),
        "ShrinkAxisMask": int(draw.pick(0, 0, draw.rng.integers(bits))),
    }
    if fields["EllipsisMask"]:
        fields["ShrinkAxisMask"] = 0  # together, LiteRT reads what is not there
    for entry in range(count):
        if fields["ShrinkAxisMask"] >> entry & 1:  # an index: others than these have no meaning
            steps[entry] = 1
            begins[entry] %= min(x.shape)
    if draw.chance(0.3):
        fields["Offset"] = True
    operands = [x, *(draw.ints([int(v) for v in values]) for values in (begins, ends, steps))]
    draw.call("STRIDED_SLICE", operands, [draw.output(x.dtype, like=x)], "StridedSliceOptions", **fields)


def slicing(draw: Draw) -> None:
    x = draw.tensor(draw.shape(1, 2, 3, 4), draw.pick(*ANY))
    begins = [int(draw.rng.integers(0, e)) for e in x.shape]
    sizes = [
        int(draw.pick(-1, draw.rng.integers(1, e - b + 1))) for e, b in zip(x.shape, begins, strict=True)
    ]
    kind = draw.pick("int32", "int64")
    operands = [x, draw.ints(begins, kind), draw.ints(sizes, kind)]
    draw.call("SLICE", operands, [draw.output(x.dtype, like=x)], "SliceOptions")


def gathering(draw: Draw) -> None:
    x = draw.tensor(draw.shape(1, 2, 3, 4), draw.pick(*ANY))
    rank, kind = len(x.shape), draw.pick("int32", "int64")
    if draw.chance(0.4):
        depth = int(draw.rng.integers(1, rank + 1))
        rows = draw.shape(1, 2, most=3)
        positions = np.stack([draw.rng.integers(0, e, rows) for e in x.shape[:depth]], -1)
        draw.call(
            "GATHER_ND",
            [x, draw.constant(positions.astype(kind))],
            [draw.output(x.dtype, like=x)],
            "GatherNdOptions",
        )
        return
    batch = int(draw.pick(0, 0, draw.rng.integers(0, rank)))
    axis = int(draw.rng.integers(batch, rank))
    shape = (*x.shape[:batch], *draw.shape(1, 2, most=3))
    size = x.shape[axis]
    indices = (
        draw.tensor(shape, kind, limits=(0, size - 1))
        if draw.chance(0.5)
        else draw.constant(draw.rng.integers(0, size, shape).astype(kind))
    )
    fields = {"Axis": draw.pick(axis, axis - rank), "BatchDims": batch}
    draw.call("GATHER", [x, indices], [draw.output(x.dtype, like=x)], "GatherOptions", **fields)


def one_hot(draw: Draw) -> None:
    kind, dtype = draw.pick("int32", "int64"), draw.pick("float32", "int32", "int8", "bool")
    depth = int(draw.rng.integers(1, 6))
    indices = draw.tensor(draw.shape(1, 2, 3), kind, limits=(-depth - 2, depth + 2))
    on, off = (draw.constant(draw.values_of((), dtype)) for _ in range(2))
    axis = int(draw.rng.integers(-1, len(indices.shape) + 1))
    operands = [indices, draw.constant(np.asarray(depth, np.int32)), on, off]
    draw.call("ONE_HOT", operands, [draw.output(dtype, like=on)], "OneHotOptions", Axis=axis)


def padding(draw: Draw) -> None:
    x = draw.tensor(draw.shape(1, 2, 3, 4), draw.pick("float32", "int8", "uint8", "int16", "int32"))
    name = draw.pick("PAD", "PADV2", "MIRROR_PAD")
    amounts = draw.rng.integers(0, 3, (len(x.shape), 2)).astype(draw.pick("int32", "int64"))
    operands, table, fields = [x, draw.constant(amounts)], "PadOptions", {}
    if name == "PADV2":
        operands.append(draw.constant(draw.values_of((1,), x.dtype), x.quant))
        table = "PadV2Options"
    elif name == "MIRROR_PAD":
        table, fields = "MirrorPadOptions", {"Mode": draw.pick(0, 1)}
    draw.call(name, operands, [draw.output(x.dtype, like=x)], table, **fields)


def arranging(draw: Draw) -> None:
    name = draw.pick(
        "TRANSPOSE", "TILE", "EXPAND_DIMS", "SQUEEZE", "REVERSE_V2", "BROADCAST_TO", "RESHAPE", "CUMSUM"
    )
    x = draw.tensor(
        draw.shape(1, 2, 3, 4),
        draw.pick(*ANY) if name != "CUMSUM" else draw.pick("float32", "int32", "int64"),
    )
    y, rank = draw.output(x.dtype, like=x), len(x.shape)
    if name == "TRANSPOSE":
        draw.call(name, [x, draw.ints([int(a) for a in draw.rng.permutation(rank)])], [y], "TransposeOptions")
    elif name == "TILE":
        draw.call(name, [x, draw.ints([int(n) for n in draw.rng.integers(1, 4, rank)])], [y], "TileOptions")
    elif name == "EXPAND_DIMS":
        axis = draw.constant(np.asarray(int(draw.rng.integers(-rank - 1, rank + 1)), np.int32))
        draw.call(name, [x, axis], [y], "ExpandDimsOptions")
    elif name == "SQUEEZE":
        axes = [a for a, e in enumerate(x.shape) if e == 1 and draw.chance(0.7)]
        draw.call(name, [x], [y], "SqueezeOptions", SqueezeDims=axes)
    elif name == "REVERSE_V2":
        draw.call(name, [x, draw.ints([int(draw.rng.integers(-rank, rank))])], [y], "ReverseV2Options")
    elif name == "BROADCAST_TO":
        shape = [
            *draw.shape(1, 2, most=2)[: draw.pick(0, 1)],
            *(e if e > 1 else int(draw.rng.integers(1, 4)) for e in x.shape),
        ]
        draw.call(name, [x, draw.ints(shape)], [y], "BroadcastToOptions")
    elif name == "RESHAPE":
        draw.call(name, [x, draw.ints(draw.pick([-1], [1, -1], [*x.shape[::-1]]))], [y], "ReshapeOptions")
    else:
        axis = draw.constant(np.asarray(int(draw.rng.integers(-rank, rank)), np.int32))
        fields = {"Exclusive": draw.chance(0.5), "Reverse": draw.chance(0.5)}
        draw.call(name, [x, axis], [y], "CumsumOptions", **fields)


def blocks(draw: Draw) -> None:
    name = draw.pick(
        "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "REVERSE_SEQUENCE"
    )
    dtype = draw.pick("float32", "int8", "uint8", "int32")
    block = draw.pick(2, 3)
    small = [int(e) for e in draw.rng.integers(1, 4, 2)]
    if name == "REVERSE_SEQUENCE":
        x = draw.tensor((3, 4, 2), dtype)
        axes = draw.pick((0, 1), (1, 0), (2, 1))
        lengths = draw.ints([int(n) for n in draw.rng.integers(1, x.shape[axes[1]] + 1, x.shape[axes[0]])])
        draw.call(
            name,
            [x, lengths],
            [draw.output(dtype, like=x)],
            "ReverseSequenceOptions",
            BatchDim=axes[0],
            SeqDim=axes[1],
        )
        return
    if name == "SPACE_TO_DEPTH":
        x = draw.tensor((1, small[0] * block, small[1] * block, 3), dtype)
        draw.call(name, [x], [draw.output(dtype, like=x)], "SpaceToDepthOptions", BlockSize=block)
    elif name == "DEPTH_TO_SPACE":
        x = draw.tensor((1, *small, block * block * 2), dtype)
        draw.call(name, [x], [draw.output(dtype, like=x)], "DepthToSpaceOptions", BlockSize=block)
    elif name == "SPACE_TO_BATCH_ND":
        x = draw.tensor((draw.pick(1, 2), small[0] * block - 1, small[1] * block - 1, 2), dtype)
        before = draw.rng.integers(0, 2, 2)
        pads = draw.constant(np.stack([before, 1 - before], 1).astype(np.int32))
        draw.call(
            name, [x, draw.ints([block, block]), pads], [draw.output(dtype, like=x)], "SpaceToBatchNDOptions"
        )
    else:
        x = draw.tensor((block * block, *small, 2), dtype)
        crops = draw.constant(draw.rng.integers(0, 2, (2, 2)).astype(np.int32))
        draw.call(
            name, [x, draw.ints([block, block]), crops], [draw.output(dtype, like=x)], "BatchToSpaceNDOptions"
        )


def choosing(draw: Draw) -> None:
    name = draw.pick("ARG_MAX", "ARG_MIN", "TOPK_V2", "SELECT", "SELECT_V2", "DYNAMIC_UPDATE_SLICE")
    dtype = draw.pick("float32", "int8", "uint8", "int32")
    shape = (*draw.shape(1, 2), 2) if name.startswith("SELECT") else draw.shape(1, 2, 3)
    x = draw.tensor(shape, dtype)
    if name in ("ARG_MAX", "ARG_MIN"):
        axis = draw.constant(np.asarray(int(draw.rng.integers(-len(shape), len(shape))), np.int32))
        kind = draw.pick("int32", "int64")
        draw.call(
            name,
            [x, axis],
            [draw.output(kind)],
            "ArgMaxOptions" if name == "ARG_MAX" else "ArgMinOptions",
            OutputType=2 if kind == "int32" else 4,
        )
    elif name == "TOPK_V2":
        k = draw.constant(np.asarray(int(draw.rng.integers(1, shape[-1] + 1)), np.int32))
        draw.call(name, [x, k], [draw.output(dtype, like=x), draw.output("int32")], "TopKV2Options")
    elif name == "DYNAMIC_UPDATE_SLICE":
        kind = draw.pick("int32", "int64")
        block = draw.tensor(tuple(int(draw.rng.integers(1, e + 1)) for e in shape), dtype, x.quant)
        far = 1 << (40 if kind == "int64" else 30)
        starts = draw.tensor((len(shape),), kind, limits=draw.pick((-3, 6), (-far, far)))
        draw.call(name, [x, block, starts], [draw.output(dtype, like=x)], "DynamicUpdateSliceOptions")
    else:
        condition = draw.tensor(shape if name == "SELECT" else draw.pick(shape, shape[-1:], (1,)), "bool")
        other = draw.tensor(shape, dtype, x.quant)
        table = "SelectOptions" if name == "SELECT" else "SelectV2Options"
        draw.call(name, [condition, x, other], [draw.output(dtype, like=x)], table)


def converting(draw: Draw) -> None:
    name = draw.pick("CAST", "QUANTIZE", "QUANTIZE", "DEQUANTIZE")
    if name == "CAST":
        x = draw.tensor(draw.shape(1, 2, 3), draw.pick("float32", "int32", "int64", "bool"))
        draw.call(name, [x], [draw.output(draw.pick("float32", "int32", "int64", "bool"))], "CastOptions")
    elif name == "QUANTIZE":
        x = draw.tensor(draw.shape(1, 2, 3), draw.pick(*BYTES))
        draw.call(name, [x], [draw.output(draw.pick("int8", "uint8", "int16"))], "QuantizeOptions")
    else:
        x = draw.tensor(draw.shape(1, 2, 3), draw.pick("int8", "uint8", "int16"))
        draw.call(name, [x], [draw.output("float32")], "DequantizeOptions")


MOVEMENT = (
    *(concatenation, concatenation, packing, splitting, strided_slice, strided_slice, slicing, gathering),
    *(one_hot, padding, arranging, blocks, choosing, choosing, converting),
)
