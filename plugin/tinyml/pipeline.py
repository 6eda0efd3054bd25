# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The only caller of the stages, in order. The shells call this module and print."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyml import __version__, importers, limits, outside
from tinyml.bands.banded import Banded
from tinyml.bands.feeding import rows_in_vain, with_arrival
from tinyml.emit import emit
from tinyml.emit.feed import feed_code
from tinyml.emit.model import Provenance
from tinyml.emit.probe import probe_files
from tinyml.errors import ConfigError
from tinyml.features.feed import attach, check_training
from tinyml.features.settings import FrontEnd
from tinyml.goals import Goal, find_goal
from tinyml.importers import ModelFile as ModelFile
from tinyml.importers import read_model as read_model
from tinyml.ir import Array, Graph, Layer, Shape
from tinyml.kernel import Kernel
from tinyml.leaner import Leaner
from tinyml.naming import check_name, model_name
from tinyml.npu.operator import EthosU, packed
from tinyml.package.folder import write_depfile, write_files
from tinyml.package.summary import summarize
from tinyml.passes import PASSES
from tinyml.passes.int8_interface import int8_interface
from tinyml.passes.savings import Ledger, Saving
from tinyml.placing import LIBRARIES as LIBRARIES
from tinyml.placing import Placed, libraries_of, place
from tinyml.placing import choose_kernels as choose_kernels
from tinyml.plan import Plan
from tinyml.progress import Progress, silent
from tinyml.quantize.request import Request
from tinyml.registration import outside_faults
from tinyml.select import Selected
from tinyml.targets import Target, find_target
from tinyml.verify import verify

if TYPE_CHECKING:
    from onnx import ModelProto

    from tinyml.quantize.cache import Result
    from tinyml.quantize.data import Samples
    from tinyml.quantize.report import Report

LOG = logging.getLogger(__name__)

IO_CHOICES = ("arena", "caller", "int8", "caller,int8", "rows", "rows,int8")
"""Inputs and outputs: in the arena or in the caller's memory; or the input in rows, as it arrives.

With ``int8``, they are integers where the model's are float.
"""

STAGES: tuple[str, ...] = ("import", *dict.fromkeys(step.__name__ for step in PASSES), "bands")
"""The stages after which an observer is called with the graph."""

Observer = Callable[[str, Graph], None]
"""Called with the name of a stage and the graph after it."""


@dataclass(frozen=True)
class Options:
    """Everything except the model that determines the generated code."""

    name: str = ""  # C prefix; default: the file's name
    target: str = "cortex-m3"
    kernels: str = "auto"  # or a key of LIBRARIES: CMSIS-NN wherever it has a kernel, or nowhere
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    io: str = "arena"  # one of IO_CHOICES
    expose: tuple[str, ...] = ()  # inner tensors to expose as outputs, for inspection
    quantize: Request | None = None  # a float model is made int8 first
    frontend: FrontEnd | None = None  # what makes the model's input from samples
    classes: tuple[str, ...] = ()  # names of the classes, for the header
    operators: tuple[Path, ...] = ()  # files with operators from outside
    npu: str = ""  # the accelerator that computes what Vela can place on it
    cmsis_nn: bool = False  # whether the build has CMSIS-NN, so that "auto" may use it
    bands: bool = (
        True  # whether layers may be computed a few rows at a time; if not, every tensor exists as a whole
    )

    optimize: str = "balanced"  # what may be spent: a key of goals.GOALS

    @property
    def io_outside(self) -> bool:
        return "caller" in self.io.split(",")

    @property
    def io_rows(self) -> bool:
        return "rows" in self.io.split(",")

    @property
    def io_int8(self) -> bool:
        return "int8" in self.io.split(",")

    def describe(self) -> str:
        """Options that are not the default, for the provenance comment."""
        parts = [f"kernels {self.kernels}"] if self.kernels != "auto" else []
        parts += ["with CMSIS-NN"] if self.kernels == "auto" and self.cmsis_nn else []
        parts += [f"io {self.io}"] if self.io != "arena" else []
        parts += [f"optimize {self.optimize}"] if self.optimize != "balanced" else []
        parts += [f"shape {name}={'x'.join(map(str, shape))}" for name, shape in self.shapes.items()]
        parts += [f"operators {file.name}" for file in self.operators]
        parts += [f"npu {self.npu}"] if self.npu else []
        parts += [self.frontend.describe()] if self.frontend else []
        parts += [self.quantize.describe()] if self.quantize else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Compiled:
    """A compiled model. ``files`` maps file names to text; one of them is ``summary`` as JSON."""

    name: str
    graph: Graph
    selected: tuple[Selected, ...]
    plan: Plan
    files: Mapping[str, str]
    summary: Mapping[str, Any]
    savings: tuple[Saving, ...] = ()  # what each pass saved
    quantization: Report | None = None  # the loss of accuracy, if the model was quantised here
    layer_functions: tuple[str, ...] = ()  # the C of each layer; empty where a layer does no work


