# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Tensors whose range is too wide for integers, such as attention scores that a mask sets to -1e9 or -inf.

A softmax over such scores has to stay float: a step of int8 would be many times what decides.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import onnx

from tinyml.base.errors import ConfigError
from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.quantize.calibrate import Ranges

LARGEST = 1e37
"""Larger values leave no finite float32 for scales and sums."""

SPREAD = 1000.0
"""Of the inputs of a softmax: a step of int8 is then a factor of more than 50."""


def too_wide(model: onnx.ModelProto, ranges: Ranges) -> frozenset[str]:
    """Nodes that read or write scores too far apart, and what makes the mask if float32 barely holds it.

    Also those with results that are not numbers: whether onnxruntime's smallest and largest elements skip
    them depends on the CPU.
    """
    wide = {name for name, limits in ranges.items() if any(map(math.isnan, limits))}
    wide |= {
        node.input[0]
        for node in model.graph.node
        if node.op_type == "Softmax" and not _within(ranges.get(node.input[0], (0.0, 0.0)), SPREAD)
    }
    while True:
        touched = [node for node in model.graph.node if wide.intersection((*node.input, *node.output))]
        more = {
            name
            for node in touched
            for name in (*node.input, *node.output)
            if name in ranges and not _within(ranges[name], SPREAD if _same_numbers(node) else LARGEST)
        }
        if more <= wide:
            return frozenset(node.name for node in touched)
        wide |= more


def refuse_too_large(model: onnx.ModelProto, ranges: Ranges, excluded: Collection[str]) -> None:
    """Raise an error if a node that is not ``excluded`` reads or writes values beyond all scales."""
    for node in (node for node in model.graph.node if node.name not in excluded):
        for name in (*node.input, *node.output):
            if name in ranges and not _within(ranges[name], LARGEST):
                low, high = ranges[name]
                raise ConfigError(
                    f"with the calibration data {name!r} has values from {low:g} to {high:g}, "
                    f"beyond {LARGEST:g}",
                    "check that the data is scaled as it was for the training",
                )


def bounded(ranges: Ranges) -> Ranges:
    """Those that have a scale."""
    return {name: limits for name, limits in ranges.items() if _within(limits, LARGEST)}


def _within(limits: tuple[float, float], largest: float) -> bool:
    return all(abs(limit) <= largest for limit in limits)


def _same_numbers(node: onnx.NodeProto) -> bool:
    declared = quantizing(node.op_type)
    return declared.moves or declared.keeps_scale
