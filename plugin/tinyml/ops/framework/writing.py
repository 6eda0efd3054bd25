# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The interface of writers in ``ops/``, which translate operators into nodes of an ONNX model.

The quantiser works on ONNX models, so it writes float models from TFLite as ONNX first. A writer is
in the same file as the readers of its operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tinyml.ir import Array, DType, Layer, Op, Tensor
from tinyml.ops.framework.registration import check_new

if TYPE_CHECKING:  # operators can be read from TFLite without importing onnx
    import onnx

O = TypeVar("O", bound=Op)  # noqa: E741  (an operator)

NO_LIMITS = (-np.inf, np.inf)

OPSET = 20
"""Of a model whose operators ask for no later one."""


class OnnxWriter:
    """Collects the nodes and constants of the ONNX graph."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}
        self.names: set[str] = set()
        self.scope = ""
        self.opset = OPSET

    def inside(self) -> OnnxWriter:
        """For the graph inside a node: nodes of its own, the same constants, and no name twice."""
        inner = OnnxWriter()
        inner.constants, inner.names, inner.opset = self.constants, self.names, self.opset
        return inner

    def since(self, opset: int) -> None:
        """What is written has operators that this opset brought."""
        self.opset = max(self.opset, opset)

    def node(self, op_type: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """Add a node; without ``output`` its result gets a new name. Returns the result's name."""
        result = output or self.fresh(f"{self.scope}/{op_type}")
        self.node_of(op_type, inputs, [result], **attributes)
        return result

    def node_of(self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """Add a node with several outputs."""
        self.named_node(self.fresh(self.scope), op_type, inputs, outputs, **attributes)

    def named_node(
        self, name: str, op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node(op_type, list(inputs), list(outputs), name, **attributes))

    def constant(self, values: Array, hint: str) -> str:
        name = self.fresh(f"{self.scope}/{hint}")
        self.add_constant(name, np.ascontiguousarray(values))
        return name

    def add_constant(self, name: str, values: Array) -> None:
        """Add a constant with a given name, once."""
        from onnx import numpy_helper

        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(values, name)

    def permuted(self, tensor: Tensor, name: str, perm: Sequence[int], hint: str) -> str:
        """A tensor that has this name with its axes in another order; a constant gets a copy."""
        if tensor.is_constant:
            return self.constant(tensor.value.transpose(perm), hint)
        return self.node("Transpose", [name], perm=list(perm))

    def integers(self, values: Sequence[int], hint: str) -> str:
        return self.constant(np.asarray(values, np.int64), hint)

    def fresh(self, base: str) -> str:
        name, number = base, 1
        while name in self.names:
            number += 1
            name = f"{base}_{number}"
        self.names.add(name)
        return name

    def clamped(self, x: str, limits: tuple[float, float], output: str, dtype: DType = DType.FLOAT32) -> None:
        """``x`` clipped to the limits, as ``output``; also valid without a limit."""
        low, high = limits
        if low == 0 and high == np.inf and dtype.is_float:
            self.node("Relu", [x], output)
        elif limits == NO_LIMITS:
            self.node("Identity", [x], output)
        else:
            if not dtype.is_float:
                low, high = (min(max(limit, dtype.limits[0]), dtype.limits[1]) for limit in limits)
            bounds = [
                self.constant(np.asarray(bound, dtype.numpy), word) if np.isfinite(bound) else ""
                for bound, word in ((low, "low"), (high, "high"))
            ]
            self.node("Clip", [x, *bounds], output)

    def spatial(self, x: str, output: str, rank: int, limits: tuple[float, float], op_type: str,
                operands: Sequence[str] = (), **attributes: Any) -> None:  # fmt: skip
        """An operator on NHWC tensors: transpose to NCHW, operator, clamp, transpose back."""
        inner = self.node("Transpose", [x], perm=[0, rank - 1, *range(1, rank - 1)])
        result = self.node(op_type, [inner, *operands], **attributes)
        if limits != NO_LIMITS:
            unlimited, result = result, f"{result}/clamped"
            self.clamped(unlimited, limits, result)
        self.node("Transpose", [result], output, perm=[0, *range(2, rank), 1])


Writer = Callable[[Any, Layer, list[str], str, OnnxWriter], None]
"""Operator, its layer, names of its inputs ("" for an absent one), name of its output, where to write."""

ONNX_WRITERS: dict[type[Op], Writer] = {}
_DOUBTS: dict[type[Op], Callable[[Layer[Any]], str | None]] = {}


def onnx_writer(
    op: type[O], doubt: Callable[[Layer[O]], str | None] | None = None
) -> Callable[[Callable[[O, Layer, list[str], str, OnnxWriter], None]], Writer]:
    """Register how an operator is written as ONNX.

    ``doubt`` is for an operator that ONNX cannot express in all cases: the quantiser then compares the
    outputs of the ONNX model with those of the original, and if they differ, reports this reason.
    """

    def register(writer: Callable[[O, Layer, list[str], str, OnnxWriter], None]) -> Writer:
        check_new(ONNX_WRITERS.get(op), writer, f"the ONNX writer of {op.__name__}")
        ONNX_WRITERS[op] = writer
        if doubt is not None:
            _DOUBTS[op] = doubt
        return writer

    return register


def doubt_about(layer: Layer) -> str | None:
    """Why the ONNX form of a layer may give other results; None if it cannot."""
    doubt = _DOUBTS.get(type(layer.op))
    return doubt(layer) if doubt is not None else None


def element_type(dtype: DType) -> int:
    """ONNX's number of an element type."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(dtype.numpy))
