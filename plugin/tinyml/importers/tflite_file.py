# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""From the bytes of a .tflite file to plain records. All checks for broken files are here."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import flatbuffers
import numpy as np
import tflite

from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.importers import tflite_blocks, tflite_check, tflite_sparse
from tinyml.importers.tflite_blocks import Blocks
from tinyml.importers.tflite_sparse import Sparsity
from tinyml.ir import Quant
from tinyml.ops.framework.reading import BROKEN

T = TypeVar("T")


@dataclass(frozen=True)
class TensorRecord:
    """A tensor as the file has it. ``data`` is None for tensors that are computed."""

    name: str
    shape: tuple[int, ...]
    type_code: int
    quant: Quant | None
    data: bytes | None
    is_variable: bool
    sparsity: Sparsity | None
    blocks: Blocks | None = None  # then ``quant`` is None
    signature: tuple[int, ...] = ()  # like ``shape``, with -1 for extents that the model leaves open


@dataclass(frozen=True)
class OperatorRecord:
    """An operator; indices refer to the tensors of its subgraph, -1 is an absent operand."""

    op_type: str  # CONV_2D; for custom operators the name their author gave
    is_custom: bool
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Any  # table of the schema package, or None
    custom_options: bytes = b""  # of a custom operator, in whatever form its author chose


