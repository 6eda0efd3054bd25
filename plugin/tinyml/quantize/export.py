"""A float graph as an ONNX model, so that models from TFLite can be quantised like all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tinyml.errors import ConfigError, UnsupportedError
from tinyml.ir import Array, DType, Graph, Layer, Op, Shape

OPSET = 17
O = TypeVar("O", bound=Op)  # noqa: E741  (an operator)


class Writer:
    """Collects the nodes and constants of the ONNX graph."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}
        self.names: set[str] = set()
        self.scope = ""

    def node(self, op_type: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """Add a node; without ``output`` its result gets a name of its own. Returns the result's name."""
        result = output or self._fresh(f"{self.scope}/{op_type}")
        self.nodes.append(
            helper.make_node(op_type, list(inputs), [result], self._fresh(self.scope), **attributes)
        )
        return result

    def constant(self, values: Array, hint: str) -> str:
        name = self._fresh(f"{self.scope}/{hint}")
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def integers(self, values: Sequence[int], hint: str) -> str:
        return self.constant(np.asarray(values, np.int64), hint)

    def _fresh(self, base: str) -> str:
        name, number = base, 1
        while name in self.names:
            number += 1
            name = f"{base}_{number}"
        self.names.add(name)
        return name

    def clamped(self, x: str, limits: tuple[float, float], output: str) -> None:
        """``x`` between the limits, as ``output``; call it also where there is no limit."""
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
    """Register how an operator of ours is written in ONNX."""

    def register(rule: Callable[[O, Layer, list[str], str, Writer], None]) -> Rule:
        RULES[op] = rule
        return rule

    return register


def to_onnx(graph: Graph) -> onnx.ModelProto:
    """The model; refuses one with integers inside, with state, or with operators not known here."""
    from tinyml.quantize import export_ops  # noqa: F401  (registers the rules)

    _refuse(graph)
    out = Writer()
    out.names |= set(graph.tensors)
    for node in graph.nodes:
        layer = graph.layer(node)
        out.scope = node.name.split(";")[0]  # TFLite joins the names of all that was fused
        names = []
        for tensor in layer.inputs:
            if tensor is not None and tensor.is_constant and tensor.name not in out.constants:
                out.constants[tensor.name] = numpy_helper.from_array(tensor.value, tensor.name)
            names.append(tensor.name if tensor is not None else "")
        RULES[type(node.op)](node.op, layer, names, layer.output.name, out)
    proto = helper.make_graph(
        out.nodes,
        graph.name,
        [_info(name, graph.tensors[name].shape, graph.tensors[name].dtype) for name in graph.inputs],
        [_info(name, graph.tensors[name].shape, graph.tensors[name].dtype) for name in graph.outputs],
        list(out.constants.values()),
    )
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def _refuse(graph: Graph) -> None:
    if any(tensor.quant is not None for tensor in graph.tensors.values()):
        raise ConfigError(
            "the model is quantised already", "compile it as it is, or quantise the float model"
        )
    if graph.states:
        raise UnsupportedError(
            "a model that keeps state between runs cannot be quantised: calibration would need sequences",
            "quantise it when it is converted to TFLite",
        )
    missing = sorted({node.op.kind for node in graph.nodes if type(node.op) not in RULES})
    if missing:
        raise UnsupportedError(
            f"quantising this TFLite model would need to write {', '.join(missing)} as ONNX",
            "convert the model to ONNX from its source, or quantise it when it is converted to TFLite",
        )


def _info(name: str, shape: Shape, dtype: DType) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype.numpy), shape)