def optimize(graph: Graph, observe: Observer | None = None) -> Graph:
    """All passes; the verifier checks what each changed."""
    verify(graph, "import")
    if observe:
        observe("import", graph)
    for step in PASSES:
        limits.check_time()
        after = step(graph)
        if not after.is_unchanged(graph):
            verify(after, step.__name__)
            graph = after
        if observe:
            observe(step.__name__, graph)
    return graph


def compile_model(model: Path | ModelFile, options: Options, observe: Observer | None = None) -> Compiled:
    """From a model file to C."""
    path = model if isinstance(model, Path) else model.path
    name = options.name or model_name(path)
    check_name(name)
    outside.load(options.operators)
    outside.load_installed()
    file = read_model(model)
    if options.frontend:
        check_training(options.frontend, importers.metadata(file))
    quantized = _quantized(file, options)
    with limits.timed(), outside_faults():
        graph = _imported(file, quantized, options)
        origin = Provenance(path.name, file.sha256, options.describe())
        compiled = compile_graph(graph, name, origin, options, observe)
    return replace(compiled, quantization=quantized.report if quantized else None)


def quantize_model(
    model: Path | ModelFile,
    request: Request,
    shapes: Mapping[str, Shape] | None = None,
    progress: Progress | None = None,
    operators: Sequence[Path] = (),
) -> Result:
    """From a float model file to int8, or the cached result."""
    from tinyml.quantize import cache

    outside.load(operators)
    outside.load_installed()
    return cache.quantized(read_model(model), request, shapes, progress or silent)


def read_graph(model: Path | ModelFile, shapes: Mapping[str, Shape] | None = None) -> Graph:
    """A model as it is imported, before any pass."""
    return importers.load(model, shapes)


def read_onnx(file: ModelFile) -> ModelProto:
    """An ONNX model with all of its data inside, as other runtimes take it."""
    from tinyml.importers import onnx_model

    return onnx_model.parse(file)


def read_samples(request: Request, graph: Graph) -> Samples:
    """Data for a compiled model, and labels of any kind if there are some."""
    from tinyml.quantize.rows import rows

    return rows(request, graph)


def _quantized(file: ModelFile, options: Options) -> Result | None:
    if options.quantize is None:
        return None
    return quantize_model(file, replace(options.quantize, frontend=options.frontend), options.shapes)


def _imported(file: ModelFile, quantized: Result | None, options: Options) -> Graph:
    if options.npu and file.is_tflite and quantized is None:
        return _on_npu(file, options)
    given = importers.read(file, options.shapes)
    if quantized is None:
        return given
    graph = importers.read(ModelFile(file.path, quantized.content))
    notes = tuple(dict.fromkeys((*given.notes, *graph.notes)))
    return replace(graph, notes=notes, open_inputs=given.open_inputs)  # the int8 file has none any more


def _on_npu(file: ModelFile, options: Options) -> Graph:
    from tinyml.npu.place import placed

    if options.shapes:
        raise ConfigError(
            "npu and shapes exclude each other: Vela compiles for the shapes in the file",
            "convert the model with the shapes that it runs with",
        )
    return placed(file, options.npu, small=find_goal(options.optimize).name in ("ram", "size"))


def _npu_layers(graph: Graph, options: Options) -> Graph:
    """The parts of a graph that came from ONNX; one from TFLite has them already."""
    from tinyml.npu.place import placed_layers

    if not options.npu or any(isinstance(node.op, EthosU) for node in graph.nodes):
        return graph
    graph = placed_layers(graph, options.npu, small=find_goal(options.optimize).name in ("ram", "size"))
    verify(graph, "npu")
    return graph


