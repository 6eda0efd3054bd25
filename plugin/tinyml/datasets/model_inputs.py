# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Samples as inputs of a compiled model, whatever the types of both: for every command that runs models."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.datasets import labels, reader
from tinyml.datasets.arrays import is_quantized, pattern_inputs, stored
from tinyml.datasets.reader import Samples
from tinyml.datasets.shaping import Input
from tinyml.ir import Array, DType, Graph
from tinyml.settings.quantize_request import Request


def load_samples(path: Path | None, graph: Graph) -> list[dict[str, Array]]:
    """The inputs of consecutive runs by tensor name; without a file, one run on a fixed pattern."""
    if path is None:
        return [pattern_inputs(graph)]
    if not path.exists():
        raise ConfigError(f"there is no input file {path}")
    samples = rows(Request(path, samples=sys.maxsize), graph, plain=True)
    return [dict(sample) for sample in samples.inputs]


def rows(request: Request, graph: Graph, plain: bool = False) -> Samples:
    """All samples; labels as the file has them: classes, names of classes, or values to predict.

    Integers for a quantised input are stored values. Real numbers are quantised as the firmware does it.
    ``plain``: numbers are taken as they are, integers and infinite ones too.
    """
    tensors = {name: graph.tensors[name] for name in graph.inputs}
    inputs = [
        Input(tensor.name, tensor.shape, tensor.dtype, tensor.name in graph.open_inputs)
        for tensor in tensors.values()
    ]
    request.check_files()
    integers = reader.stored_integers(request.calibration, inputs)
    real = {name for name, tensor in tensors.items() if is_quantized(tensor)} - integers
    inputs = [replace(i, dtype=DType.FLOAT32) if i.name in real else i for i in inputs]
    samples = reader.load(request, inputs, bool(graph.states), labels.as_found, plain)
    if request.labels is None and samples.labels is not None and request.calibration.is_dir():
        samples = replace(
            samples, labels=np.asarray(reader.folder_classes(request.calibration))[samples.labels]
        )
    return replace(
        samples,
        inputs=tuple(
            {name: stored(array, tensors[name]) if name in real else array for name, array in sample.items()}
            for sample in samples.inputs
        ),
    )
