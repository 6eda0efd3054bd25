# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Prepares a float model for the quantiser: fixed shapes, folded constants, names for all nodes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tinyml.base.errors import ConfigError, ModelError, TinymlError, UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.datasets.shaping import Input
from tinyml.importers import ModelFile, onnx_model, read
from tinyml.importers.growing_states import growing_model
from tinyml.importers.states import Remembered, states_of, without_states
from tinyml.ir import Array, Graph, Shape, State
from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.ops.framework.reading import dtype_of
from tinyml.passes import PASSES
from tinyml.passes.fuse_normalize import fuse_normalize
from tinyml.passes.keep_last_step import keep_last_step
from tinyml.passes.remove_dead_code import remove_dead_code
from tinyml.passes.roll_recurrent import roll_recurrent
from tinyml.quantize import export, export_check
from tinyml.quantize.biases import own_biases, plain_biases, refuse_infinite_weights
from tinyml.quantize.constants import constants
from tinyml.quantize.mask_order import mask_last
from tinyml.quantize.norm_factors import fold_norm_factors
from tinyml.quantize.own_operators import NOTHING, Cut, cut
from tinyml.quantize.report import Report
from tinyml.quantize.reserved import avoid_reserved_names
from tinyml.quantize.score_factors import move_key_factors
from tinyml.quantize.subgraphs import graphs_inside
from tinyml.reference import session
from tinyml.reference.halves import widen

OPSET = 13
"""The oldest opset in which weights can be quantised per channel."""

FOUR_BITS_OPSET = 21
"""The first in which DequantizeLinear takes integers of four bits."""

LOOPS = ("Loop", "Scan")

IN_PARTS = ("Attention", "Erfc", *LOOPS)
"""Operators that become others when they are read."""

INTEGER_OPERATORS = ("QuantizeLinear", "DequantizeLinear", "ConvInteger", "MatMulInteger")


@dataclass(frozen=True)
class Prepared:
    """The float model as the quantiser gets it."""

    model: onnx.ModelProto
    inputs: tuple[Input, ...]
    states: tuple[Remembered, ...] = ()
    doubted: Graph | None = None  # the imported graph, if the export to ONNX may change its meaning
    own: Cut = NOTHING  # operators from outside, which are not in ``model``
    whole: Graph | None = None  # the imported graph, if there are such operators
    written: bool = False  # by ``export``, where loops have one form
    in_float: onnx.ModelProto | None = None  # the model, if ``model`` has integers in its loops
    loops: Mapping[str, Report] = field(default_factory=dict)  # these loops, and what their integers cost
    is_body: bool = False  # of a loop: what it carries are results too


def refuse_inputs_as_outputs(model: onnx.ModelProto) -> None:
    """onnxruntime's quantiser would read such a tensor from what it makes of it."""
    inputs = {value.name for value in model.graph.input}
    for value in model.graph.output:
        if value.name in inputs:
            raise ModelError(
                f"the input {value.name!r} is an output of the model, too, which cannot be quantised",
                "export the model without this output, which equals the input",
            )


def prepare(file: ModelFile, shapes: Mapping[str, Shape], opset: int = OPSET) -> Prepared:
    """Read a float model, ONNX or TFLite, and raise it to an opset."""
    read_graph, graph = _read(file, shapes)
    model, exported = _standard_form(file, graph, graph is not read_graph)
    if exported:
        _name_loops(model, file)
    names = states_of(model)
    without_states(model)
    states = tuple(
        Remembered(name.input, name.output, _first_value(graph, state))
        for name, state in zip(names, graph.states, strict=True)
    )
    widen(model.graph)
    _drop_default_inputs(model)
    _drop_mappings(model)
    fixed = {name: graph.tensors[name].shape for name in graph.inputs}
    fixed |= {s.input: graph.tensors[t.tensor].shape for s, t in zip(states, graph.states, strict=True)}
    _fix_shapes(model, fixed)
    own = cut(model, graph)
    model = _optimized(model)
    move_key_factors(model)
    mask_last(model)
    model = _modern(model, opset)
    _name_nodes(model)
    _activations_first(model)
    _means_for_pools(model)
    _drop_zero_padding(model)
    refuse_infinite_weights(model)
    plain_biases(model)
    own_biases(model)
    fold_norm_factors(model)
    avoid_reserved_names(model)
    model = onnx.shape_inference.infer_shapes(model)
    _complete_outputs(model, graph)
    inputs = tuple(
        Input(name, graph.tensors[name].shape, dtype_of(graph.tensors[name].dtype.value))
        for name in graph.inputs
    )
    doubted = graph if exported and export_check.doubts(graph) else None
    return Prepared(model, inputs, states, doubted, own, graph if own.nodes else None, exported)


