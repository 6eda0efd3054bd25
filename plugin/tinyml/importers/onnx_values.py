# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the values of an ONNX graph are: declared inputs and outputs, constants and attributes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tinyml.base.errors import ConfigError, ModelError, UnsupportedError
from tinyml.importers.open_extents import closed
from tinyml.ir import DType, Shape, Tensor, TensorType
from tinyml.ops.framework.narrow import NARROW
from tinyml.ops.framework.reading import MALFORMED, Builder, dtype_of


def input_tensor(build: Builder, value: onnx.ValueInfoProto, wanted: Shape | None) -> Tensor:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        raise UnsupportedError(
            f"input {value.name!r} is not a tensor", "sequences and maps are not supported"
        )
    if not kind.HasField("shape") and wanted is None:
        raise ModelError(f"input {value.name!r} has no shape", f"set it with --shape {value.name}=1x…")
    dims = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
    senseless = [d for d in dims if d is not None and d < 1]
    if senseless and wanted is None:
        likely = "x".join("1" if d is None else str(max(d, 1)) for d in dims)
        raise ModelError(
            f"input {value.name!r} has an extent of {senseless[0]}; extents are 1 or more",
            f"give the shape: --shape {value.name}={likely}",
        )
    dims = [None if d is not None and d < 1 else d for d in dims]
    if wanted is None:
        names = [d.dim_param for d in kind.shape.dim]
        shape = closed(build, value.name, [n if d is None else d for n, d in zip(names, dims, strict=True)])
    else:
        fits = not kind.HasField("shape") or (
            len(wanted) == len(dims) and all(d in (None, w) for d, w in zip(dims, wanted, strict=True))
        )
        if not fits:
            raise ConfigError(
                f"--shape {value.name}={'x'.join(map(str, wanted))} contradicts the model, which has "
                + "x".join("?" if d is None else str(d) for d in dims)
            )
        shape = wanted
    tensor = build.tensor(value.name, TensorType(shape, dtype(kind.elem_type, value.name)))
    called = helper.tensor_dtype_to_np_dtype(kind.elem_type).name
    if called in NARROW:
        build.narrow[tensor.name] = NARROW[called]
        build.note(
            f"the input {value.name!r} is {called} in the file; the model takes a byte for each element"
        )
    return tensor


def check_declared(build: Builder, value: onnx.ValueInfoProto, tensor: Tensor) -> None:
    """Refuse a model that declares another shape for an output than its nodes compute.

    Exporters of forests and linear models write a wrong number of axes (``[N]`` for ``[N, 1]``), which
    onnxruntime accepts with a warning: where the elements can be the same, that is a note.
    """
    kind = value.type.tensor_type
    if not kind.HasField("shape") or build.open_inputs:
        return
    dims = [d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else None for d in kind.shape.dim]
    known = build.counted.get(tensor.name)
    if known is not None and known.axis < len(dims):
        dims[known.axis] = None  # what it is in some run
    agrees = len(dims) == len(tensor.shape) and all(
        d in (None, extent) for d, extent in zip(dims, tensor.shape, strict=True)
    )
    if not agrees:
        declared = "x".join("?" if d is None else str(d) for d in dims) or "a scalar"
        computed = "x".join(map(str, tensor.shape)) or "a scalar"
        total = math.prod(d for d in dims if d is not None)
        if len(dims) != len(tensor.shape) and (tensor.elements == total or None in dims):
            build.note(f"the file declares its output {value.name!r} as {declared}; it is {computed}")
            return
        raise ModelError(
            f"the model declares its output {value.name!r} as {declared}; its nodes compute {computed}",
            "run onnx.shape_inference.infer_shapes, or export the model again",
        )


def attribute_value(attribute: onnx.AttributeProto) -> Any:
    value = helper.get_attribute_value(attribute)
    if attribute.type == onnx.AttributeProto.STRING:
        return value.decode(errors="replace")
    if attribute.type == onnx.AttributeProto.STRINGS:
        return tuple(item.decode(errors="replace") for item in value)
    if attribute.type == onnx.AttributeProto.TENSOR:
        return array(value)
    return value


def check_text(node: onnx.NodeProto) -> None:
    """Text with a NUL byte would end early in C. Operators that are not supported may have binary data."""
    for attribute in node.attribute if node.op_type != "Constant" else ():
        if any(b"\0" in text for text in (attribute.s, *attribute.strings)):
            raise ModelError(
                f"{node.op_type} node {node.name or next(iter(node.output), '')!r}: "
                f"attribute {attribute.name!r} has a NUL byte",
                MALFORMED,
            )


def array(tensor: onnx.TensorProto) -> np.ndarray[Any, Any]:
    try:
        values = numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:  # such as floats stored where its type keeps integers
        raise ModelError(f"the data of tensor {tensor.name!r} cannot be read: {error}", MALFORMED) from None
    return values.astype(np.float32) if values.dtype == np.float16 else values


def dtype(code: int, name: str) -> DType:
    if code == onnx.TensorProto.UNDEFINED:
        raise ModelError(f"tensor {name!r} has no element type")
    if code == onnx.TensorProto.FLOAT16:  # computed in float32, which holds every float16
        return DType.FLOAT32
    if code == onnx.TensorProto.STRING:
        raise UnsupportedError(f"tensor {name!r} holds strings", "numbers and booleans are supported")
    try:
        called = helper.tensor_dtype_to_np_dtype(code).name
        return NARROW[called].holder if called in NARROW else dtype_of(called)
    except (KeyError, ValueError):
        raise ModelError(f"tensor {name!r} has elements of the unknown type {code}", MALFORMED) from None


def opsets(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    return {"" if o.domain == "ai.onnx" else o.domain: o.version for o in imports}
