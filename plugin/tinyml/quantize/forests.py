# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Forests of trees: features and limits as int16, the weights of leaves as int8 or int16.

The limits of a feature span its range; a feature beyond them only has to stay beyond them. A step of a
feature, and of the weights, is a power of two: whole numbers, and measurements whose own steps are multiples
of that, lose nothing, and sums of weights are exact. The model stays ordinary ONNX: its features pass through
QuantizeLinear and DequantizeLinear, from which the compiler derives integer limits that decide the same.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import find_target
from tinyml.ir import Array
from tinyml.ops.framework.kernel import Sheet, kernels_of
from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.quantize.integer_forms import optimized

STEPS = 32766
"""On either side of zero, so that there are integers beyond the lowest and the highest limit."""

EXACT = (1 << 24) - 1
"""The largest sum of integer weights: float32 has all integers up to it."""

LARGEST_WEIGHT = {"int8": 127, "int16": 32767}
FAR = 8
"""If limits are further from zero than this many times their span, an offset is subtracted first."""

MICROSOFT = "com.microsoft"
"""The domain of QuantizeLinear for int16 in opsets before 21."""


def shrink_forests(model: onnx.ModelProto, names: Collection[str], leaves: str) -> None:
    """Quantise the trees with these names in place; ``leaves`` is a key of LARGEST_WEIGHT."""
    chosen = [node for node in model.graph.node if node.name in names]
    for node in chosen:
        _round_leaves(node, LARGEST_WEIGHT[leaves])
        _quantize_features(model, node)
    if chosen and MICROSOFT not in {entry.domain for entry in model.opset_import}:
        model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))


def ignores_missing(model: onnx.ModelProto, names: Collection[str]) -> bool:
    """Whether trees with these names know what to do with features that are not a number."""
    return any(any(_ints(n, "nodes_missing_value_tracks_true")) for n in model.graph.node if n.name in names)


@dataclass(frozen=True, eq=False)
class Grid:
    """One offset and one step per feature."""

    offsets: Array
    steps: Array


def _quantize_features(model: onnx.ModelProto, node: onnx.NodeProto) -> None:
    """Subtract, scale, quantise and dequantise the features, and move the limits likewise."""
    limits, features = _values(node, "nodes_values"), _ints(node, "nodes_featureids")
    grid = _grid(model, node)
    moved = (limits.astype(np.float64) - grid.offsets[features]) / grid.steps[features]
    leaf = np.array([mode == b"LEAF" for mode in _attribute(node, "nodes_modes").strings])
    scale = np.float32(1)
    if (grid.steps == grid.steps[0]).all():  # one scale is enough
        scale = np.float32(grid.steps[0])
    _store(node, "nodes_values", np.where(leaf, 0, moved * scale).astype(np.float32))
    tracks = [a for a in node.attribute if a.name == "nodes_missing_value_tracks_true"]
    for attribute in tracks:
        node.attribute.remove(attribute)
    parts: list[tuple[str, str, Array]] = []
    if grid.offsets.any():
        parts.append(("Sub", "offsets", grid.offsets.astype(np.float32)))
    if scale == 1 and (grid.steps != 1).any():
        parts.append(("Mul", "factors", (1 / grid.steps).astype(np.float32)))
    made = [helper.make_node("Cast", [node.input[0]], [f"{node.name}/real"], to=TensorProto.FLOAT)]
    if _is_float(model, node.input[0]):
        made = []
    x = made[-1].output[0] if made else node.input[0]
    for op_type, word, numbers in parts:
        name = f"{node.name}/{word}"
        model.graph.initializer.append(numpy_helper.from_array(numbers, name))
        made.append(helper.make_node(op_type, [x, name], [f"{node.name}/{op_type}"]))
        x = made[-1].output[0]
    scales = [f"{node.name}/scale", f"{node.name}/zero"]
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name)
        for value, name in zip((scale, np.int16(0)), scales, strict=True)
    )
    for op_type, word in (("QuantizeLinear", "stored"), ("DequantizeLinear", "features")):
        y = f"{node.name}/{word}"
        made.append(helper.make_node(op_type, [x, *scales], [y], domain=MICROSOFT))
        x = y
    node.input[0] = x
    place = next(i for i, other in enumerate(model.graph.node) if other is node or other == node)
    for added in reversed(made):
        added.name = added.output[0]
        model.graph.node.insert(place, added)