def _read(file: ModelFile, shapes: Mapping[str, Shape]) -> tuple[Graph, Graph]:
    """The graph as it is read, and joined; an error if the file is malformed or would not compile.

    A loop with an operator that cannot be written as ONNX becomes its steps, if these can.
    """
    found = read(file, shapes)
    if any(node.op.inner_graph is not None for node in found.nodes) and export.written(found) is None:
        found = _unrolled(file, shapes) or found
    return found, _joined(found)


def _unrolled(file: ModelFile, shapes: Mapping[str, Shape]) -> Graph | None:
    """The graph with the steps of its loops, if they can be written."""
    try:
        found = read(file, shapes, unrolled=True)
    except TinymlError:
        return None
    return found if export.written(found) is not None else None


def _standard_form(file: ModelFile, graph: Graph, joined: bool) -> tuple[onnx.ModelProto, bool]:
    """The model in standard ONNX, and whether it was written anew from ``graph``.

    onnxruntime's own operators have to go, and attention: its quantiser does not know what they compute.
    Neither does it look into loops, nor do its ranges fit a cache that grows.
    """
    if joined and export.can_write(graph):
        return export.to_onnx(graph), True
    model = export.to_onnx(graph) if file.is_tflite else onnx_model.parse(file)
    _refuse_quantized(model, file.path)
    anew = growing_model(model) is not None or any(node.op_type in IN_PARTS for node in model.graph.node)
    if any(node.domain == "com.microsoft" for node in model.graph.node):
        return export.to_onnx(remove_dead_code(graph)), True
    written = export.written(remove_dead_code(graph)) if anew else None
    return (written, True) if written is not None else (model, file.is_tflite)


def _name_loops(model: onnx.ModelProto, file: ModelFile) -> None:
    """Loops that have no name in the file were written with that of an output and a number."""
    nodes = [node for graph in graphs_inside(model.graph) for node in graph.node]
    loops = [node for node in nodes if node.op_type in LOOPS]
    if not loops:
        return
    source = None if file.is_tflite else onnx_model.parse(file).graph
    given = {node.name for graph in graphs_inside(source) for node in graph.node} if source else set()
    taken = {node.name for node in nodes}
    for node in (loop for loop in loops if loop.name not in given):
        kind, number = node.op_type.lower(), 2
        node.name = kind
        while node.name in taken:
            node.name, number = f"{kind}_{number}", number + 1
        taken.add(node.name)


def _joined(graph: Graph) -> Graph:
    """With recurrent layers and normalisations instead of their steps; the graph itself if there are none."""
    plain = graph
    for step in PASSES[: PASSES.index(fuse_normalize)]:
        plain = step(plain)
    normal = fuse_normalize(plain)
    found = roll_recurrent(normal)
    if found is not normal:
        return keep_last_step(found)
    return graph if normal is plain else normal


def _first_value(graph: Graph, state: State) -> Array:
    tensor = graph.tensors[state.tensor]
    values = state.initial if state.initial is not None else np.zeros(tensor.shape)
    return values.astype(tensor.dtype.numpy).reshape(tensor.shape)


def _refuse_quantized(model: onnx.ModelProto, path: Path) -> None:
    found = [n.op_type for n in model.graph.node if n.op_type in INTEGER_OPERATORS or "QLinear" in n.op_type]
    if found:
        raise ConfigError(
            f"{path} is quantised already (it has {found[0]})",
            "compile it as it is, or quantise the float model",
        )


def _drop_default_inputs(model: onnx.ModelProto) -> None:
    """Remove inputs that are also initialisers, which would not count as constants."""
    constants = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(kept)


def _drop_mappings(model: onnx.ModelProto) -> None:
    """Probabilities by label, as scikit-learn's exporter writes them, become the array that they are."""
    for node in [node for node in model.graph.node if node.op_type == "ZipMap"]:
        node.op_type, node.domain = "Identity", ""
        del node.attribute[:]
        for value in model.graph.output:
            if value.name == node.output[0]:
                value.type.Clear()
                value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT


def _fix_shapes(model: onnx.ModelProto, shapes: Mapping[str, Shape]) -> None:
    """Every input gets the shape it is compiled with; dependent shapes are inferred again."""
    for value in model.graph.input:
        dims = value.type.tensor_type.shape
        del dims.dim[:]
        for size in shapes[value.name]:
            dims.dim.add().dim_value = size
    del model.graph.value_info[:]
    for value in model.graph.output:
        if any(not dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim):
            value.type.tensor_type.ClearField("shape")


def _complete_outputs(model: onnx.ModelProto, graph: Graph) -> None:
    """Shapes that onnx cannot infer, such as those of trees."""
    for value in model.graph.output:
        kind = value.type.tensor_type
        if not kind.HasField("shape") and value.name in graph.tensors:
            kind.shape.SetInParent()
            for size in graph.tensors[value.name].shape:
                kind.shape.dim.add().dim_value = size


