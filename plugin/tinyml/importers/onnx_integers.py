# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Quantised tensors as ONNX sees them: plain integers, which only some operators give a meaning.

``Relu`` of int8 in an ONNX file is ``max(stored, 0)``, whatever the QuantizeLinear before it. In the IR an
operator on a quantised tensor computes on real numbers, so the meaning has to go before such a node.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.ir import Tensor
from tinyml.ops.framework.reading import Builder
from tinyml.ops.reshape import with_quant

KEPT = frozenset(
    """ArgMax ArgMin Compress Concat DepthToSpace DequantizeLinear Dropout Expand Flatten Gather
    GatherElements GatherND GlobalMaxPool Identity If MaxPool Pad QuantizeLinear ReduceMax ReduceMin Reshape
    Resize ReverseSequence Scan Size Shape Slice SpaceToDepth Split Squeeze Tile TopK Transpose Unsqueeze
    Upsample""".split()  # noqa: SIM905
)
"""Standard operators that do the same on stored integers and on what these mean: they move or compare."""


def operands(
    build: Builder, domain: str, op_type: str, inputs: Sequence[Tensor | None]
) -> tuple[Tensor | None, ...]:
    """The inputs as the reader of a node shall see them."""
    quantised = [tensor for tensor in inputs if tensor is not None and tensor.quant is not None]
    if not quantised or domain != "" or op_type.startswith("QLinear"):
        return tuple(inputs)  # operators of other domains name scales of their own
    types = {quantised[0].dtype}
    alike = all(t is None or t.dtype not in types or t.quant == quantised[0].quant for t in inputs)
    if op_type in ("QuantizeLinear", "DequantizeLinear") or (op_type in KEPT and (alike or op_type == "Pad")):
        return tuple(inputs)
    return tuple(None if tensor is None else with_quant(build, tensor, None) for tensor in inputs)
