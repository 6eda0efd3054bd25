# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The range of every activation, found by running the float model on the calibration data."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.progress import Progress
from tinyml.importers.states import Remembered
from tinyml.ir import Array
from tinyml.ops.framework.quantization_facts import integer_operators, quantizing
from tinyml.quantize.entropy import STEPS, entropy_range
from tinyml.reference import session

Ranges = dict[str, tuple[float, float]]
"""Tensor name -> smallest and largest value that int8 must represent."""

CHUNK = 16  # samples per progress update, and the most whose activations are in memory at once

SETTINGS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "minmax": ("MinMax", {}),
    "entropy": ("Entropy", {"num_bins": 512, "num_quantized_bins": STEPS}),
    "percentile": ("Percentile", {"percentile": 99.99, "symmetric": False}),
}
"""Our name of a method -> onnxruntime's, with its options."""


def calibrate(
    model: onnx.ModelProto,
    samples: Sequence[Mapping[str, Array]],
    method: str,
    progress: Progress,
) -> Ranges:
    """Ranges by one of onnxruntime's methods; ``samples`` are values of all inputs, states included."""
    session.require()
    from onnxruntime.quantization.calibrate import CalibrationDataReader, CalibrationMethod, create_calibrator

    class Reader(CalibrationDataReader):  # type: ignore[misc]  # the base class is untyped
        def __init__(self, chunk: Sequence[Mapping[str, Array]]) -> None:
            self.rest = iter(chunk)

        def get_next(self) -> dict[str, Array] | None:
            sample = next(self.rest, None)
            return None if sample is None else {name: np.asarray(x) for name, x in sample.items()}

    name, options = SETTINGS[method]
    with tempfile.TemporaryDirectory(prefix="tinyml-") as folder:
        source = Path(folder, "model.onnx")
        onnx.save(model, source)
        with session.quiet():
            calibrator = create_calibrator(
                source,
                sorted(integer_operators()),
                augmented_model_path=str(Path(folder, "augmented.onnx")),
                calibrate_method=CalibrationMethod[name],
                extra_options=options,
            )
        try:
            for start in range(0, len(samples), CHUNK):
                with session.quiet():
                    calibrator.collect_data(Reader(samples[start : start + CHUNK]))
                progress(f"ranges by {method}", min(start + CHUNK, len(samples)), len(samples))
            if method == "entropy":
                return _by_entropy(calibrator.collector.histogram_dict)
            with session.quiet():
                found = calibrator.compute_data()
        except ValueError as error:  # numpy makes no histogram of values that are too large or too close
            raise ConfigError(
                f"the calibration method {method} finds no ranges: {error}", "check the data, or use minmax"
            ) from None
    ranges = {}
    for tensor, data in found.items():
        low, high = (float(np.min(limit)) for limit in data.range_value)
        ranges[tensor] = (low, float(np.max(data.range_value[1])) if high < low else high)
    return ranges


def _by_entropy(histograms: Mapping[str, tuple[Any, ...]]) -> Ranges:
    """Ranges from onnxruntime's histograms: counts, edges, the smallest and the largest value."""
    return {
        tensor: entropy_range(counts, edges, float(low), float(high))
        for tensor, (counts, edges, low, high, _) in histograms.items()
    }


@dataclass(frozen=True)
class Group:
    """Tensors with one scale."""

    names: tuple[str, ...]
    tied: bool  # by an operator that requires it
    kept: bool  # a state and its next value, which are the same integers


def groups(
    model: onnx.ModelProto, names: Collection[str], excluded: Collection[str], states: Sequence[Remembered]
) -> list[Group]:
    """Tensors that have the same scale, also if they pass through a reshape first; each is in one group.

    Nodes that stay float (``excluded``) require nothing.
    """
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.get(name, name) != name:
            name = parent[name]
        return name

    tied, kept = set[str](), set[str]()
    for state in states:
        if state.input in names and state.output in names:
            parent[root(state.output)] = root(state.input)
            kept.add(state.input)
    for node in (node for node in model.graph.node if node.name not in excluded):
        declared = quantizing(node.op_type)
        group = [name for name in declared.tied(node) if name in names]
        tied |= set(group)
        if declared.one_scale:
            group = [name for name in (*node.input, *node.output) if name in names]
            tied |= set(group)
        elif declared.keeps_scale and node.input:
            group = [name for name in (node.input[0], *node.output) if name in names]
        for name in group[1:]:
            parent[root(name)] = root(group[0])
    members: dict[str, list[str]] = {}
    for name in names:
        members.setdefault(root(name), []).append(name)
    with_ties, with_states = {root(name) for name in tied}, {root(name) for name in kept}
    return [Group(tuple(found), top in with_ties, top in with_states) for top, found in members.items()]


def shared(
    model: onnx.ModelProto, ranges: Ranges, excluded: Collection[str], states: Sequence[Remembered] = ()
) -> Ranges:
    """Gives tensors that must share a scale one range.

    A state gets the range of its next value, so that the same integers are kept and not rounded twice.
    """
    result = dict(ranges)
    for group in groups(model, ranges, excluded, states):
        if group.tied or group.kept:
            low = min(ranges[name][0] for name in group.names)
            high = max(ranges[name][1] for name in group.names)
            result.update(dict.fromkeys(group.names, (low, high)))
    return result
