# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Rows of test data as inputs of a compiled model, whatever the types of both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyml.arrays import is_quantized, stored
from tinyml.ir import DType, Graph
from tinyml.quantize import data, labels
from tinyml.quantize.data import Samples
from tinyml.quantize.request import Request
from tinyml.quantize.shaping import Input


def rows(request: Request, graph: Graph) -> Samples:
    """All samples; labels as the file has them: classes, names of classes, or values to predict.

    Integers for a quantised input are stored values. Real numbers are quantised as the firmware does it.
    """
    tensors = {name: graph.tensors[name] for name in graph.inputs}
    inputs = [Input(tensor.name, tensor.shape, tensor.dtype) for tensor in tensors.values()]
    request.check_files()
    integers = data.stored_integers(request.calibration, inputs)
    real = {name for name, tensor in tensors.items() if is_quantized(tensor)} - integers
    inputs = [replace(i, dtype=DType.FLOAT32) if i.name in real else i for i in inputs]
    samples = data.load(request, inputs, bool(graph.states), labels.as_found)
    if request.labels is None and samples.labels is not None and request.calibration.is_dir():
        samples = replace(
            samples, labels=np.asarray(data.folder_classes(request.calibration))[samples.labels]
        )
    return replace(
        samples,
        inputs=tuple(
            {name: stored(array, tensors[name]) if name in real else array for name, array in sample.items()}
            for sample in samples.inputs
        ),
    )
