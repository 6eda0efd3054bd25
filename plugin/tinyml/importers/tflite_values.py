# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Tensors of a TFLite file as IR tensors: element types, stored data, quantisation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import tflite

from tinyml.base import limits
from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.importers.tflite_file import TensorRecord
from tinyml.ir import Array, DType, Quant, TensorType

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
    tflite.TensorType.INT4: ("<i1", DType.INT8),  # two to a byte in the file, one in memory
}


VANISHING_SCALE = 2.0**-100
"""Replaces a scale of 0: every fixed-point multiplier made from it is 0."""


def type_of(record: TensorRecord) -> TensorType:
    """Shape, element type and quantisation of a tensor."""
    if record.type_code not in _STORED:
        name = _NAMES.get(record.type_code, f"number {record.type_code}")
        raise UnsupportedError(
            f"tensor {record.name!r} has elements of type {name}",
            "float32, float16, integers and booleans are supported",
        )
    dtype = _STORED[record.type_code][1]
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
    low, high = dtype.limits
    if not all(low <= zero <= high for zero in quant.zero_points):
        raise ModelError(f"tensor {record.name!r} has a zero point outside the range of {dtype.value}")
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
    if record.type_code == tflite.TensorType.INT4:
        array = _unpack_int4(content)
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


def _unpack_int4(content: bytes) -> Array:
    """Two elements to a byte, the lower half first, each with its own sign."""
    packed = np.frombuffer(content, np.int8).astype(np.int16)
    low, high = ((packed & 15) ^ 8) - 8, packed >> 4
    return np.stack([low, high], axis=1).reshape(-1).astype(np.int8)
