# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The difference of two arrays, in quantisation steps or relative to the largest value."""

from __future__ import annotations

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Graph, Tensor
from tinyml.ops.quantization.quantize import Dequantize
from tinyml.ops.recurrent.recurrent_int8 import RecurrentInt8

FLOAT_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Tolerance:
    """``steps`` of the quantisation for quantised values, ``relative`` to the largest value for floats."""

    steps: float = 0
    relative: float = FLOAT_TOLERANCE


@dataclass(frozen=True)
class Difference:
    """The comparison of one tensor. ``worst`` is the flat index of the element furthest apart."""

    size: int
    equal: int
    distance: float  # in ``unit``
    unit: str
    allowed: float
    worst: int
    found: float
    wanted: float

    @property
    def fine(self) -> bool:
        return self.distance <= self.allowed

    def __str__(self) -> str:
        if self.equal == self.size:
            return f"all {self.size} equal"
        return (
            f"{self.equal} of {self.size} equal, largest difference {self.distance:.6g} {self.unit} "
            f"(allowed {self.allowed:.6g}), at {self.worst}: {self.found:.9g} instead of {self.wanted:.9g}"
        )


def compare(found: Array, wanted: Array, step: float | None, tolerance: Tolerance) -> Difference:
    """``step``: the size of a quantisation step, for floats that are multiples of one."""
    f, w = (np.asarray(a, np.float64).reshape(-1) for a in (found, wanted))
    if f.size != w.size:
        return Difference(w.size, 0, np.inf, "elements", 0, 0, f.size, w.size)
    same = (f == w) | (np.isnan(f) & np.isnan(w))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(f - w))
    apart = np.where(np.isnan(apart), np.inf, apart)
    worst = int(apart.argmax()) if apart.size else 0
    distance = float(apart[worst]) if apart.size else 0.0
    if found.dtype.kind == "f" and step is None:
        finite = np.abs(w[np.isfinite(w)])
        # Functions that reach 1, such as a sigmoid, are no more accurate near 0 than float32 is near 1.
        least = float(np.finfo(np.float32).eps) / max(tolerance.relative, 1e-30)
        scale = max(float(finite.max()) if finite.size else 0.0, least)
        unit, allowed, distance = "of the largest value", tolerance.relative, distance / scale
    else:
        unit, allowed = "steps", tolerance.steps
        distance = distance / step if step else distance
        if step and allowed:  # a step in float32 is rounded; for int16, whose steps are small, by more
            largest = float(np.abs(w[np.isfinite(w)]).max(initial=0.0))
            allowed += max(1e-3, 2 * float(np.finfo(np.float32).eps) * largest / step)
    ends = (float(f[worst]), float(w[worst])) if apart.size else (0.0, 0.0)
    return Difference(w.size, int(same.sum()), distance, unit, allowed, worst, *ends)


def step_of(graph: Graph, name: str) -> float | None:
    """The quantisation step of a float tensor that a Dequantize computes; None for others."""
    tensor = graph.tensors[name]
    if not tensor.dtype.is_float:
        return None
    node = graph.producers().get(name)
    while node is not None:
        source: Tensor | None = graph.tensors.get(node.inputs[0]) if node.inputs else None
        if source is None or source.is_constant:
            return None
        if source.quant is not None and not source.dtype.is_float:
            whole = isinstance(node.op, Dequantize) and not source.quant.per_channel
            return source.quant.scale if whole else None
        if not node.op.movement:
            return None
        node = graph.producers().get(source.name)
    return None


def slack_of(graph: Graph, name: str) -> float:
    """How much one quantisation step in an earlier layer may change a float tensor.

    Two steps of the last quantised tensor before it, relative to the largest value: a softmax can
    change by this much if two of its inputs do. 0 for a tensor that depends on no quantised one.
    """
    node = graph.producers().get(name)
    while node is not None:
        sources = [graph.tensors[n] for n in node.inputs if n and not graph.tensors[n].is_constant]
        for source in sources:
            if source.quant is not None and not source.quant.per_channel:
                return 2 * source.quant.scale
        node = graph.producers().get(sources[0].name) if sources else None
    return 0.0


def state_step_of(graph: Graph, name: str) -> float:
    """The step of the int8 states that a tensor depends on; 0 without recurrent layers on integers.

    They round their state after every step of the sequence; other runtimes keep it as float.
    """
    producers, largest = graph.producers(), 0.0
    seen, rest = set[str](), [name]
    while rest:
        node = producers.get(rest.pop())
        if node is None:
            continue
        rest += [source for source in node.inputs if source and source not in seen]
        seen.update(node.inputs)
        if isinstance(node.op, RecurrentInt8):
            largest = max(largest, node.op.scale)
    return largest


def signal_to_noise_db(found: Array, wanted: Array) -> float:
    """The ratio of the expected values to the difference, in decibels; rows are samples.

    What is the same for every sample is no signal, unless nothing else is there.
    """
    f, w = (np.asarray(a, np.float64).reshape(len(a), -1) for a in (found, wanted))
    noise = float(((f - w) ** 2).sum())
    moved = float(((w - w.mean(axis=0)) ** 2).sum()) * len(w) / max(len(w) - 1, 1) if w.size else 0.0
    signal = moved if moved > 0 else float((w**2).sum())
    return float("inf") if noise == 0 else 10 * float(np.log10(max(signal, 1e-300) / noise))
