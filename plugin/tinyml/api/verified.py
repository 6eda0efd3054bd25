# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.verify``: does the compiled C compute what the model's own runtime computes?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tinyml.api.choices import Machine, Reference
from tinyml.api.compiled import as_compiled
from tinyml.api.data import DataLike, check_data, check_names, data_file
from tinyml.api.printed_tables import table
from tinyml.api.sources import ModelLike
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.compare import check
from tinyml.datasets.generated_samples import generated
from tinyml.datasets.model_inputs import load_samples
from tinyml.harness import Standalone, find_machine


@dataclass(frozen=True)
class Verification:
    """What `tinyml verify` prints. True where it agrees: ``assert tinyml.verify(model)``."""

    model: str  # its prefix in C
    machine: str  # where the C ran
    reference: str  # what it was compared with
    agrees: bool  # within the tolerance
    equal: int  # values that are equal
    values: int  # of all values
    outputs: tuple[tuple[int, str, str], ...]  # sample, output, and how it compares, in words
    causes: tuple[str, ...] = ()  # where they part, if they differ
    note: str = ""  # why they may not be equal

    def __bool__(self) -> bool:
        return self.agrees

    @property
    def sentence(self) -> str:
        """The result in words."""
        verb = "agrees" if self.agrees else "differs"
        others = ", the others within the tolerance" if self.agrees and self.equal < self.values else ""
        return (
            f"{self.model!r} {verb} on {self.machine} with {self.reference}: "
            f"{self.equal:,} of {self.values:,} values equal{others}"
        )

    def __repr__(self) -> str:
        return f"Verification({self.sentence})"

    def _repr_html_(self) -> str:
        rows = [*self.outputs, *(("", "cause", cause) for cause in self.causes)]
        return table([("", "", self.sentence), *rows], ("sample", "output", ""))


def verify(
    model: ModelLike,
    inputs: DataLike | None = None,
    *,
    on: Machine = "host",
    samples: int = 4,
    reference: Reference = "auto",
    steps: float | None = None,
    tolerance: float | None = None,
    example: Any = None,
) -> Verification:
    """Compare the compiled C, on the host or on an emulated core, with the model's own runtime.

    :param model: a file, bytes, or a model of a training framework; one from ``tinyml.compile`` is taken as
        it is
    :param inputs: an array, or arrays by input name, with one row per run; default: generated
    :param on: where the C runs: ``host``, or an emulated core such as ``qemu-cortex-m4``
    :param samples: how many inputs are generated
    :param reference: what to compare with; ``auto``: onnxruntime or LiteRT by the format of the file, or
        the compiler's own operators in numpy where it is not installed
    :param steps: the allowed difference of integers, in steps of the quantisation; docs/measure.md has the
        defaults
    :param tolerance: the allowed difference of floats, as a part of the largest value
    :param example: example inputs of a PyTorch module or a JAX function, which determine the shapes: an
        array or tensor, a tuple of them, or one shape
    """
    if samples < 1:
        raise ConfigError(f"samples={samples} is not at least 1")
    compiled = as_compiled(model, find_machine(on).target.name, example)
    with compiled.model.file() as path:
        subject = check.subject(path, replace(compiled.options, name=compiled.name))
        graph = subject.compiled.graph
        if inputs is None:
            given = generated(graph, samples)
        else:
            check_names(inputs, graph)
            with data_file(inputs, "inputs") as data:
                assert data is not None
                check_data(data)
                given = load_samples(data, graph)
        found = check.check(subject, Standalone(on), given, reference, steps, tolerance)
    return Verification(
        compiled.name,
        on,
        found.reference,
        found.fine,
        found.equal,
        found.values,
        tuple((line.sample, line.output, str(line.difference)) for line in found.lines),
        tuple(found.causes),
        found.note,
    )
