"""Float model + ranges → the model with QuantizeLinear and DequantizeLinear where int8 begins and ends."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto

from tinyml.errors import ConfigError
from tinyml.quantize import runtime
from tinyml.quantize.calibrate import Ranges
from tinyml.quantize.layers import CANDIDATES

SOFTMAX_SCALE, SOFTMAX_ZERO_POINT = 1 / 256, -128
"""A softmax is between 0 and 1 whatever the calibration saw; its integer kernels know only this scale."""


def insert_qdq(model: onnx.ModelProto, ranges: Ranges, excluded: Collection[str]) -> onnx.ModelProto:
    """int8: weights per channel and symmetric, activations with a zero point, biases int32."""
    runtime.require()
    from onnxruntime.quantization import QuantType
    from onnxruntime.quantization.calibrate import CalibrationMethod, TensorsData
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
    from onnxruntime.quantization.quant_utils import save_and_reload_model_with_shape_infer

    limits = {name: (np.float32(low), np.float32(high)) for name, (low, high) in ranges.items()}
    overrides = {
        node.output[0]: [{
            "scale": np.array(SOFTMAX_SCALE, np.float32),
            "zero_point": np.array(SOFTMAX_ZERO_POINT, np.int8),
        }]
        for node in model.graph.node
        if node.op_type == "Softmax" and node.output[0] in ranges and node.name not in excluded
    }  # fmt: skip
    present = sorted({node.op_type for node in model.graph.node} & CANDIDATES)
    with runtime.quiet():
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        quantizer = QDQQuantizer(
            save_and_reload_model_with_shape_infer(copy),
            per_channel=True,
            reduce_range=False,
            weight_qType=QuantType.QInt8,
            activation_qType=QuantType.QInt8,
            tensors_range=TensorsData(CalibrationMethod.MinMax, limits),
            nodes_to_quantize=[],
            nodes_to_exclude=sorted(excluded),
            op_types_to_quantize=present,
            extra_options={"TensorQuantOverrides": overrides},
        )
        quantizer.quantize_model()
        with tempfile.TemporaryDirectory(prefix="tinyml-") as folder:
            path = Path(folder, "int8.onnx")
            quantizer.model.save_model_to_file(str(path), False)
            result = onnx.load(path)
    del result.metadata_props[:]
    result.producer_name, result.producer_version = "west-tinyml", ""
    return result


def borders(model: onnx.ModelProto) -> dict[str, str]:
    """Tensor of the float model -> the tensor of this model that holds it after its way through int8."""
    after = {node.input[0]: node.output[0] for node in model.graph.node if node.op_type == "DequantizeLinear"}
    found = {}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear":
            name = node.input[0].removesuffix("_QuantizeLinear_Input")
            found[name] = after.get(node.output[0], node.input[0])
    return found


def to_int8_interface(model: onnx.ModelProto) -> onnx.ModelProto:
    """Inputs and outputs as the int8 numbers themselves; tensors of other types stay as they are."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    changed = _int8_inputs(graph) + _int8_outputs(graph)
    if not changed:
        raise ConfigError(
            "no input or output of this model is next to an int8 layer",
            "--io float: the interface stays float",
        )
    return result


def _int8_inputs(graph: onnx.GraphProto) -> int:
    changed = 0
    for value in graph.input:
        readers = [node for node in graph.node if value.name in node.input]
        if not readers or any(node.op_type != "QuantizeLinear" for node in readers):
            continue
        stored = {node.output[0] for node in readers}
        for node in readers:
            graph.node.remove(node)
        _rename(graph, dict.fromkeys(stored, value.name))
        value.type.tensor_type.elem_type = TensorProto.INT8
        changed += 1
    return changed


def _int8_outputs(graph: onnx.GraphProto) -> int:
    changed = 0
    for value in graph.output:
        source = next((node for node in graph.node if value.name in node.output), None)
        read = any(value.name in node.input for node in graph.node)
        if source is None or source.op_type != "DequantizeLinear" or read:
            continue
        stored = source.input[0]
        if stored in {item.name for item in (*graph.input, *graph.output)}:
            continue
        graph.node.remove(source)
        _rename(graph, {stored: value.name})
        value.type.tensor_type.elem_type = TensorProto.INT8
        changed += 1
    return changed


def _rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    for node in graph.node:
        for index, name in enumerate(node.input):
            node.input[index] = names.get(name, name)
        for index, name in enumerate(node.output):
            node.output[index] = names.get(name, name)
    infos = [info for info in graph.value_info if info.name not in names and info.name not in names.values()]
    del graph.value_info[:]
    graph.value_info.extend(infos)
