"""A float graph as an ONNX model, so that models from TFLite can be quantised like all others."""

from __future__ import annotations

import onnx
from onnx import helper, numpy_helper

from tinyml.errors import ConfigError, UnsupportedError
from tinyml.ir import DType, Graph, Shape
from tinyml.quantize import export_ops  # noqa: F401  (registers the rules)
from tinyml.quantize.export_writer import RULES, Writer

OPSET = 17


def to_onnx(graph: Graph) -> onnx.ModelProto:
    """The model; refuses one with integers inside, with state, or with operators not known here."""
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
