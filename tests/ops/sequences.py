# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sequences of a known number of tensors, which are resolved when a model is compiled."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from tests.support.cases import Case, Const, onnx_nodes_case
from tests.support.data import real
from tinyml.ir import Array

node = helper.make_node


def number(value: int) -> Const:
    return Const(np.array(value, np.int64))


def case(name: str, nodes: list[onnx.NodeProto], output: str = "y", **operands: Array | Const) -> Case:
    return onnx_nodes_case(name, nodes, operands, [output], opset=16)


SPLIT = node("SplitToSequence", ["x"], ["s"], axis=1)
THREE = [
    node("SequenceConstruct", ["x", "x", "x"], ["s"]),
    node("SequenceErase", ["s", "p"], ["t"]),
    node("SequenceInsert", ["t", "z", "p"], ["u"]),
]

CASES: list[Case] = [
    case("back", [SPLIT, node("ConcatFromSequence", ["s"], ["y"], axis=1)], x=real(2, 5)),
    case("stack", [SPLIT, node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=1)], x=real(2, 4)),
    case("one", [SPLIT, node("SequenceAt", ["s", "p"], ["y"])], x=real(2, 5), p=number(-2)),
    case(
        "without_axis",
        [
            node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=0),
            node("SequenceAt", ["s", "p"], ["y"]),
        ],
        x=real(3, 4),
        p=number(1),
    ),
    case(
        "sizes",
        [node("SplitToSequence", ["x", "n"], ["s"], axis=0), node("SequenceAt", ["s", "p"], ["y"])],
        x=real(6, 2),
        n=Const(np.array([1, 3, 2], np.int64)),
        p=number(1),
    ),
    case(
        "equal_parts",
        [
            node("SplitToSequence", ["x", "n"], ["s"], axis=0),
            node("ConcatFromSequence", ["s"], ["y"], axis=0),
        ],
        x=real(7, 2),
        n=number(3),
    ),
    case(
        "edited",
        [*THREE, node("ConcatFromSequence", ["u"], ["y"], axis=0)],
        x=real(2),
        z=real(3),
        p=number(1),
    ),
    case(
        "length",
        [*THREE, node("Identity", ["u"], ["v"]), node("SequenceLength", ["v"], ["y"])],
        x=real(2),
        z=real(3),
        p=number(-1),
    ),
    case(
        "from_nothing",
        [
            node("SequenceEmpty", [], ["s"], dtype=1),
            node("SequenceInsert", ["s", "x"], ["t"]),
            node("SequenceInsert", ["t", "z", "p"], ["u"]),
            node("ConcatFromSequence", ["u"], ["y"], axis=-1),
        ],
        x=real(2, 3),
        z=real(2, 1),
        p=number(0),
    ),
]
