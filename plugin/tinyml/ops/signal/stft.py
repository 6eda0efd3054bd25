# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""STFT and the mel filter bank, which audio front ends are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import limits
from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.ir import Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.framework.reading import Builder, OnnxNode, dtype_of, onnx_op
from tinyml.ops.indexing.gather import gather
from tinyml.ops.reshape import Reshape
from tinyml.ops.signal.dft import Dft

ONNX_FLOATS = {1: "float32", 11: "float64"}
"""ONNX's numbers of element types that a filter bank can have."""


@onnx_op("STFT")
def read_stft(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Frames of the signal, times a window, each transformed: (batch, frames, bins, 2)."""
    signal, window = node.input(0), node.optional(2)
    step = int(node.const(1).reshape(()))
    if node.optional(3) is not None:
        length = int(node.const(3).reshape(()))
    elif window is not None:
        length = window.shape[0]
    else:
        raise ModelError(f"STFT node {node.name!r} has neither a window nor a frame length")
    if len(signal.shape) == 2:
        signal = build.add1(Reshape((*signal.shape, 1)), [signal])
    samples, parts = signal.shape[1:]
    onesided = bool(node.attr("onesided", 1))
    if onesided and parts != 1:
        raise UnsupportedError(
            f"STFT node {node.name!r}: a one-sided spectrum of a complex signal is not defined"
        )
    count = (samples - length) // step + 1
    if step < 1 or count < 1:
        raise ModelError(f"STFT node {node.name!r}: no frame of {length} fits into {samples} samples")
    places = np.arange(count)[:, None] * step + np.arange(length)
    frames = gather(build, signal, build.constant(places.astype(np.int64)), 1)
    if window is not None:
        shaped = build.add1(Reshape((1, 1, length, 1)), [window])
        frames = build.add1(Binary("mul"), [frames, shaped])
    return [build.add1(Dft(2, length, False, onesided), [frames])]


@onnx_op("MelWeightMatrix")
def read_mel_weight_matrix(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Triangular filters, evenly spaced on the mel scale; a constant, since all operands must be."""
    bands, length, rate, low, high = (node.const(i).reshape(()).item() for i in range(5))
    bins = length // 2 + 1
    limits.check_shape((bins, bands), "its result")
    ends = 2595 * np.log10(1 + np.array([low, high]) / 700)
    mels = ends[0] + np.arange(bands + 2) * (ends[1] - ends[0]) / (bands + 2)
    edges = ((length + 1) * (700 * (10 ** (mels / 2595) - 1)) // rate).astype(np.int64)
    matrix = np.zeros((bins, bands))
    for band in range(bands):
        left, centre, right = edges[band : band + 3]
        if left == centre:
            matrix[centre, band] = 1
        else:
            rising = np.arange(left, centre + 1)
            matrix[rising, band] = (rising - left) / (centre - left)
        if right > centre:
            falling = np.arange(centre, right)
            matrix[falling, band] = (right - falling) / (right - centre)
    dtype = dtype_of(ONNX_FLOATS.get(int(node.attr("output_datatype", 1)), "float16"))
    return [build.constant(matrix.astype(dtype.numpy))]
