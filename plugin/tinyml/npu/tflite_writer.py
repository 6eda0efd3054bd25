# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Writes TFLite files: parts of a model for Vela, and small models for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import flatbuffers
import numpy as np
import tflite

from tinyml.base.lazy_dataclass import dataclass
from tinyml.importers.tflite_blocks import BLOCKWISE
from tinyml.importers.tflite_sparse import Level, Sparsity
from tinyml.ir import Array, Quant
from tinyml.ops.framework.narrow import NARROW, packed

TYPES = {
    "float32": tflite.TensorType.FLOAT32,
    "float16": tflite.TensorType.FLOAT16,
    "int2": 19,  # the schema package does not know it yet
    "int4": tflite.TensorType.INT4,
    "uint4": 20,
    "int8": tflite.TensorType.INT8,
    "uint8": tflite.TensorType.UINT8,
    "int16": tflite.TensorType.INT16,
    "int32": tflite.TensorType.INT32,
    "int64": tflite.TensorType.INT64,
    "uint32": tflite.TensorType.UINT32,
    "uint64": tflite.TensorType.UINT64,
    "bool": tflite.TensorType.BOOL,
    "resource": tflite.TensorType.RESOURCE,
}


@dataclass(frozen=True)
class Value:
    """A tensor. With ``data`` it is a constant."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    quant: Quant | None = None
    data: Array | None = None
    variable: bool = False
    signature: tuple[int, ...] = ()  # -1 for extents that the file leaves open
    blocks: tuple[str, int] | None = None  # the tensor with a scale for each block, and its elements
    sparsity: Sparsity | None = None  # then ``data`` are the values that are stored

    @staticmethod
    def constant(name: str, data: Array, quant: Quant | None = None) -> Value:
        return Value(name, data.shape, data.dtype.name, quant, data)


@dataclass(frozen=True)
class Call:
    """An operator on tensors, by name ("" is an absent one). Options: the table's name, then its fields."""

    op_type: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    table: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    custom: str = ""
    custom_options: bytes = b""
    intermediates: Sequence[str] = ()  # tensors that only say how an LSTM computes


@dataclass(frozen=True)
class Part:
    """A subgraph."""

    values: Sequence[Value]
    calls: Sequence[Call]
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()


def write(*parts: Part) -> bytes:
    """A model file with these subgraphs."""
    b = flatbuffers.Builder(1024)
    buffers: list[bytes] = [b""]
    kinds = list(dict.fromkeys((call.op_type, call.custom) for part in parts for call in part.calls))
    graphs = [_subgraph(b, part, kinds, buffers) for part in parts]
    codes = [_code(b, *kind) for kind in kinds]
    stored = [_buffer(b, content) for content in buffers]
    vectors = [_vector(b, offsets) for offsets in (codes, graphs, stored)]
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, 3)
    tflite.ModelAddOperatorCodes(b, vectors[0])
    tflite.ModelAddSubgraphs(b, vectors[1])
    tflite.ModelAddBuffers(b, vectors[2])
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


def _vector(b: Any, offsets: Sequence[int]) -> int:
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    return int(b.EndVector())


def _numbers(b: Any, values: Sequence[Any], dtype: str) -> int:
    return int(b.CreateNumpyVector(np.asarray(values, dtype)))


def _buffer(b: Any, content: bytes) -> int:
    data = b.CreateByteVector(content) if content else None
    tflite.BufferStart(b)
    if data is not None:
        tflite.BufferAddData(b, data)
    return int(tflite.BufferEnd(b))


def _code(b: Any, op_type: str, custom: str) -> int:
    name = b.CreateString(custom) if custom else None
    number = next(n for n, text in tflite.BUILTIN_OPCODE2NAME.items() if text == op_type)
    tflite.OperatorCodeStart(b)
    tflite.OperatorCodeAddDeprecatedBuiltinCode(b, min(number, 127))
    tflite.OperatorCodeAddBuiltinCode(b, number)
    tflite.OperatorCodeAddVersion(b, 1)
    if name is not None:
        tflite.OperatorCodeAddCustomCode(b, name)
    return int(tflite.OperatorCodeEnd(b))


def _subgraph(b: Any, part: Part, kinds: Sequence[tuple[str, str]], buffers: list[bytes]) -> int:
    places = {value.name: i for i, value in enumerate(part.values)} | {"": -1}
    tensors = _vector(b, [_tensor(b, value, places, buffers) for value in part.values])
    calls = _vector(b, [_operator(b, call, places, kinds) for call in part.calls])
    inputs = _numbers(b, [places[n] for n in part.inputs], "int32")
    outputs = _numbers(b, [places[n] for n in part.outputs], "int32")
    tflite.SubGraphStart(b)
    tflite.SubGraphAddTensors(b, tensors)
    tflite.SubGraphAddInputs(b, inputs)
    tflite.SubGraphAddOutputs(b, outputs)
    tflite.SubGraphAddOperators(b, calls)
    return int(tflite.SubGraphEnd(b))