def _grid(model: onnx.ModelProto, node: onnx.NodeProto) -> Grid:
    """Steps that are powers of two, as small as int16 allows for the limits of each feature."""
    limits, features = _values(node, "nodes_values").astype(np.float64), _ints(node, "nodes_featureids")
    inner = np.array([mode != b"LEAF" for mode in _attribute(node, "nodes_modes").strings])
    known = _width(model, node.input[0])
    count = known or int(features.max(initial=0)) + 1
    offsets, steps = np.zeros(count), np.zeros(count)
    for feature in range(count):
        own = limits[inner & (features == feature)]
        own = own[np.isfinite(own)]
        if not own.size:
            continue
        low, high = float(own.min()), float(own.max())
        middle = (low + high) / 2
        if max(abs(low), abs(high)) > FAR * (high - low) and high > low:
            step = _power_above((high - low) / 2 / (STEPS - 1))
            offsets[feature] = np.float32(round(middle / step) * step)
            low, high = low - offsets[feature], high - offsets[feature]
        steps[feature] = _power_above(max(abs(low), abs(high), 1e-30) / STEPS)
    steps[steps == 0] = steps.max(initial=0) or 1.0  # features that no tree compares
    if known is None:  # there is no telling how many numbers to subtract and to multiply by
        largest = float(np.abs(limits[inner & np.isfinite(limits)]).max(initial=1e-30))
        return Grid(np.zeros(count), np.full(count, _power_above(largest / STEPS)))
    return Grid(offsets, steps)


def _round_leaves(node: onnx.NodeProto, largest: int) -> None:
    """Weights become multiples of a power of two."""
    name = "class_weights" if "Classifier" in node.op_type else "target_weights"
    weights = _values(node, name).astype(np.float64)
    trees = len(set(_ints(node, "nodes_treeids").tolist()))
    if largest == LARGEST_WEIGHT["int8"] and weights.min(initial=0) >= 0:
        largest = 2 * largest + 1  # uint8
    most = max(min(largest, EXACT // max(trees, 1)), 1)
    highest = float(np.abs(weights).max(initial=0))
    if highest > 0:
        step = _power_above(highest / most)
        weights = np.rint(weights / step) * step
    _store(node, name, weights.astype(np.float32))


def _power_above(value: float) -> float:
    """The smallest power of two that is at least ``value``."""
    part, exponent = math.frexp(value)
    return math.ldexp(1.0, exponent - 1 if part == 0.5 else exponent)


def _is_float(model: onnx.ModelProto, name: str) -> bool:
    values = (*model.graph.input, *model.graph.value_info)
    return any(v.name == name and v.type.tensor_type.elem_type == TensorProto.FLOAT for v in values)


def _width(model: onnx.ModelProto, name: str) -> int | None:
    """The number of features, if it is known."""
    for value in (*model.graph.input, *model.graph.value_info):
        dims = value.type.tensor_type.shape.dim
        if value.name == name and len(dims) == 2 and dims[1].dim_value:
            return int(dims[1].dim_value)
    return None


def _attribute(node: onnx.NodeProto, name: str) -> onnx.AttributeProto:
    return next((a for a in node.attribute if a.name == name), onnx.AttributeProto())


def _ints(node: onnx.NodeProto, name: str) -> Array:
    return np.asarray(_attribute(node, name).ints, np.int64)


def _values(node: onnx.NodeProto, name: str) -> Array:
    """A list of numbers, which may also be stored as a tensor of doubles."""
    tensor = _attribute(node, f"{name}_as_tensor")
    return numpy_helper.to_array(tensor.t) if tensor.name else np.asarray(_attribute(node, name).floats)


def _store(node: onnx.NodeProto, name: str, values: Array) -> None:
    for old in [a for a in node.attribute if a.name in (name, f"{name}_as_tensor")]:
        node.attribute.remove(old)
    node.attribute.append(helper.make_attribute(name, values.tolist()))


def forest_bytes(model: onnx.ModelProto) -> int:
    """The bytes of all trees in flash, as their kernels store them."""
    names = {node.name for node in model.graph.node if quantizing(node.op_type).trees}
    total = 0
    for layer in (layer for layer in optimized(model).layers() if layer.name in names) if names else ():
        kernel = next(kernel for kernel in kernels_of(type(layer.op)) if kernel.refusal(layer) is None)
        sheet = Sheet(layer, find_target("generic"), "forest")
        kernel.emit(layer, sheet)
        total += sum(table.values.nbytes for table in sheet.tables)
    return total
