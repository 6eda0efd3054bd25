# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite files that must be refused: senseless models, and good models with one number overwritten."""
# ruff: noqa: E501 (one case to a line)

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import numpy as np
import tflite

from tests.invalid.onnx_files import Made, ones
from tests.support import stateful
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.ir import Array, Quant

BEYOND = 0x7FFFFFF0


def _relu(x: Value | None = None, y: Value | None = None) -> bytes:
    values = [x or Value("x", (1, 4)), y or Value("y", (1, 4))]
    return write(Part(values, [Call("RELU", ["x"], ["y"])], ["x"], ["y"]))


def _dense(weights: Value | None = None, bias: Value | None = None) -> bytes:
    values = [
        Value("x", (1, 4)),
        Value("y", (1, 3)),
        weights or Value.constant("w", ones(3, 4)),
        bias or Value.constant("b", ones(3)),
    ]
    call = Call("FULLY_CONNECTED", ["x", "w", "b"], ["y"], "FullyConnectedOptions")
    return write(Part(values, [call], ["x"], ["y"]))


def _reshape() -> bytes:
    call = Call("RESHAPE", ["x"], ["y"], "ReshapeOptions", {"NewShape": [2, 2]})
    return write(Part([Value("x", (1, 4)), Value("y", (2, 2))], [call], ["x"], ["y"]))


def _patched(content: bytes, position: int, form: str, number: int) -> bytes:
    found = bytearray(content)
    struct.pack_into(form, found, position, number)
    return bytes(found)


def _field(table: Any, slot: int) -> int:
    """The position of a table's field in the file."""
    offset = table._tab.Offset(4 + 2 * slot)
    assert offset, "a default value is not stored"
    return int(table._tab.Pos + offset)


def _target(content: bytes, position: int) -> int:
    """Where the pointer at a position leads."""
    return int(position + struct.unpack_from("<I", content, position)[0])


def _index(content: bytes, table: Any) -> int:
    """The position of the index of a table's fields."""
    return int(table._tab.Pos - struct.unpack_from("<i", content, table._tab.Pos)[0])


