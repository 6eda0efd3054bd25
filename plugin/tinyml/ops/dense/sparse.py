# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Dense layers whose weights are mostly zero: mel filter banks, pruned layers. Only the others are stored.

Where these lie side by side, as in filters, they are stored as runs: the first input, the number of weights,
the weights. Scattered ones have an index each. All kernels add in the order of the inputs.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer
from tinyml.ops.framework.kernel import Kernel, Library, Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.byte_weights import byte_form, bytes_times_scales
from tinyml.ops.weighted.records import constant_weights, float_limits, float_tensors, matrix
from tinyml.ops.weighted.weighted import Weighted

MOST = 0.5
"""Share of weights that are not zero up to which this is faster and smaller: an index costs two bytes."""

TOGETHER = 4
"""Weights of a run, on average, from which runs are faster than an index for each weight."""

RUN_BYTES = 4
"""What a run costs beside its weights: its first input and its length."""


@dataclass(frozen=True)
class Runs:
    """The parts of a matrix that are stored. A short gap of zeros is part of a run."""

    weights: Array
    places: Array  # of each run: the first input and the number of weights
    counts: Array  # of each output: the number of its runs

    @property
    def bytes(self) -> int:
        return self.weights.nbytes + self.places.nbytes


def find_runs(weights: Array) -> Runs:
    """Zeros between two weights are stored where a new run would take as many bytes."""
    gap = RUN_BYTES // weights.itemsize
    stored: list[Array] = []
    places: list[tuple[int, int]] = []
    counts = np.zeros(len(weights), np.uint16)
    for output, row in enumerate(weights):
        used = np.flatnonzero(row)
        if not used.size:
            continue
        breaks = np.flatnonzero(np.diff(used) > gap + 1)
        firsts, lasts = used[np.append(0, breaks + 1)], used[np.append(breaks, -1)]
        counts[output] = len(firsts)
        for first, last in zip(firsts, lasts, strict=True):
            places.append((first, last + 1 - first))
            stored.append(row[first : last + 1])
    return Runs(
        np.concatenate([np.zeros(0, weights.dtype), *stored]),
        np.array(places, np.uint16).reshape(-1, 2),
        counts,
    )


def mostly_zero(layer: Layer) -> bool:
    """At least half of the weights are zero, and there are at most 65,535 inputs."""
    weights = layer.input(1).value
    return bool(weights.shape[1] <= 0xFFFF and np.count_nonzero(weights) <= MOST * weights.size)


def in_runs(layer: Layer) -> bool:
    """Non-zero weights form runs of at least four on average."""
    runs = find_runs(layer.input(1).value)
    return len(runs.weights) >= TOGETHER * len(runs.places)


def few_bytes(layer: Layer) -> bool:
    """Stored without zeros, the weights and their positions take at most half of the bytes."""
    form = byte_form(layer.input(1).value)
    return form is not None and find_runs(form[0]).bytes <= MOST * form[0].size


def _walked(layer: Layer[Weighted], runs: Runs) -> Work:
    """dense_runs_f32_s8.c and dense_runs_f32.c. Zeros in short gaps are shorter products without an FPU."""
    rows = layer.output.elements // layer.output.shape[-1]
    return {
        "calls": 1,
        "rows": rows,
        "outputs": layer.output.elements,
        "runs": rows * len(runs.places),
        "elements": rows * len(runs.weights),
        "products": rows * int(np.count_nonzero(runs.weights)),
    }


class DenseRunsOfBytes(Kernel[Weighted]):
    """Runs of weights of one byte, with a scale for each output."""

    name = "tinyml_dense_runs_f32_s8"
    library = Library.PORTABLE
    sources = ("dense/dense_runs_f32_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        float_tensors,
        constant_weights,
        mostly_zero,
        bytes_times_scales,
        few_bytes,
    )

    def emit(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        form = byte_form(layer.input(1).value)
        assert form is not None
        sheet.include("<tinyml/byte_weights.h>")
        members = {
            **matrix(layer),
            **_stored(find_runs(form[0]), sheet),
            ".scales": sheet.table("scales", form[1]),
            **float_limits(layer, sheet),
        }
        _call(self.name, members, sheet)

    def loop_counts(self, layer: Layer[Weighted], target: Target) -> Work | None:
        form = byte_form(layer.input(1).value)
        return None if form is None else _walked(layer, find_runs(form[0]))


class DenseRuns(Kernel[Weighted]):
    """Runs of float weights."""

    name = "tinyml_dense_runs_f32"
    library = Library.PORTABLE
    sources = ("dense/dense_runs_f32.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (float_tensors, constant_weights, mostly_zero, in_runs)

    def emit(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        sheet.include("<tinyml/dense.h>")
        runs = find_runs(layer.input(1).value)
        _call(self.name, {**matrix(layer), **_stored(runs, sheet), **float_limits(layer, sheet)}, sheet)

    def loop_counts(self, layer: Layer[Weighted], target: Target) -> Work | None:
        return _walked(layer, find_runs(layer.input(1).value))


class DenseSparse(Kernel[Weighted]):
    """Float products with the weights that are not zero, which have an index each."""

    name = "tinyml_dense_sparse_f32"
    library = Library.PORTABLE
    sources = ("dense/dense_sparse_f32.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (float_tensors, constant_weights, mostly_zero)

    def emit(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        weights = layer.input(1).value
        output, place = np.nonzero(weights)
        counts = np.bincount(output, minlength=len(weights))
        sheet.include("<tinyml/dense.h>")
        members = {
            **matrix(layer),
            ".weights": sheet.table("weights", weights[output, place]),
            ".places": sheet.table("places", place.astype(np.uint16)),
            ".counts": sheet.table("counts", counts.astype(np.uint16)),
            **float_limits(layer, sheet),
        }
        _call(self.name, members, sheet)


def _stored(runs: Runs, sheet: Sheet) -> dict[str, object]:
    """Members that both records of runs have."""
    return {
        ".weights": sheet.table("weights", runs.weights),
        ".runs": sheet.table("runs", runs.places.reshape(-1)),
        ".counts": sheet.table("counts", runs.counts),
    }


def _call(function: str, members: dict[str, object], sheet: Sheet) -> None:
    name = sheet.record(f"struct {function}", "params", members)
    sheet.call(function, name, sheet.x(), sheet.y())
