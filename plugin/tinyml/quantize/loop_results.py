# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What loops with bodies in integers return: those integers, which readers outside take as they are.

A body ends with DequantizeLinear. A tensor outside that has the same scale, zero point and type needs no
second rounding, and the compiler has nothing to rescale there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tinyml.base.lazy_dataclass import dataclass
from tinyml.importers.states import Remembered
from tinyml.ir import Array
from tinyml.quantize.calibrate import Ranges, groups
from tinyml.quantize.prepare import LOOPS

COARSER = 1.25
"""By so much the steps of tensors may grow that share a scale with the result of a loop."""


@dataclass(frozen=True)
class Integers:
    """How the integers of a tensor mean real numbers."""

    scale: float
    zero_point: int
    bits: int

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"int{self.bits}")

    def limits(self) -> tuple[float, float]:
        half = 1 << (self.bits - 1)
        return (-half - self.zero_point) * self.scale, (half - 1 - self.zero_point) * self.scale

    def hold(self, low: float, high: float) -> bool:
        """Whether a range saturates by at most half a step, and its own steps were not much finer."""
        least, most = self.limits()
        inside = least - self.scale / 2 <= low and high <= most + self.scale / 2
        symmetric = self.bits == 16
        own = 2.0 * max(-low, high) if symmetric else max(high, 0.0) - min(low, 0.0)
        return inside and most - least <= COARSER * own


def results_of(model: onnx.ModelProto) -> dict[str, Integers]:
    """Results of loops -> the integers with which each turn ends; none for those that end in float."""
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    loops = [node for node in model.graph.node if node.op_type in LOOPS]
    return {name: integers for node in loops for name, integers in _results(node, constants)}


def kept_scales(
    model: onnx.ModelProto, ranges: Ranges, excluded: Collection[str], states: Sequence[Remembered]
) -> dict[str, Integers]:
    """These results, and what has to have their scale; not where another one is better for the rest.

    ``excluded`` nodes stay float.
    """
    results = results_of(model)
    if not results:
        return {}
    doubted = {  # without a turn, the results are the first values of the states
        name for node in model.graph.node if node.op_type == "Loop" and node.input[1] for name in node.output
    }
    found: dict[str, Integers] = {}
    for group in groups(model, {*ranges, *results}, excluded, states):
        integers = {results[name] for name in group.names if name in results}
        alone = not group.tied and not group.kept and doubted.isdisjoint(group.names)
        limits = [ranges[name] for name in group.names if name in ranges]
        if len(integers) == 1 and (alone or _hold(next(iter(integers)), limits)):
            found.update(dict.fromkeys(group.names, next(iter(integers))))
    return found


def _hold(integers: Integers, limits: Sequence[tuple[float, float]]) -> bool:
    lows, highs = zip(*limits, strict=True) if limits else ((0.0,), (0.0,))
    return integers.hold(min(lows), max(highs))


def _results(node: onnx.NodeProto, outside: Mapping[str, Array]) -> Iterator[tuple[str, Integers]]:
    body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    constants = {**outside, **{one.name: numpy_helper.to_array(one) for one in body.initializer}}
    makers = {name: maker for maker in body.node for name in maker.output}
    ends = body.output[1:] if node.op_type == "Loop" else body.output
    for name, end in zip(node.output, ends, strict=True):
        maker = makers.get(end.name)
        while maker is not None and maker.op_type == "Identity":
            maker = makers.get(maker.input[0])
        if not name or maker is None or maker.op_type != "DequantizeLinear":
            continue
        scale, zero = (constants[given] for given in maker.input[1:3])
        if scale.size == 1 and zero.dtype in (np.int8, np.int16):
            yield name, Integers(float(scale), int(zero), 8 * zero.dtype.itemsize)
