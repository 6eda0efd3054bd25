# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.compile``: a model to C, in memory.

Builds do this for each model, and most need no report, estimate or learning: those are imported when needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyml.api.choices import CompileSettings
from tinyml.api.data import DataLike, data_file, example_of
from tinyml.api.printed_tables import frame
from tinyml.api.sources import Model, ModelLike, Port, as_model
from tinyml.base.errors import ConfigError, did_you_mean
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Graph, Shape
from tinyml.pipeline import Compiled, Observer, Options, compile_model, write_folder
from tinyml.report.stages import StageFacts, Watch
from tinyml.settings import table
from tinyml.settings.quantize_request import Request
from tinyml.settings.setting import PYTHON

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tinyml.api.adapting import Adapted
    from tinyml.quantize.report import Report as QuantizationReport
    from tinyml.report.facts import Report


@dataclass(frozen=True)
class CompiledModel:
    """Plain C and its memory plan. ``files`` maps file names to text."""

    model: Model = field(repr=False)  # what was compiled
    options: Options = field(repr=False)  # with which settings
    built: Compiled = field(repr=False)  # graph, plan and files, for inspection
    stages: tuple[StageFacts, ...] = field(repr=False)  # the graph after each pass

    def __repr__(self) -> str:
        return (
            f"CompiledModel({self.name!r}, target={self.target!r}, arena_bytes={self.arena_bytes}, "
            f"weights_bytes={self.weights_bytes})"
        )

    @property
    def name(self) -> str:
        """The prefix in C."""
        return self.built.name

    @property
    def target(self) -> str:
        """The core that the C is for."""
        return str(self.summary["target"])

    @property
    def files(self) -> Mapping[str, str]:
        """The generated files: their text by name."""
        return self.built.files

    @property
    def summary(self) -> Mapping[str, Any]:
        """The content of ``NAME.json``: sizes, inputs, outputs, layers, and the sources to link."""
        return self.built.summary

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Name, shape and type of each input."""
        return tuple(Port.of(self.built.graph.tensors[name]) for name in self.built.graph.inputs)

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Name, shape and type of each output."""
        return tuple(Port.of(self.built.graph.tensors[name]) for name in self.built.graph.outputs)

    @property
    def arena_bytes(self) -> int:
        """RAM for the tensors of one run."""
        return int(self.summary["arena_bytes"])

    @property
    def state_bytes(self) -> int:
        """RAM that keeps its content between runs."""
        return int(self.summary["state_bytes"])

    @property
    def weights_bytes(self) -> int:
        """Flash for constants."""
        return int(self.summary["weights_bytes"])

    @property
    def flash_bytes(self) -> int | None:
        """Weights, tables and code, estimated; None for a core without measured costs."""
        from tinyml.cost.estimate import estimate_for

        found = estimate_for(self.built)
        return found.flash_bytes if found else None

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one run."""
        return int(self.summary["macs"])

    @property
    def quantization(self) -> QuantizationReport | None:
        """The loss of accuracy, if the model was quantised here."""
        return self.built.quantization

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about how the model was read, and hints at what costs much."""
        from tinyml.cost.hints import hints

        return (*self.built.graph.notes, *hints(self.built))

    def report(self) -> Report:
        """Layers, memory plan and passes as plain data; what `tinyml report --json` writes."""
        from tinyml.report.collect import describe

        return describe(self.built, self._file_name, self.options.kernels, list(self.stages))

    def write(
        self,
        folder: str | Path,
        *,
        report: bool = False,
        depfile: Path | None = None,
        sources: Sequence[Path] = (),
    ) -> list[Path]:
        """Write the C into a folder; returns the files that changed.

        :param folder: made if it does not exist
        :param report: also write the report
        :param depfile: a file for ninja and make that lists ``sources`` as the dependencies of the C
        :param sources: see ``depfile``
        """
        others: Mapping[str, str] = {}
        if report:
            from tinyml.report.collect import report_files

            others = report_files(self.built, self._file_name, self.options.kernels, list(self.stages))
        return write_folder(self.built, Path(folder), others, depfile, sources)

    def adapt(self, x: DataLike | None = None, y: DataLike | None = None, *, batch: bool = False) -> Adapted:
        """What the model learns from examples, as a device would in every bit.

        The model must be compiled with ``adapt=``.

        :param x: the examples, one per row; default: nothing is learnt yet
        :param y: their labels; default: those in ``x``
        :param batch: one step with all rows instead of one for each
        """
        if self.built.adapt is None:
            raise ConfigError(
                f"{self.name} was not compiled to learn", 'tinyml.compile(..., adapt="last"), or "prototypes"'
            )
        from tinyml.api.adapting import Adapted

        adapted = Adapted(self.name, self.built.graph, self.built.adapt)
        if x is not None:
            adapted.learn(x, y, batch=batch)
        return adapted

    @property
    def _file_name(self) -> str:
        return self.model.path.name if self.model.path else self.model.name

    def _repr_html_(self) -> str:
        from tinyml.report.html import page

        return frame(page(self.report()))


def compile(
    model: ModelLike,
    example: Any = None,
    *,
    name: str = "",
    shapes: Mapping[str, Shape] | None = None,
    cmsis_nn: bool = False,
    calibration: DataLike | None = None,
    **settings: Unpack[CompileSettings],
) -> CompiledModel:
    """Compile a model to C.

    :param model: a file, bytes, or a model of a training framework
    :param example: example inputs of a PyTorch module or a JAX function, which determine the shapes: an
        array or tensor, a tuple of them, or one shape
    :param name: the prefix in C (default: the file's name)
    :param shapes: shapes of inputs that the model leaves open: ``{"input": (1, 16, 8)}``; default: 1 for
        each open axis
    :param cmsis_nn: whether the firmware has CMSIS-NN, so that ``kernels="auto"`` may choose from it
    :param calibration: real inputs: a float model becomes int8 first (``tinyml.quantize`` has more
        settings)
    :param settings: those of docs/settings.md as keywords: ``target="cortex-m4"``, ``optimize="ram"``,
        ``io="rows"``, ``npu="ethos-u55-128"``
    """
    known = table.settings(PYTHON)
    for key in settings:
        if key not in known:
            raise ConfigError(
                f"compile() has no setting {key!r}{did_you_mean(key, known)}", f"one of: {', '.join(known)}"
            )
    if example is None and calibration is not None:
        example = example_of(calibration)
    source = as_model(model, example, name=name, shapes=shapes)
    if source.chosen:
        settings = {"outputs": source.chosen, **settings}
    with data_file(calibration, "calibration") as path:
        options = Options(
            source.name,
            shapes=source.shapes,
            quantize=Request(path) if path else None,
            cmsis_nn=cmsis_nn,
            **settings,
        )
        return build(source, options)


def build(model: Model, options: Options, observe: Observer | None = None) -> CompiledModel:
    """Compile with the pipeline's own options; ``observe`` is called with the graph after each stage."""
    watch = Watch()

    def note(stage: str, graph: Graph) -> None:
        watch(stage, graph)
        if observe:
            observe(stage, graph)

    with model.file() as path:
        compiled = compile_model(path, options, note)
    return CompiledModel(model, options, compiled, tuple(watch.stages))


def as_compiled(model: ModelLike, target: str, example: Any = None) -> CompiledModel:
    """A model, compiled for ``target``; one that is compiled for another core is compiled again."""
    if not isinstance(model, CompiledModel):
        return compile(model, example, target=target)
    if model.target == target:
        return model
    from dataclasses import replace

    return build(model.model, replace(model.options, target=target))
