# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks a model that was written as ONNX on the calibration data, where ONNX may not express all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.datasets.reader import Samples
from tinyml.ir import Array, Graph
from tinyml.ir.interpreter import interpret
from tinyml.ops.framework.writing import doubt_about

CHECKED_SAMPLES = 64
CLOSE = 1e-3
"""Of the largest output: two runtimes on the same float model are a thousand times closer."""


def doubts(graph: Graph) -> list[str]:
    """Why the ONNX form of a graph may give other results; empty if it cannot."""
    return [doubt for layer in graph.layers() if (doubt := doubt_about(layer)) is not None]


def check_export(graph: Graph, samples: Samples, answers: Sequence[Mapping[str, Array]]) -> None:
    """Compare the imported graph with the exported model; an error if they differ."""
    count = min(len(samples), CHECKED_SAMPLES)
    starts = sorted(start for start in samples.starts if start < count)
    for start, end in zip(starts, [*starts[1:], count], strict=True):
        wanted = interpret(graph, samples.inputs[start:end])
        for values, found in zip(wanted, answers[start:end], strict=True):
            for name in graph.outputs:
                largest = max(float(np.abs(values[name]).max(initial=0.0)), 1e-6)
                if float(np.abs(values[name] - found[name]).max(initial=0.0)) > CLOSE * largest:
                    raise UnsupportedError(
                        doubts(graph)[0],
                        "quantise the model when it is converted to TFLite",
                    )