def _optimized(model: onnx.ModelProto) -> onnx.ModelProto:
    """onnxruntime's own preparation: folds constants, and batch normalisation into weights."""
    session.require()
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory(prefix="tinyml-") as folder, session.quiet():
        source, result = Path(folder, "source.onnx"), Path(folder, "result.onnx")
        onnx.save(model, source)
        try:
            quant_pre_process(source, result, skip_symbolic_shape=True)  # shapes are fixed, not symbolic
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            old = f"export it with opset_version={OPSET} or later" if opset_of(model) < OPSET else ""
            raise ModelError(f"onnxruntime cannot prepare this model: {lines[0]}", old) from None
        ready = onnx.load(result)
    used = {node.domain for node in ready.graph.node} | {"", "ai.onnx"}
    kept = {opset.domain: opset for opset in ready.opset_import if opset.domain in used}  # some occur twice
    entries = [*kept.values()]
    del ready.opset_import[:]
    ready.opset_import.extend(entries)
    del ready.metadata_props[:]
    return ready


def opset_of(model: onnx.ModelProto) -> int:
    return max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))


def _modern(model: onnx.ModelProto, wanted: int) -> onnx.ModelProto:
    if opset_of(model) >= wanted:
        return model
    try:
        return onnx.version_converter.convert_version(model, wanted)
    except Exception as error:
        raise UnsupportedError(
            f"the model uses ONNX opset {opset_of(model)}, and it cannot be converted to {wanted}: "
            + str(error).strip().splitlines()[0],
            f"export it with opset_version={wanted} or later",
        ) from None


def _name_nodes(model: onnx.ModelProto) -> None:
    """Give every node a name: reports, ``--keep-float`` and the quantiser refer to nodes by name."""
    taken: set[str] = set()
    for node in model.graph.node:
        base = node.name or next((name for name in node.output if name), node.op_type)
        node.name = base
        number = 1
        while node.name in taken:
            number += 1
            node.name = f"{base}_{number}"
        taken.add(node.name)


def _activations_first(model: onnx.ModelProto) -> None:
    """pool → relu becomes relu → pool if both give the same result: the relu can then be fused."""
    kept = {value.name for value in model.graph.output}
    changed = True
    while changed:
        changed = False
        readers: dict[str, list[onnx.NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                readers.setdefault(name, []).append(node)
        for node in model.graph.node:
            if not quantizing(node.op_type).passes_limits or len(node.output) != 1 or node.output[0] in kept:
                continue
            after = readers.get(node.output[0], [])
            if len(after) == 1 and quantizing(after[0].op_type).limits:
                _swap(model, node, after[0])
                changed = True
                break


def _swap(model: onnx.ModelProto, first: onnx.NodeProto, second: onnx.NodeProto) -> None:
    """first → second becomes second → first; the tensor between them changes."""
    source, between, result = first.input[0], first.output[0], second.output[0]
    second.input[0], second.output[0] = source, between
    first.input[0], first.output[0] = between, result
    nodes = list(model.graph.node)
    moved = onnx.NodeProto()
    moved.CopyFrom(second)
    nodes.remove(second)
    nodes.insert(nodes.index(first), moved)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copies)
    infos = [info for info in model.graph.value_info if info.name != between]
    del model.graph.value_info[:]
    model.graph.value_info.extend(infos)


def _means_for_pools(model: onnx.ModelProto) -> None:
    """A global average pool becomes a mean, whose integer form may change the scale."""
    ranks = {
        value.name: len(value.type.tensor_type.shape.dim)
        for value in onnx.shape_inference.infer_shapes(model).graph.value_info
    } | {value.name: len(value.type.tensor_type.shape.dim) for value in model.graph.input}
    as_input = opset_of(model) >= 18
    for node in model.graph.node:
        if node.op_type != "GlobalAveragePool" or not ranks.get(node.input[0]):
            continue
        axes = list(range(2, ranks[node.input[0]]))
        node.op_type = "ReduceMean"
        node.attribute.append(helper.make_attribute("keepdims", 1))
        if not as_input:
            node.attribute.append(helper.make_attribute("axes", axes))
            continue
        name = f"{node.name}/axes"
        tensor = helper.make_tensor(name, onnx.TensorProto.INT64, [len(axes)], axes)
        model.graph.initializer.append(tensor)
        node.input.append(name)


def _drop_zero_padding(model: onnx.ModelProto) -> None:
    """Remove a constant padding value of 0, which is the default: the quantiser would make a node of it."""
    values = constants(model)
    for node in model.graph.node:
        if node.op_type != "Pad" or len(node.input) != 3 or node.input[2] not in values:
            continue
        if not numpy_helper.to_array(values[node.input[2]]).any():
            del node.input[2]
