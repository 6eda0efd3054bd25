# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float model + ranges → the model with QuantizeLinear and DequantizeLinear where int8 begins and ends."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import onnx

from tinyml.base.errors import ConfigError
from tinyml.importers.cell_scales import note_cell_bits
from tinyml.ops.framework.quantization_facts import integer_operators
from tinyml.quantize.activations import hide_activations, show_activations
from tinyml.quantize.calibrate import Ranges
from tinyml.quantize.choices import choices_quantized
from tinyml.quantize.loop_results import Integers
from tinyml.quantize.precision import overrides, wide_states
from tinyml.quantize.prepare import opset_of
from tinyml.quantize.recurrent import drop_unread_states, register_recurrent
from tinyml.quantize.recurrent_ranges import unread_cell_bits
from tinyml.quantize.subgraphs import keep_reads_of_bodies, outside_names
from tinyml.quantize.unbounded import bounded
from tinyml.reference import session

INT16_OPSET = 21
"""Before it, QuantizeLinear to int16 is an operator of onnxruntime."""


def insert_qdq(
    model: onnx.ModelProto,
    ranges: Ranges,
    excluded: Collection[str],
    int16: Collection[str] = (),
    given: Mapping[str, Integers] | None = None,
) -> onnx.ModelProto:
    """Weights int8, per channel and symmetric; activations int8 with a zero point, or int16 without.

    ``excluded`` nodes stay float, ``int16`` nodes read and write int16. Biases are int32.
    Tensors in ``given`` have these integers, if their readers can take them.
    """
    session.require()
    from onnxruntime.quantization import QuantType
    from onnxruntime.quantization.calibrate import CalibrationMethod, TensorsData
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
    from onnxruntime.quantization.quant_utils import save_and_reload_model_with_shape_infer

    class Quantizer(QDQQuantizer):  # type: ignore[misc]  # the base class is untyped
        def adjust_tensor_ranges(self) -> None:
            """Would give the input of a Relu the range of its output, although it may be an output too."""

    register_recurrent()
    limits = {name: (np.float32(low), np.float32(high)) for name, (low, high) in bounded(ranges).items()}
    present = sorted({node.op_type for node in model.graph.node} & integer_operators())
    with session.quiet():
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        drop_unread_states(copy)
        hidden = hide_activations(copy, ranges, excluded, int16)
        told = overrides(copy, ranges, int16, excluded, given or {})
        some_int16 = bool(int16 or wide_states(copy, ranges, excluded))
        quantizer = Quantizer(
            save_and_reload_model_with_shape_infer(copy),
            per_channel=True,
            reduce_range=False,
            weight_qType=QuantType.QInt8,
            activation_qType=QuantType.QInt8,
            tensors_range=TensorsData(CalibrationMethod.MinMax, limits),
            nodes_to_quantize=[],
            nodes_to_exclude=sorted(excluded),
            op_types_to_quantize=present,
            extra_options={
                "TensorQuantOverrides": told,
                "UseQDQContribOps": some_int16 and opset_of(model) < INT16_OPSET,
            },
        )
        with choices_quantized():
            quantizer.quantize_model()
        with tempfile.TemporaryDirectory(prefix="tinyml-") as folder:
            path = Path(folder, "int8.onnx")
            quantizer.model.save_model_to_file(str(path), False)
            result = onnx.load(path)
    show_activations(result, model, hidden)
    keep_reads_of_bodies(result, model)
    del result.metadata_props[:]
    note_cell_bits(result, unread_cell_bits(model, ranges, excluded))
    result.producer_name, result.producer_version = "west-tinyml", ""
    return result


def borders(model: onnx.ModelProto) -> dict[str, str]:
    """Tensor of the float model -> the dequantised tensor of this model."""
    after = {node.input[0]: node.output[0] for node in model.graph.node if node.op_type == "DequantizeLinear"}
    found = {}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear":
            name = node.input[0].removesuffix("_QuantizeLinear_Input")
            found[name] = after.get(node.output[0], node.input[0])
    return found


def to_int8_interface(model: onnx.ModelProto, inside: Collection[str] = ()) -> onnx.ModelProto:
    """Inputs and outputs as the stored integers; tensors of float layers stay as they are.

    Those ``inside`` are states, which are not part of the interface.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    changed = _int8_inputs(graph, inside) + _int8_outputs(graph, inside)
    if not changed:
        raise ConfigError(
            "no input or output of this model is next to an int8 layer",
            "--io float: the interface stays float",
        )
    return result


def _int8_inputs(graph: onnx.GraphProto, inside: Collection[str]) -> int:
    changed = 0
    for value in (value for value in graph.input if value.name not in inside):
        readers = _readers(graph, value.name)
        if not readers or any(node.op_type != "QuantizeLinear" for node in readers):
            continue
        stored = {node.output[0] for node in readers}
        kinds = {_stored_type(graph, node) for node in readers}
        if len(kinds) > 1:
            continue
        for node in readers:
            graph.node.remove(node)
        _rename(graph, dict.fromkeys(stored, value.name))
        value.type.tensor_type.elem_type = kinds.pop()
        changed += 1
    return changed


def _int8_outputs(graph: onnx.GraphProto, inside: Collection[str]) -> int:
    changed = 0
    for value in (value for value in graph.output if value.name not in inside):
        source = next((node for node in graph.node if value.name in node.output), None)
        read = bool(_readers(graph, value.name))
        if source is None or source.op_type != "DequantizeLinear" or read:
            continue
        stored = source.input[0]
        if stored in {item.name for item in (*graph.input, *graph.output)}:
            continue
        value.type.tensor_type.elem_type = _stored_type(graph, source)
        graph.node.remove(source)
        _rename(graph, {stored: value.name})
        changed += 1
    return changed


def _readers(graph: onnx.GraphProto, name: str) -> list[onnx.NodeProto]:
    """A node whose graphs capture the tensor reads it too."""
    return [node for node in graph.node if name in node.input or name in outside_names(node)]


def _stored_type(graph: onnx.GraphProto, node: onnx.NodeProto) -> int:
    """int8 or int16: the type of the zero point."""
    return next(tensor.data_type for tensor in graph.initializer if tensor.name == node.input[2])


def _rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    for node in graph.node:
        for index, name in enumerate(node.input):
            node.input[index] = names.get(name, name)
        for index, name in enumerate(node.output):
            node.output[index] = names.get(name, name)
    infos = [info for info in graph.value_info if info.name not in names and info.name not in names.values()]
    del graph.value_info[:]
    graph.value_info.extend(infos)
