# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.report`` and ``tinyml.profile``: the layers of a model, their memory and their cost."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any

from tinyml.api.choices import Machine
from tinyml.api.compiled import CompiledModel, as_compiled, compile
from tinyml.api.printed_tables import frame, table
from tinyml.api.sources import ModelLike
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.whole_files import save
from tinyml.harness import find_machine
from tinyml.report.collect import measured
from tinyml.report.facts import Report
from tinyml.report.html import page
from tinyml.report.markdown import markdown


@dataclass(frozen=True)
class ModelReport:
    """What `tinyml report` shows. In a notebook it is the page; ``facts`` has all of it as plain data."""

    facts: Report = field(repr=False)  # as plain data

    def __repr__(self) -> str:
        facts = self.facts
        measured = facts.measured
        counted = f", {measured.instructions:,} instructions on {measured.machine}" if measured else ""
        return (
            f"ModelReport({facts.model!r} for {facts.target}: {len(facts.layers)} layers, "
            f"arena {facts.arena_bytes:,} bytes, weights {facts.weights_bytes:,} bytes{counted})"
        )

    @property
    def html(self) -> str:
        """One page that loads nothing from elsewhere."""
        return page(self.facts)

    @property
    def markdown(self) -> str:
        """A summary as tables."""
        return markdown(self.facts, [])

    @property
    def json(self) -> str:
        """What `tinyml report --json` writes."""
        return self.facts.to_json()

    def write(self, file: str | Path) -> Path:
        """Write the page, the tables or the data, by the ending of the file.

        :param file: ``.html``, ``.md`` or ``.json``
        """
        path = Path(file)
        texts = {".html": "html", ".md": "markdown", ".json": "json"}
        if path.suffix not in texts:
            raise ConfigError(f"a report cannot be written to {path.name}", f"one of: {', '.join(texts)}")
        save(path, str(getattr(self, texts[path.suffix])))
        return path

    def _repr_html_(self) -> str:
        return frame(self.html)


def report(model: ModelLike, *, on: Machine | None = None, example: Any = None) -> ModelReport:
    """Layers, memory plan and cost of a model; with ``on``, measured on an emulated core.

    :param model: a file, bytes, or a model of a training framework; one from ``tinyml.compile`` is taken as
        it is
    :param on: an emulated core, such as ``qemu-cortex-m4``: counts instructions of each layer, flash by
        part, and stack. Default: estimates for the core that the model is compiled for
    :param example: example inputs of a PyTorch module or a JAX function, which determine the shapes: an
        array or tensor, a tuple of them, or one shape
    """
    if on is None:
        return ModelReport((model if isinstance(model, CompiledModel) else compile(model, example)).report())
    compiled = as_compiled(model, find_machine(on).target.name, example)
    return ModelReport(measured(compiled.report(), compiled.built, on))


@dataclass(frozen=True)
class ProfiledLayer:
    """One layer of a run. Layers that do no work have 0 instructions."""

    name: str  # of the node in the model
    kind: str  # what it computes
    instructions: int  # of one run
    cycles_estimated: int | None  # for memory without wait states
    macs: int  # multiply-accumulates


@dataclass(frozen=True)
class LayerProfile:
    """What `tinyml profile` prints: instructions of a run and of its layers, counted on an emulated core."""

    model: str  # its prefix in C
    machine: str  # where it ran
    instructions: int  # of one run
    layers: tuple[ProfiledLayer, ...] = field(repr=False)  # in the order of execution

    def _repr_html_(self) -> str:
        rows = [(one.name, one.kind, f"{one.instructions:,}", f"{one.macs:,}") for one in self.layers]
        total = (self.model, f"on {self.machine}", f"{self.instructions:,}", "")
        return table([total, *rows], ("layer", "kind", "instructions", "MACs"))


def profile(model: ModelLike, *, on: Machine = "qemu-cortex-m3", example: Any = None) -> LayerProfile:
    """Count the instructions of each layer on an emulated core.

    :param model: a file, bytes, or a model of a training framework; one from ``tinyml.compile`` is taken as
        it is
    :param on: the emulated core, such as ``qemu-cortex-m4``
    :param example: example inputs of a PyTorch module or a JAX function, which determine the shapes: an
        array or tensor, a tuple of them, or one shape
    """
    facts = report(model, on=on, example=example).facts
    assert facts.measured is not None
    layers = tuple(
        ProfiledLayer(layer.name, layer.label, layer.instructions or 0, layer.cycles_estimated, layer.macs)
        for layer in facts.layers
    )
    return LayerProfile(facts.model, on, facts.measured.instructions, layers)
