# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Inputs of a threshold that get the mean and the scale of the training: what it learns about each feature.

Numpy has the same float32 in the same order as runtime/adapt/scaling.c.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tinyml.adapt.errors import InfiniteLoss
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Graph, Node, Tensor
from tinyml.ops.observed import Rescaled
from tinyml.ops.shared.quant import is_quantized, quant_of

MOST_VALUES = 1 << 24
"""Of a feature, which float32 can count."""
MOST_GAIN = np.float32(16)
LEAST_GAIN = np.float32(0.0625)
_USUAL = np.float32(1e30)


@dataclass(frozen=True, eq=False)
class Scaling:
    """What is known about the features of an input, which are the elements of its last axis."""

    input: Tensor
    name: str  # of the tensor that the layers get instead
    features: int
    least: int  # examples that are learnt from
    reference: Array  # float32 (2, features): means and deviations of the training

    @property
    def rows(self) -> int:
        return self.input.elements // self.features

    @property
    def stored_bytes(self) -> int:
        return 4 + 8 * self.features


def scaled_input(graph: Graph, source: Tensor | None, least: int, learner: str) -> tuple[Graph, Scaling]:
    """The graph whose layers get another tensor instead of the input; ``source``: the one that is rebuilt."""
    if source is None and len(graph.inputs) != 1:
        raise ConfigError(
            f"the model has {len(graph.inputs)} inputs: normalize is for one", "adapt without normalize"
        )
    tensor = source or graph.tensors[graph.inputs[0]]
    if tensor.dtype is not DType.FLOAT32 and not is_quantized(tensor, DType.INT8):
        raise ConfigError(
            f"the input {tensor.name!r} is {tensor.dtype.value}: normalize is for float32 and int8",
            "adapt without normalize",
        )
    features = tensor.shape[-1] if tensor.shape else 1
    if least * (tensor.elements // features) > MOST_VALUES:
        raise ConfigError(
            f"normalize: {least} examples have too many values for each of {features} features",
            f"{MOST_VALUES * features // tensor.elements} or fewer",
        )
    name = f"{tensor.name}/scaled"
    nodes = [
        replace(node, inputs=tuple(name if given == tensor.name else given for given in node.inputs))
        for node in graph.nodes
    ]
    first = Node(f"{tensor.name}/Rescaled", Rescaled(learner), (tensor.name,), (name,))
    reference = np.stack([np.zeros(features, np.float32), np.ones(features, np.float32)])
    scaled = graph.with_nodes([first, *nodes], [Tensor.of(name, tensor.type)])
    return scaled, Scaling(tensor, name, features, least, reference)


def with_reference(part: Scaling, digest: bytes, samples: Iterable[Array]) -> tuple[Scaling, bytes]:
    """Means and deviations of the samples of the training, and what learnt bytes are recognised by."""
    rows = np.concatenate([real(sample, part.input).reshape(-1, part.features) for sample in samples])
    rows = rows.astype(np.float64)
    found = np.stack([rows.mean(axis=0), rows.std(axis=0)]).astype(np.float32)
    if not (np.abs(found) < _USUAL).all():
        raise ConfigError("adapt: the reference has values that are not numbers", "samples of the training")
    return replace(part, reference=found), hashlib.sha256(digest + found.tobytes()).digest()[:8]


def real(array: Array, tensor: Tensor) -> Array:
    """Stored values as float32, as the runtime computes them."""
    if tensor.dtype is DType.FLOAT32:
        return array.reshape(-1).astype(np.float32)
    quant = quant_of(tensor)
    stored = (array.reshape(-1).astype(np.int32) - quant.zero_point).astype(np.float32)
    found: Array = stored * np.float32(quant.scale)
    return found


def _stored(values: Array, tensor: Tensor) -> Array:
    if tensor.dtype is DType.FLOAT32:
        return values
    quant = quant_of(tensor)
    steps = values / np.float32(quant.scale)
    steps = np.where(steps > -512, np.where(steps < 512, steps, np.float32(512)), np.float32(-512))
    whole = np.where(steps < 0, steps - np.float32(0.5), steps + np.float32(0.5)).astype(np.int32)
    found: Array = np.clip(whole + quant.zero_point, -128, 127).astype(np.int8)
    return found


class InputScale:
    """What a device knows about the features of its input."""

    def __init__(self, part: Scaling) -> None:
        self.part = part
        self.factory()

    def factory(self) -> None:
        """Forget all examples."""
        self.learnt = np.zeros((2, self.part.features), np.float32)  # means, squares of distances from them
        self.pending = np.zeros_like(self.learnt)
        self.count = 0

    @property
    def learns(self) -> bool:
        """Whether the next examples are about inputs, and not about scores."""
        return self.count < self.part.least

    def run(self, x: Array) -> Array:
        """What the layers get instead of the input."""
        part = self.part
        values = real(x, part.input).reshape(part.rows, part.features)
        with np.errstate(all="ignore"):
            if self.learns:
                self._note(values)
                return x
            variance = self.learnt[1] / np.float32(part.least * part.rows - 1)
            deviation = np.sqrt(variance)
            wanted = part.reference[1]
            gain = np.where((deviation > 0) & (wanted > 0), wanted / deviation, np.float32(1))
            gain = np.minimum(np.maximum(gain, LEAST_GAIN), MOST_GAIN).astype(np.float32)
            scaled = (values - self.learnt[0]) * gain + part.reference[0]
        return _stored(scaled.reshape(-1), part.input).reshape(x.shape)

    def _note(self, values: Array) -> None:
        mean, squares = self.learnt
        before = self.count * self.part.rows
        for number, row in enumerate(values):
            away = row - mean
            mean = mean + away / np.float32(before + number + 1)
            squares = squares + away * (row - mean)
        self.pending = np.stack([mean, squares])

    def learn(self) -> None:
        """Keep what the last run has noted."""
        if not (np.abs(self.pending) < _USUAL).all():
            raise InfiniteLoss()
        self.learnt = self.pending
        self.count += 1
