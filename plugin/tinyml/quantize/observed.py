# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the inputs and outputs were on the calibration data, kept in the model for ``watch:``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from tinyml.ir import Array
from tinyml.watch.plan import MOST_DECISIONS
from tinyml.watch.reference import KEY, Grid, Reference, counted, to_text

LONGEST = 1 << 22
"""Values of a tensor that are counted at most, evenly spread."""


def keep_observed(
    model: onnx.ModelProto,
    samples: Sequence[Mapping[str, Array]],
    results: Sequence[Mapping[str, Array]],
    inside: Collection[str],
) -> None:
    """Write the histograms into the metadata, in steps of the model's own quantisation where it has one.

    ``model`` still has a float interface; ``results`` are the float model's outputs; tensors ``inside`` are
    states.
    """
    found: dict[str, Reference] = {}
    grids = _grids(model.graph)
    for values, infos in ((samples, model.graph.input), (results, model.graph.output)):
        for name in (info.name for info in infos if info.name not in inside):
            if name in values[0] and _is_counted(values[0][name], infos is model.graph.output):
                found[name] = counted(_spread([row[name] for row in values]), grids.get(name))
    for entry in [entry for entry in model.metadata_props if entry.key == KEY]:
        model.metadata_props.remove(entry)
    if found:
        model.metadata_props.add(key=KEY, value=to_text(found))


def _is_counted(array: Array, is_output: bool) -> bool:
    """Outputs with a few elements are scores of classes: no histogram."""
    return array.dtype.kind in "fiu" and not (is_output and 1 < array.size <= MOST_DECISIONS)


def _spread(arrays: Sequence[Array]) -> Array:
    values = np.concatenate([np.asarray(array, np.float64).reshape(-1) for array in arrays])
    return values[:: -(-values.size // LONGEST) or 1]


def _grids(graph: onnx.GraphProto) -> dict[str, Grid]:
    """The int8 steps of tensors at the border of the model."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    found = {}
    for node in graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear") and len(node.input) == 3:
            scale, zero = (constants.get(name) for name in node.input[1:])
            if scale is not None and zero is not None and zero.data_type == TensorProto.INT8:
                values = numpy_helper.to_array(scale)
                border = node.input[0] if node.op_type == "QuantizeLinear" else node.output[0]
                if values.size == 1 and float(values.reshape(-1)[0]) > 0:
                    point = int(numpy_helper.to_array(zero).reshape(-1)[0])
                    found[border] = Grid(float(values.reshape(-1)[0]), point)
    return found