def _tensor(b: Any, value: Value, places: Mapping[str, int], buffers: list[bytes]) -> int:
    place = 0
    if value.data is not None:
        kind = NARROW.get(value.dtype)
        stored = np.ascontiguousarray(value.data)
        buffers.append(stored.tobytes() if kind is None else packed(stored, kind))
        place = len(buffers) - 1
    name = b.CreateString(value.name)
    shape = _numbers(b, value.shape, "int32")
    quant = _quant(b, value.quant) if value.quant is not None else None
    if value.blocks is not None:
        quant = _blocks(b, places[value.blocks[0]], value.blocks[1])
    signature = _numbers(b, value.signature, "int32") if value.signature else None
    sparsity = _sparsity(b, value.sparsity) if value.sparsity is not None else None
    tflite.TensorStart(b)
    tflite.TensorAddShape(b, shape)
    if signature is not None:
        tflite.TensorAddShapeSignature(b, signature)
    tflite.TensorAddType(b, TYPES[value.dtype])
    tflite.TensorAddBuffer(b, place)
    tflite.TensorAddName(b, name)
    if quant is not None:
        tflite.TensorAddQuantization(b, quant)
    tflite.TensorAddIsVariable(b, value.variable)
    if sparsity is not None:
        tflite.TensorAddSparsity(b, sparsity)
    return int(tflite.TensorEnd(b))


def _sparsity(b: Any, sparsity: Sparsity) -> int:
    levels = _vector(b, [_level(b, level) for level in sparsity.levels])
    order, blocks = _numbers(b, sparsity.order, "int32"), _numbers(b, sparsity.blocks, "int32")
    tflite.SparsityParametersStart(b)
    tflite.SparsityParametersAddTraversalOrder(b, order)
    tflite.SparsityParametersAddBlockMap(b, blocks)
    tflite.SparsityParametersAddDimMetadata(b, levels)
    return int(tflite.SparsityParametersEnd(b))


def _level(b: Any, level: Level) -> int:
    tables = []
    for values in (level.segments, level.indices):
        if values is None:
            continue
        numbers = _numbers(b, values.tolist(), "int32")
        tflite.Int32VectorStart(b)
        tflite.Int32VectorAddValues(b, numbers)
        tables.append(tflite.Int32VectorEnd(b))
    tflite.DimensionMetadataStart(b)
    if tables:
        kind = tflite.SparseIndexVector.Int32Vector
        tflite.DimensionMetadataAddFormat(b, tflite.DimensionType.SPARSE_CSR)
        tflite.DimensionMetadataAddArraySegmentsType(b, kind)
        tflite.DimensionMetadataAddArraySegments(b, tables[0])
        tflite.DimensionMetadataAddArrayIndicesType(b, kind)
        tflite.DimensionMetadataAddArrayIndices(b, tables[1])
    else:
        tflite.DimensionMetadataAddDenseSize(b, level.size)
    return int(tflite.DimensionMetadataEnd(b))


def _quant(b: Any, quant: Quant) -> int:
    scales = _numbers(b, quant.scales, "float32")
    zeros = _numbers(b, quant.zero_points, "int64")
    tflite.QuantizationParametersStart(b)
    tflite.QuantizationParametersAddScale(b, scales)
    tflite.QuantizationParametersAddZeroPoint(b, zeros)
    tflite.QuantizationParametersAddQuantizedDimension(b, quant.axis or 0)
    return int(tflite.QuantizationParametersEnd(b))


def _blocks(b: Any, scales: int, size: int) -> int:
    b.StartObject(3)
    for slot, number in enumerate((scales, -1, size)):
        b.PrependInt32Slot(slot, number, 0)
    details = b.EndObject()
    tflite.QuantizationParametersStart(b)
    tflite.QuantizationParametersAddDetailsType(b, BLOCKWISE)
    tflite.QuantizationParametersAddDetails(b, details)
    return int(tflite.QuantizationParametersEnd(b))


def _operator(b: Any, call: Call, places: Mapping[str, int], kinds: Sequence[tuple[str, str]]) -> int:
    inputs = _numbers(b, [places[n] for n in call.inputs], "int32")
    outputs = _numbers(b, [places[n] for n in call.outputs], "int32")
    options = _options(b, call) if call.table else None
    custom = b.CreateByteVector(call.custom_options) if call.custom_options else None
    inner = _numbers(b, [places[n] for n in call.intermediates], "int32") if call.intermediates else None
    tflite.OperatorStart(b)
    if inner is not None:
        tflite.OperatorAddIntermediates(b, inner)
    if custom is not None:
        tflite.OperatorAddCustomOptions(b, custom)
    tflite.OperatorAddOpcodeIndex(b, kinds.index((call.op_type, call.custom)))
    tflite.OperatorAddInputs(b, inputs)
    tflite.OperatorAddOutputs(b, outputs)
    if options is not None:
        tflite.OperatorAddBuiltinOptionsType(b, getattr(tflite.BuiltinOptions, call.table))
        tflite.OperatorAddBuiltinOptions(b, options)
    return int(tflite.OperatorEnd(b))


def _options(b: Any, call: Call) -> int:
    fields = {}
    for name, value in call.fields.items():
        if isinstance(value, str):
            value = b.CreateString(value)
        elif isinstance(value, list | tuple):
            value = _numbers(b, value, "float32" if any(isinstance(v, float) for v in value) else "int32")
        fields[name] = value
    getattr(tflite, f"{call.table}Start")(b)
    for name, value in fields.items():
        getattr(tflite, f"{call.table}Add{name}")(b, value)
    return int(getattr(tflite, f"{call.table}End")(b))
