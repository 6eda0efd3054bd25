# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The ONNX graph that an export collects, and the table of rules by operator that write into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tinyml.ir import Array, Layer, Op

O = TypeVar("O", bound=Op)  # noqa: E741  (an operator)


class Writer:
    """Collects the nodes and constants of the ONNX graph."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}
        self.names: set[str] = set()
        self.scope = ""

    def node(self, op_type: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """Add a node; without ``output`` its result gets a new name. Returns the result's name."""
        result = output or self.fresh(f"{self.scope}/{op_type}")
        self.node_of(op_type, inputs, [result], **attributes)
        return result

    def node_of(self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """Add a node with several outputs."""
        name = self.fresh(self.scope)
        self.nodes.append(helper.make_node(op_type, list(inputs), list(outputs), name, **attributes))

    def constant(self, values: Array, hint: str) -> str:
        name = self.fresh(f"{self.scope}/{hint}")
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def integers(self, values: Sequence[int], hint: str) -> str:
        return self.constant(np.asarray(values, np.int64), hint)

    def fresh(self, base: str) -> str:
        name, number = base, 1
        while name in self.names:
            number += 1
            name = f"{base}_{number}"
        self.names.add(name)
        return name

    def clamped(self, x: str, limits: tuple[float, float], output: str) -> None:
        """``x`` clipped to the limits, as ``output``; also valid without a limit."""
        low, high = limits
        if low == 0 and high == np.inf:
            self.node("Relu", [x], output)
        elif low == -np.inf and high == np.inf:
            self.node("Identity", [x], output)
        else:
            bounds = [
                self.constant(np.asarray(bound, np.float32), word) if np.isfinite(bound) else ""
                for bound, word in ((low, "low"), (high, "high"))
            ]
            self.node("Clip", [x, *bounds], output)


Rule = Callable[[Any, Layer, list[str], str, Writer], None]
"""Operator, its layer, names of its inputs ("" for an absent one), name of its output, where to write."""

RULES: dict[type[Op], Rule] = {}


def writes(op: type[O]) -> Callable[[Callable[[O, Layer, list[str], str, Writer], None]], Rule]:
    """Register how to write one of our operators as ONNX."""

    def register(rule: Callable[[O, Layer, list[str], str, Writer], None]) -> Rule:
        RULES[op] = rule
        return rule

    return register
