# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Counts zero weights: how far a model is pruned, and which channels the compiler can drop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ops.framework.quantization_facts import quantizing

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Sparsity:
    """Counts over the weights of convolutions, dense and recurrent layers."""

    weights: int = 0  # all of them
    zeros: int = 0  # among them
    channels: int = 0  # of outputs
    dead_channels: int = 0  # all weights zero: the output is the bias, and the compiler folds it

    @property
    def share(self) -> float:
        return self.zeros / self.weights if self.weights else 0.0

    def __str__(self) -> str:
        text = f"{100 * self.share:.1f} % of {self.weights:,} weights are zero"
        if self.dead_channels:
            text += f"; {self.dead_channels} of {self.channels} channels are zero throughout and dropped"
        return text


def sparsity_of(model: onnx.ModelProto) -> Sparsity:
    """Count zeros in a float model."""
    from onnx import numpy_helper

    from tinyml.quantize.constants import constants

    values = constants(model)
    weights = zeros = channels = dead = 0
    for node in model.graph.node:
        declared = quantizing(node.op_type)
        for name in (node.input[index] for index in declared.matrices):
            if name in values:
                array = numpy_helper.to_array(values[name])
                weights, zeros = weights + array.size, zeros + int((array == 0).sum())
        if declared.channel_axis is None or len(node.input) < 2 or node.input[1] not in values:
            continue
        array = numpy_helper.to_array(values[node.input[1]])
        axis = declared.channel_axis(node, array.ndim)
        alive = np.count_nonzero(np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1), axis=1)
        weights, zeros = weights + array.size, zeros + int((array == 0).sum())
        channels, dead = channels + array.shape[axis], dead + int((alive == 0).sum())
    return Sparsity(weights, zeros, channels, dead)