def compile_graph(
    graph: Graph, name: str, origin: Provenance, options: Options, observe: Observer | None = None
) -> Compiled:
    """From an imported graph to C, with the prefix ``name``."""
    target, goal = find_target(options.target), find_goal(options.optimize)
    if options.kernels not in ("auto", *LIBRARIES):
        raise ConfigError(f"unknown kernels {options.kernels!r}", f"auto, {', '.join(LIBRARIES)}")
    if options.io not in IO_CHOICES:
        raise ConfigError(f"inputs and outputs cannot be {options.io!r}", " or ".join(IO_CHOICES))
    if options.frontend and options.io_outside:
        raise ConfigError(
            "a front end writes the input itself: it cannot be in the caller's memory", "io arena"
        )
    if options.frontend and options.io_rows:
        raise ConfigError(
            "a front end computes the rows of the input itself: the application cannot feed them", "io arena"
        )
    if options.classes:
        graph = replace(graph, labels=_checked_labels(graph, options.classes))
    ledger = Ledger()

    def note(stage: str, graph: Graph) -> None:
        ledger.note(stage, graph)
        LOG.debug("%s: %d layers", stage, len(graph.nodes))
        if observe:
            observe(stage, graph)

    graph = optimize(graph, note)
    if options.io_int8:
        graph = int8_interface(graph)
        verify(graph, "int8_interface")
        note("int8_interface", graph)
    if options.expose:
        graph = replace(graph, outputs=tuple(dict.fromkeys((*graph.outputs, *options.expose))))
    graph = _npu_layers(graph, options)
    graph = whole = packed(graph, io_outside=options.io == "caller")
    by_rows = options.io_rows and options.bands
    if by_rows:
        graph = with_arrival(graph)
        verify(graph, "io rows")
    feed = feed_code(name, attach(options.frontend, graph)) if options.frontend else None
    graph, selected, placed = _placed(graph, target, options, goal)
    if by_rows and placed.arena_bytes >= sum(graph.tensors[name].bytes for name in graph.inputs):
        _, _, plain = _placed(whole, target, options, goal)
        graph = replace(graph, notes=(*graph.notes, *rows_in_vain(placed, plain, goal)))
    if observe:
        observe("bands", graph)
    LOG.debug("plan: %d bytes of arena in %d steps", placed.arena_bytes, len(selected))
    sources = [file for file in options.operators if outside.is_c(file)]
    emitted = emit(name, graph, placed, selected, target, origin, feed, sources)
    summary = summarize(
        name,
        graph,
        selected,
        placed,
        target,
        origin.sha256,
        __version__,
        emitted.layer_bytes,
        emitted.libm,
        feed,
        emitted.set,
        goal,
    )
    files = {**emitted.files, f"{name}.json": summary.text}
    return Compiled(
        name,
        graph,
        selected,
        placed,
        files,
        summary.data,
        tuple(ledger.entries),
        layer_functions=emitted.layer_functions,
    )


def _placed(graph: Graph, target: Target, options: Options, goal: Goal) -> Placed:
    selected = choose_kernels(graph, target, options.kernels, options.cmsis_nn, goal)
    chaining = goal.chaining if options.bands else None
    leaner = None
    if goal.leaner > 1:
        libraries = libraries_of(options.kernels, options.cmsis_nn)
        leaner = Leaner(target, libraries, goal.leaner, options.io_outside)
    return place(graph, selected, target, chaining, options.io_outside, leaner)


def compile_built(graph: Graph, options: Options) -> Compiled:
    """Compile a graph that came from no file."""
    return compile_graph(graph, graph.name, Provenance(graph.name, "0" * 64, options.describe()), options)


def _checked_labels(graph: Graph, classes: tuple[str, ...]) -> tuple[str, ...]:
    sizes = [graph.tensors[name].shape[-1] for name in graph.outputs if graph.tensors[name].shape]
    if len(classes) not in sizes and sizes != [1] * len(sizes):
        raise ConfigError(
            f"{len(classes)} names of classes, but no output has {len(classes)} elements",
            "one name for each element of the output, in its order",
        )
    return classes


def banded_layers(layer: Layer) -> list[tuple[Layer, Kernel[Any]]] | None:
    """The layers that are computed a few rows at a time inside a layer, with their kernels; else None."""
    if not isinstance(layer.op, Banded):
        return None
    return [(part, link.kernel) for link, part in zip(layer.op.links, layer.op.layers(layer), strict=True)]


def write_folder(
    compiled: Compiled,
    folder: Path,
    others: Mapping[str, str] | None = None,
    depfile: Path | None = None,
    sources: Sequence[Path] = (),
) -> list[Path]:
    """Write the C, and ``others`` with it; returns the files that changed.

    ``depfile`` lists ``sources`` as the dependencies of the C, for ninja and make.
    """
    changed = write_files(folder, {**compiled.files, **(others or {})})
    if depfile:
        write_depfile(depfile, folder / f"{compiled.name}.c", sources)
    return changed


def compile_frontend(frontend: FrontEnd, name: str, target: str) -> dict[str, str]:
    """A front end alone, as generated files that the harness can run."""
    return probe_files(name, frontend, find_target(target))


def compute_features(path: Path, frontend: FrontEnd) -> dict[str, Array]:
    """The features of a recording ("features"), or of all in a folder by their paths below it."""
    from tinyml.quantize import recordings

    if path.is_dir():
        files = {file.relative_to(path).as_posix(): file for file in recordings.find(path, frontend)}
    elif path.is_file():
        files = {"features": path}
    else:
        raise ConfigError(f"there is no recording {path}")
    return {name: frontend.compute(recordings.samples(file, frontend)) for name, file in files.items()}