def _encoding() -> dict[str, Made]:
    """Pointers, lengths and fields that leave the file or their table."""
    good = _relu()
    model = tflite.Model.GetRootAs(good, 0)
    graph = model.Subgraphs(0)
    tensor, operator = graph.Tensors(0), graph.Operators(0)
    broken = "is a broken TensorFlow Lite file"
    reshape = _reshape()
    reshaping = tflite.Model.GetRootAs(reshape, 0).Subgraphs(0).Operators(0)
    kind = _field(reshaping, 3)
    options = tflite.ReshapeOptions()
    options.Init(reshape, _target(reshape, _field(reshaping, 4)))
    subgraphs = _field(model, 2)
    name, shape = _field(tensor, 3), _field(tensor, 0)
    many = _shared(300)
    return {
        "truncated": (good[: len(good) // 2], broken),
        "magic_only": (good[:8], broken),
        "root_beyond": (_patched(good, 0, "<I", BEYOND), "a table Model is at byte"),
        "index_beyond": (_patched(good, graph._tab.Pos, "<i", -BEYOND), "the index of a table SubGraph is at byte"),
        "index_before": (_patched(good, graph._tab.Pos, "<i", BEYOND), "the index of a table SubGraph is at byte"),
        "index_too_long": (_patched(good, _index(good, graph), "<H", 65000), "does not fit the file"),
        "table_too_long": (_patched(good, _index(good, graph) + 2, "<H", 65000), "does not fit the file"),
        "field_beyond": (_patched(good, _index(good, tensor) + 4 + 2 * 3, "<H", 500), "the field Name is outside its table Tensor"),
        "field_on_index": (_patched(good, _index(good, tensor) + 4 + 2 * 3, "<H", 1), "the field Name is outside its table Tensor"),
        "name_beyond": (_patched(good, name, "<I", BEYOND), "Tensor.Name is at byte"),
        "name_too_long": (_patched(good, _target(good, name), "<I", BEYOND), "Tensor.Name has 2,147,483,632 elements"),
        "shape_too_long": (_patched(good, _target(good, shape), "<I", BEYOND), "Tensor.Shape has 2,147,483,632 elements"),
        "subgraphs_too_many": (_patched(good, _target(good, subgraphs), "<I", 1 << 20), "Model.Subgraphs has 1,048,576 elements"),
        "subgraphs_none": (_patched(good, _target(good, subgraphs), "<I", 0), "holds no graph"),
        "operator_beyond": (_patched(good, _target(good, _field(graph, 3)) + 4, "<I", BEYOND), "a table Operator is at byte"),
        "options_beyond": (_patched(reshape, _field(reshaping, 4), "<I", BEYOND), "a table ReshapeOptions is at byte"),
        "options_vector": (_patched(reshape, _target(reshape, _field(options, 0)), "<I", BEYOND), "ReshapeOptions.NewShape has"),
        "options_of_another": (_patched(reshape, kind, "<B", tflite.BuiltinOptions.Pool2DOptions), "Pool2DOptions"),
        "operand_missing": (_patched(good, _target(good, _field(operator, 1)) + 4, "<i", 77), "an operand that is not a tensor"),
        "result_missing": (_patched(good, _target(good, _field(operator, 2)) + 4, "<i", -1), "not a tensor"),
        "input_missing": (_patched(good, _target(good, _field(graph, 1)) + 4, "<i", 77), "an input or output that is not a tensor"),
        "shared_too_often": (many, "its tables are shared more often"),
        **{f"shared_{what}": (_shared_vector(what), "its vectors are shared more often") for what in ("shape", "scale", "data", "offset")},
    }  # fmt: skip


def _shared(count: int) -> bytes:
    """``count`` subgraphs, all of them one with ``count`` tensors, all of them one: a small file, a long read."""
    import flatbuffers

    b = flatbuffers.Builder(1024)
    tflite.TensorStart(b)
    tensor = tflite.TensorEnd(b)

    def repeated(offset: int) -> int:
        b.StartVector(4, count, 4)
        for _ in range(count):
            b.PrependUOffsetTRelative(offset)
        return int(b.EndVector())

    tensors = repeated(tensor)
    tflite.SubGraphStart(b)
    tflite.SubGraphAddTensors(b, tensors)
    graphs = repeated(tflite.SubGraphEnd(b))
    tflite.ModelStart(b)
    tflite.ModelAddSubgraphs(b, graphs)
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


def _shared_vector(what: str) -> bytes:
    """A hundred tensors with one long shape or one list of scales, or buffers with the same data."""
    import flatbuffers

    b, count, elements = flatbuffers.Builder(1024), 100, 10_000

    def table(kind: str, **members: int) -> int:
        getattr(tflite, f"{kind}Start")(b)
        for name, value in members.items():
            getattr(tflite, f"{kind}Add{name}")(b, value)
        return int(getattr(tflite, f"{kind}End")(b))

    def tables(offsets: list[int]) -> int:
        b.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            b.PrependUOffsetTRelative(offset)
        return int(b.EndVector())

    vector = b.CreateNumpyVector(ones(elements))
    tensor, buffer = {}, {}
    match what:
        case "shape":
            tensor = {"Shape": vector}
        case "scale":
            tensor = {"Quantization": table("QuantizationParameters", Scale=vector)}
        case "data":
            buffer = {"Data": vector}
        case _:
            buffer = {"Offset": 8, "Size": 4 * elements}
    tensors = tables([table("Tensor", Buffer=i, **tensor) for i in range(count)])
    buffers = tables([table("Buffer", **buffer) for _ in range(count)])
    graphs = tables([table("SubGraph", Tensors=tensors)])
    b.Finish(table("Model", Subgraphs=graphs, Buffers=buffers), b"TFL3")
    return bytes(b.Output())


def _models() -> dict[str, Made]:
    """Files that are well encoded and describe no model."""
    int8 = Value("x", (1, 4), "int8", Quant((0.5,), (0,)))
    weights = Value.constant("w", np.ones((3, 4), np.int8))

    def scaled(*scales: float, zero: int = 0) -> bytes:
        quant = Quant(scales, (zero,) * len(scales), 1 if len(scales) > 1 else None)
        x = replace(int8, quant=quant)
        return _relu(x, replace(int8, name="y"))

    integers = _relu(Value("x", (1, 4), "int32"), Value("y", (1, 4), "int32"))
    tensor = tflite.Model.GetRootAs(integers, 0).Subgraphs(0).Tensors(0)
    good = _relu()
    result = tflite.Model.GetRootAs(good, 0).Subgraphs(0).Operators(0)
    dense = _dense()
    buffer = tflite.Model.GetRootAs(dense, 0).Subgraphs(0).Tensors(2)
    itself = stateful.average()
    call = tflite.Model.GetRootAs(itself, 0).Subgraphs(0).Operators(0)
    once = tflite.CallOnceOptions()
    once.Init(itself, _target(itself, _field(call, 4)))
    custom = write(
        Part(
            [Value("x", (1, 4)), Value("y", (1, 4))],
            [Call("CUSTOM", ["x"], ["y"], custom="Mine")],
            ["x"],
            ["y"],
        )
    )
    return {
        "scale_0": (scaled(0.0), "scale that is not positive"),
        "scale_negative": (scaled(-1.0), "scale that is not positive"),
        "scale_nan": (scaled(float("nan")), "scale that is not positive"),
        "scale_infinite": (scaled(float("inf")), "scale that is not positive"),
        "scales_too_many": (_dense(replace(weights, quant=Quant((0.5, 0.5), (0, 0), 0))), "2 scales that match no axis"),
        "scales_of_activation": (scaled(0.5, 0.5, 0.5, 0.5), "is computed and has 4 scales"),
        "zero_point": (scaled(0.5, zero=300), "zero point outside the range"),
        "weights_too_short": (_dense(replace(Value.constant("w", ones(2, 4)), shape=(3, 4))), "has data for 8 of its 12 elements"),
        "weights_shape": (_dense(Value.constant("w", ones(3, 5))), "cannot reshape 'x'"),
        "bias_too_short": (_dense(bias=Value.constant("b", ones(2))), "one element for each output"),
        "element_cut": (_dense(replace(weights, dtype="float32", data=np.ones(13, np.int8))), "in the middle of an element"),
        "buffer_missing": (_patched(dense, _field(buffer, 2), "<I", 99), "buffer 99 does not exist"),
        "unknown_type": (_patched(integers, _field(tensor, 1), "<b", 77), "elements of type number 77"),
        "input_of_0": (_relu(Value("x", (0, 4))), "an extent of 0"),
        "input_of_minus_2": (_relu(Value("x", (-2, 4))), "an extent of -2"),
        "input_huge": (_relu(Value("x", (1 << 30, 1 << 30))), "at most"),
        "rank": (_relu(Value("x", (1,) * 40)), "40 axes, and at most 16"),
        "output_contradicts": (_relu(y=Value("y", (1, 5))), "computes 1x4, and the file declares 1x5"),
        "call_once_of_nothing": (_patched(itself, _field(once, 0), "<i", 9), "CALL_ONCE of subgraph 9"),
        "input_computed": (_patched(good, _target(good, _field(result, 2)) + 4, "<i", 0), "'x' has more than one source"),
        "empty_and_huge": (_dense(Value("w", (1 << 25, 1 << 25, 0), data=ones(1))), "at most"),
        "variable_with_data": (_dense(replace(Value.constant("w", ones(3, 4)), variable=True)), "'w' is a variable and has data"),
        "float_to_bool": (_relu(y=Value("y", (1, 4), "bool")), "RELU operator 'y' computes float32, and the file declares bool"),
        "bytes_to_float": (_relu(int8, Value("y", (1, 4))), "computes int8, and the file declares float32"),
        "words_to_bytes": (_relu(Value("x", (1, 4), "int32"), replace(int8, name="y")), "computes int32, and the file declares int8"),
        "custom_operator": (custom, "no reader for this custom operator"),
    }  # fmt: skip


def _narrow() -> dict[str, Made]:
    """Weights of four bits: sizes, blocks, scales and zero points that make no sense."""
    packed = Value("w", (3, 5), "int4", Quant((0.5,), (0,)), np.ones(15, np.int8))

    def blocks(message: str, scales: Array, size: int = 16, constant: bool = True) -> Made:
        weights = Value("w", (3, 32), "int4", None, np.ones((3, 32), np.int8), blocks=("s", size))
        scale = Value.constant("s", scales) if constant else Value("s", scales.shape)
        call = Call("FULLY_CONNECTED", ["x", "w", ""], ["y"], "FullyConnectedOptions")
        return write(
            Part([Value("x", (1, 32)), weights, scale, Value("y", (1, 3))], [call], ["x"], ["y"])
        ), message

    return {
        "int4_short": (_dense(replace(packed, data=np.ones(13, np.int8))), "has 7 bytes; 15 elements of int4 take 8"),
        "int4_long": (_dense(replace(packed, data=np.ones(30, np.int8))), "has 15 bytes; 15 elements of int4 take 8"),
        "int4_zero_point": (_dense(replace(packed, quant=Quant((0.5,), (9,)))), "zero point outside the range of int4"),
        "int4_scale": (_dense(replace(packed, quant=Quant((float("nan"),), (0,)))), "scale that is not positive"),
        "blocks_divide": blocks("do not divide it into blocks", ones(3, 3)),
        "blocks_rank": blocks("do not divide it into blocks", ones(6)),
        "blocks_size": blocks("says that a block has 8 elements", ones(3, 2), 8),
        "blocks_scale": blocks("scale that is not a finite number", ones(3, 2) * np.float32(np.nan)),
        "blocks_computed": blocks("which is not a constant", ones(3, 2), constant=False),
    }  # fmt: skip


def call_once_of_itself() -> bytes:
    """A good model whose initialising subgraph calls itself once: once is enough."""
    first = [Value("two", (1, 16), data=np.full((1, 16), 2, np.float32)), Value("handle", (), "resource")]
    shared = {"SharedName": "old"}
    again = Call("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1})
    opened = Call("VAR_HANDLE", [], ["handle"], "VarHandleOptions", shared)
    written = Call("ASSIGN_VARIABLE", ["handle", "two"], [], "AssignVariableOptions")
    main = [Value("x", (1, 16)), Value("old", (1, 16)), Value("y", (1, 16)), Value("handle", (), "resource")]
    read = Call("READ_VARIABLE", ["handle"], ["old"], "ReadVariableOptions")
    added = Call("ADD", ["x", "old"], ["y"], "AddOptions")
    kept = Call("ASSIGN_VARIABLE", ["handle", "y"], [], "AssignVariableOptions")
    return write(
        Part(main, [again, opened, read, added, kept], ["x"], ["y"]), Part(first, [again, opened, written])
    )


def smallest_scale(dtype: str) -> bytes:
    """A good model with the largest scale that a file can hold for its input, and the smallest for its output."""
    x, y = (Value(name, (1, 4), dtype, Quant((scale,), (0,))) for name, scale in (("x", 3e38), ("y", 1e-45)))
    relu6 = {"FusedActivationFunction": tflite.ActivationFunctionType.RELU6}
    calls = {"int8": Call("ADD", ["x", "x"], ["y"], "AddOptions", relu6), "int16": Call("RELU", ["x"], ["y"])}
    return write(Part([x, y], [calls[dtype]], ["x"], ["y"]))


def cases() -> dict[str, Made]:
    """All of them, by name."""
    return {f"tflite_{name}": case for name, case in (_encoding() | _models() | _narrow()).items()}
