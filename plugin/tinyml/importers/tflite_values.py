# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Tensors of a TFLite file as IR tensors: element types, stored data, quantisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import tflite

from tinyml.base import limits
from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.importers import tflite_blocks
from tinyml.importers.tflite_blocks import Blocks
from tinyml.importers.tflite_file import TensorRecord
from tinyml.ir import Array, DType, Quant, TensorType
from tinyml.ops.framework.narrow import NARROW, Narrow, unpacked

_NAMES = {number: name for name, number in vars(tflite.TensorType).items() if isinstance(number, int)}

_STORED = {  # how an element is stored, and what it becomes
    tflite.TensorType.FLOAT32: ("<f4", DType.FLOAT32),
    tflite.TensorType.FLOAT16: ("<f2", DType.FLOAT32),  # float32 holds every float16
    tflite.TensorType.FLOAT64: ("<f8", DType.FLOAT64),
    tflite.TensorType.INT8: ("<i1", DType.INT8),
    tflite.TensorType.UINT8: ("<u1", DType.UINT8),
    tflite.TensorType.INT16: ("<i2", DType.INT16),
    tflite.TensorType.UINT16: ("<u2", DType.UINT16),
    tflite.TensorType.INT32: ("<i4", DType.INT32),
    tflite.TensorType.UINT32: ("<u4", DType.UINT32),
    tflite.TensorType.INT64: ("<i8", DType.INT64),
    tflite.TensorType.UINT64: ("<u8", DType.UINT64),
    tflite.TensorType.BOOL: ("?", DType.BOOL),
}

_INT2, _UINT4 = 19, 20  # which the schema package does not know yet
_PACKED = {tflite.TensorType.INT4: NARROW["int4"], _INT2: NARROW["int2"], _UINT4: NARROW["uint4"]}
"""Types with several elements to a byte in the file, and one in memory."""


VANISHING_SCALE = 2.0**-100
"""Replaces a scale of 0: every fixed-point multiplier made from it is 0."""


def type_of(record: TensorRecord) -> TensorType:
    """Shape, element type and quantisation of a tensor."""
    if record.type_code not in _STORED and record.type_code not in _PACKED:
        name = _NAMES.get(record.type_code, f"number {record.type_code}")
        raise UnsupportedError(
            f"tensor {record.name!r} has elements of type {name}",
            "float32, float16, integers and booleans are supported",
        )
    packed = _PACKED.get(record.type_code)
    dtype = _STORED[record.type_code][1] if packed is None else packed.holder
    shape = tuple(1 if extent == -1 else extent for extent in record.shape)  # -1: dynamic
    limits.check_shape(shape, f"tensor {record.name!r}")
    return TensorType(shape, dtype, _quant(record, dtype))


def _quant(record: TensorRecord, dtype: DType) -> Quant | None:
    quant = record.quant
    if quant is None or dtype.is_float or dtype is DType.BOOL:
        return None
    if record.data is not None and 0.0 in quant.scales:
        # Converters write scale 0 for weights that are all zero. TensorFlow Lite turns it into a multiplier
        # of 0, and so does a scale that no multiplier can express.
        quant = replace(quant, scales=tuple(scale or VANISHING_SCALE for scale in quant.scales))
    if not all(scale > 0 and np.isfinite(scale) for scale in quant.scales):
        if dtype in (DType.INT32, DType.INT64):  # a bias: its scale follows from input and weights
            return None
        raise ModelError(f"tensor {record.name!r} has a quantisation scale that is not positive")
    kind = _PACKED.get(record.type_code, dtype)
    low, high = kind.limits
    if not all(low <= zero <= high for zero in quant.zero_points):
        raise ModelError(f"tensor {record.name!r} has a zero point outside the range of {_name(kind)}")
    if quant.per_channel and record.data is None:
        raise ModelError(
            f"tensor {record.name!r} is computed and has {len(quant.scales)} scales",
            "only constants may have a scale for each channel",
        )
    axis = quant.axis
    if axis is not None and record.shape[axis : axis + 1] != (len(quant.scales),):
        raise ModelError(f"tensor {record.name!r} has {len(quant.scales)} scales that match no axis")
    return quant


def data_of(record: TensorRecord, type_: TensorType) -> Array:
    """The elements of a constant."""
    content = record.data or b""
    packed = _PACKED.get(record.type_code)
    if packed is not None:
        array = unpacked(content, packed)
        _check_packed(record, len(content), packed, int(np.prod(type_.shape, dtype=np.int64)))
    else:
        stored = np.dtype(_STORED[record.type_code][0])
        if len(content) % stored.itemsize:
            raise ModelError(f"the data of tensor {record.name!r} ends in the middle of an element")
        array = np.frombuffer(content, stored).astype(type_.dtype.numpy)
    if record.sparsity is not None:
        try:
            return record.sparsity.dense(array, type_.shape)
        except (ValueError, IndexError) as error:
            raise ModelError(
                f"tensor {record.name!r} is broken: {error}", "convert the model again"
            ) from None
    count = int(np.prod(type_.shape, dtype=np.int64))
    if array.size < count:
        raise ModelError(f"tensor {record.name!r} has data for {array.size} of its {count} elements")
    return array[:count].reshape(type_.shape)


def real_data(record: TensorRecord, blocks: Blocks, stored: Array, tensors: Sequence[TensorRecord]) -> Array:
    """What a constant with a scale for each block means; its scales are constants of the same subgraph."""
    parts = []
    for index in (blocks.scales, blocks.zero_points):
        part = None if index is None else tensors[index]
        if part is not None and part.data is None:
            raise ModelError(f"tensor {record.name!r} has scales in {part.name!r}, which is not a constant")
        parts.append(None if part is None else data_of(part, type_of(part)))
    scales, zeros = parts
    assert scales is not None
    return tflite_blocks.real(record.name, stored, blocks.size, scales, zeros)


def _check_packed(record: TensorRecord, found: int, kind: Narrow, count: int) -> None:
    needed = (count * kind.bits + 7) // 8
    if record.sparsity is None and found != needed:
        raise ModelError(
            f"tensor {record.name!r} has {found} bytes; {count} elements of {kind.name} take {needed}",
            "convert or quantise the model again",
        )


def _name(kind: DType | Narrow) -> str:
    return kind.name if isinstance(kind, Narrow) else kind.value
