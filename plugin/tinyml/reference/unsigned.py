# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Integer operators on uint8 alone: the one combination of types that no CPU saturates."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from tinyml.base.lazy_dataclass import dataclass
from tinyml.reference.rewriting import OFFSET, Rewriting


@dataclass(frozen=True)
class Form:
    """Where an operator has its operands, as (value, zero point), and the zero point of its output."""

    operands: tuple[tuple[int, int], ...]
    output: int | None = None


FORMS = {
    "QLinearConv": Form(((0, 2), (3, 5)), output=7),
    "QLinearMatMul": Form(((0, 2), (3, 5)), output=7),
    "QGemm": Form(((0, 2), (3, 5)), output=8),
    "ConvInteger": Form(((0, 2), (1, 3))),
    "MatMulInteger": Form(((0, 2), (1, 3))),
    "MatMulIntegerToFloat": Form(((0, 4), (1, 5))),
    "DynamicQuantizeMatMul": Form(((1, 3),)),
}


def rewrite(node: onnx.NodeProto, graph: Rewriting) -> bool:
    form = FORMS.get(node.op_type)
    if form is None:
        return False
    for value, zero in form.operands:
        name = _input(node, zero)
        if graph.type_of(name or node.input[value]) == TensorProto.INT8:
            node.input[value] = graph.unsigned(node.input[value])
            moved = graph.unsigned(name) if name else graph.constant(np.array(OFFSET, np.uint8))
            _set_input(node, zero, moved)
    graph.nodes.append(node)
    zero_point = "" if form.output is None else _input(node, form.output)
    if form.output is not None and zero_point and graph.type_of(zero_point) == TensorProto.INT8:
        result = node.output[0]
        node.input[form.output] = graph.unsigned(zero_point)
        node.output[0] = f"{result}/unsigned"
        graph.moved(node.output[0], -OFFSET, TensorProto.INT8, result)
    return True


def _input(node: onnx.NodeProto, index: int) -> str:
    return node.input[index] if index < len(node.input) else ""


def _set_input(node: onnx.NodeProto, index: int, name: str) -> None:
    node.input.extend([""] * (index + 1 - len(node.input)))
    node.input[index] = name