@dataclass(frozen=True)
class Subgraph:
    tensors: tuple[TensorRecord, ...]
    operators: tuple[OperatorRecord, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn the exceptions that a broken file causes into one message."""
    try:
        yield
    except BROKEN as error:
        beyond = isinstance(error, struct.error | IndexError)
        detail = "it refers to missing data" if beyond else str(error) or type(error).__name__
        raise ModelError(
            f"{path} is a broken TensorFlow Lite file: {detail}",
            "copy or convert the model again; it may be truncated",
        ) from None


def parse(path: Path, content: bytes) -> tuple[Subgraph, ...]:
    """All subgraphs of a model; the first one is the model itself."""
    with readable(path):
        tflite_check.check(content)
        model = tflite.Model.GetRootAs(content, 0)
        codes = _all(len(content), model.OperatorCodesLength(), model.OperatorCodes)
        names = [_operator_name(code) for code in codes]
        graphs = _all(len(content), model.SubgraphsLength(), model.Subgraphs)
        if not graphs:
            raise ModelError(f"{path} holds no graph", "convert the model again")
        buffers = Buffers(model, content)
        return tuple(_subgraph(buffers, graph, names, len(content)) for graph in graphs)


class Buffers:
    """The data of tensors. Those that share a buffer share its bytes here, too."""

    def __init__(self, model: Any, content: bytes) -> None:
        self.model, self.content = model, content
        self.known: dict[int, bytes | None] = {}

    def data(self, index: int) -> bytes | None:
        """None for an empty buffer, which computed tensors have."""
        if index not in self.known:
            self.known[index] = self._read(index)
        return self.known[index]

    def _read(self, index: int) -> bytes | None:
        if not 0 <= index < self.model.BuffersLength():
            raise ValueError(f"buffer {index} does not exist")
        buffer = self.model.Buffers(index)
        start, size = buffer.Offset(), buffer.Size()
        if start > 1:  # files above 2 GB keep their data after the tables
            if start + size > len(self.content):
                raise ValueError(f"buffer {index} ends after the file")
            return self.content[start : start + size]
        if buffer.DataLength() == 0:
            return None
        return bytes(buffer.DataAsNumpy().tobytes())


def _all(limit: int, count: int, item: Callable[[int], T]) -> list[T]:
    """The items of a vector; a broken file may claim billions of them."""
    if not 0 <= count <= limit:
        raise ValueError(f"a vector of {count} elements")
    return [item(i) for i in range(count)]


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


def _operator_name(code: Any) -> tuple[str, bool, int]:
    """Name, whether it is custom, version. Old files store the code in one byte, new ones in four."""
    number = max(_four_bytes(code), code.DeprecatedBuiltinCode())
    if number == tflite.BuiltinOperator.CUSTOM:
        return _text(code.CustomCode()) or "CUSTOM", True, code.Version()
    if number not in tflite.BUILTIN_OPCODE2NAME:
        return f"operator number {number}", True, code.Version()
    return tflite.BUILTIN_OPCODE2NAME[number], False, code.Version()


def _four_bytes(code: Any) -> int:
    """The field itself: ``BuiltinCode()`` ignores numbers below 127 here, but some files have no other."""
    offset = code._tab.Offset(10)
    return int(code._tab.Get(flatbuffers.number_types.Int32Flags, offset + code._tab.Pos)) if offset else 0


def _subgraph(buffers: Buffers, graph: Any, names: list[tuple[str, bool, int]], limit: int) -> Subgraph:
    tensors = _all(limit, graph.TensorsLength(), graph.Tensors)
    found = Subgraph(
        tuple(_tensor(buffers, tensor, limit, len(tensors)) for tensor in tensors),
        tuple(
            _operator(operator, names, limit, len(tensors))
            for operator in _all(limit, graph.OperatorsLength(), graph.Operators)
        ),
        _indices(graph.InputsLength(), graph.InputsAsNumpy, len(tensors)),
        _indices(graph.OutputsLength(), graph.OutputsAsNumpy, len(tensors)),
    )
    _check_sources(found)
    return found


def _check_sources(graph: Subgraph) -> None:
    """A tensor is computed once, or is an input."""
    known: set[int] = set()
    for index in (*graph.inputs, *(i for operator in graph.operators for i in operator.outputs)):
        if index in known:
            raise ValueError(f"tensor {graph.tensors[index].name!r} has more than one source")
        known.add(index)


def _numbers(count: int, vector: Callable[[], Any]) -> tuple[int, ...]:
    """The numbers of a vector, which the file may lack."""
    return tuple(vector().tolist()) if count else ()


def _indices(count: int, vector: Callable[[], Any], tensors: int) -> tuple[int, ...]:
    found = _numbers(count, vector)
    if any(not 0 <= i < tensors for i in found):
        raise ValueError("an input or output that is not a tensor")
    return found


def _tensor(buffers: Buffers, tensor: Any, limit: int, tensors: int) -> TensorRecord:
    shape = _numbers(tensor.ShapeLength(), tensor.ShapeAsNumpy)
    return TensorRecord(
        _text(tensor.Name()),
        shape,
        tensor.Type(),
        _quant(tensor.Quantization(), limit),
        buffers.data(tensor.Buffer()),
        bool(tensor.IsVariable()),
        tflite_sparse.read(tensor.Sparsity()),
        tflite_blocks.read(tensor.Quantization(), tensors),
        _numbers(tensor.ShapeSignatureLength(), tensor.ShapeSignatureAsNumpy),
    )


def _quant(parameters: Any, limit: int) -> Quant | None:
    if parameters is None or parameters.ScaleLength() == 0:
        return None
    for count in (parameters.ScaleLength(), parameters.ZeroPointLength()):
        if not 0 <= count <= limit:
            raise ValueError(f"a vector of {count} elements")
    scales = tuple(parameters.ScaleAsNumpy().astype(float).tolist())
    zeros = tuple(parameters.ZeroPointAsNumpy().tolist()) if parameters.ZeroPointLength() else ()
    if len(zeros) != len(scales):
        zeros = tuple(np.resize(np.asarray(zeros or (0,)), len(scales)).tolist())
    return Quant(scales, zeros, parameters.QuantizedDimension() if len(scales) > 1 else None)


def _operator(operator: Any, names: list[tuple[str, bool, int]], limit: int, tensors: int) -> OperatorRecord:
    op_type, is_custom, version = names[operator.OpcodeIndex()]
    inputs = _numbers(operator.InputsLength(), operator.InputsAsNumpy)
    if any(not -1 <= i < tensors for i in inputs):
        raise ValueError("an operand that is not a tensor")
    outputs = _indices(operator.OutputsLength(), operator.OutputsAsNumpy, tensors)
    custom = _custom_options(operator, limit) if is_custom else b""
    return OperatorRecord(op_type, is_custom, version, inputs, outputs, _options(operator), custom)


def _custom_options(operator: Any, limit: int) -> bytes:
    length = operator.CustomOptionsLength()
    if length > limit:
        raise ValueError(f"custom options of {length} bytes")
    return bytes(operator.CustomOptionsAsNumpy()) if length else b""


def _options(operator: Any) -> Any:
    """The options as the class of the schema package that their number names."""
    table = operator.BuiltinOptions()
    name = tflite_check.OPTIONS.get(operator.BuiltinOptionsType(), "NONE")
    if table is None or name == "NONE":
        return None
    options = getattr(tflite, name)()
    options.Init(table.Bytes, table.Pos)
    return options
