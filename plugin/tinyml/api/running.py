# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.run``: a model as compiled C, on this machine or in QEMU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tinyml import harness
from tinyml.api.choices import Machine
from tinyml.api.compiled import CompiledModel, as_compiled
from tinyml.api.data import DataLike, check_data, check_names, data_file
from tinyml.api.printed_tables import table
from tinyml.api.sources import ModelLike
from tinyml.base.lazy_dataclass import dataclass
from tinyml.datasets.arrays import joined, pattern_inputs, preview
from tinyml.ir import Array
from tinyml.pipeline import read_samples
from tinyml.settings.quantize_request import Request
from tinyml.slots.playing import Played


@dataclass(frozen=True, repr=False)
class RunResult:
    """Outputs, and what the machine counted (None on the host, which does not count)."""

    runs: tuple[Mapping[str, Array], ...]  # the outputs of each run by name
    machine: str  # where it ran
    arena_bytes: int  # RAM for the tensors of one run
    instructions: tuple[int, ...] | None = None  # one per run
    stack_bytes: int | None = None  # the deepest of all runs
    cycles: tuple[int, ...] | None = None  # one per run, on a connected device

    @property
    def outputs(self) -> dict[str, Array]:
        """The outputs of all runs by name; those of several runs as rows of one array."""
        return {name: joined([outputs[name] for outputs in self.runs]) for name in self.runs[0]}

    def __getitem__(self, name: str) -> Array:
        return self.outputs[name]

    def facts(self) -> str:
        """Memory and instructions in words."""
        parts = [f"arena {self.arena_bytes:,} bytes"]
        for counted, unit in ((self.instructions, "instructions"), (self.cycles, "cycles")):
            if counted is not None:
                counts = dict.fromkeys((min(counted), max(counted)))
                parts.append(f"{' to '.join(f'{count:,}' for count in counts)} {unit}")
        if self.stack_bytes is not None:
            parts.append(f"stack {self.stack_bytes:,} bytes")
        return ", ".join(parts)

    def __repr__(self) -> str:
        outputs = (f"{name} {'x'.join(map(str, a.shape))}: {preview(a)}" for name, a in self.outputs.items())
        return f"<RunResult on {self.machine}, {self.facts()}; {'; '.join(outputs)}>"

    def _repr_html_(self) -> str:
        rows = [(name, "x".join(map(str, a.shape)), preview(a)) for name, a in self.outputs.items()]
        return table([(f"on {self.machine}", "", self.facts()), *rows], ("output", "shape", "values"))


def run(
    model: ModelLike, inputs: DataLike | None = None, *, on: Machine = "host", example: Any = None
) -> RunResult:
    """Run a model as compiled C on the host or on an emulated core.

    Rows of a model that keeps state are consecutive runs. The outputs of several runs are rows, too.

    :param model: a file, bytes, or a model of a training framework; one from ``tinyml.compile`` is taken as
        it is
    :param inputs: an array, or arrays by input name, with one row per run; default: one run on a fixed
        pattern
    :param on: where the C runs: ``host``, or an emulated core such as ``qemu-cortex-m4``
    :param example: example inputs of a PyTorch module or a JAX function, which determine the shapes: an
        array or tensor, a tuple of them, or one shape
    """
    compiled = as_compiled(model, harness.find_machine(on).target.name, example)
    graph = compiled.built.graph
    if inputs is None:
        return execute(compiled, [pattern_inputs(graph)], on)
    check_names(inputs, graph)
    with data_file(inputs, "inputs") as path:
        assert path is not None
        check_data(path)
        samples = read_samples(Request(path, samples=EVERY), graph).inputs
    return execute(compiled, samples, on)


EVERY = 1 << 31
"""More samples than any data has."""


def played_result(played: Played, samples: Sequence[Mapping[str, Array]]) -> RunResult:
    """Play a pack on samples, one after the other."""
    return _result(played.run(samples), played.machine, played.model.arena_bytes)


def execute(compiled: CompiledModel, samples: Sequence[Mapping[str, Array]], on: str) -> RunResult:
    """Run samples (arrays by input name), one after the other."""
    result = harness.run_files(compiled.files, on, samples, reset_before={0})
    return _result(result, on, compiled.arena_bytes)


def _result(result: harness.Result, on: str, arena_bytes: int) -> RunResult:
    return RunResult(
        tuple(result.outputs),
        on,
        arena_bytes,
        None if result.instructions is None else tuple(result.instructions),
        result.stack_bytes,
    )
