# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The only caller of the stages, in order. The shells call this module and print."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyml import __version__, importers
from tinyml.adapt.plan import AdaptPlan, plan_adapt
from tinyml.base import limits
from tinyml.base.errors import ConfigError, ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import check_name, model_name
from tinyml.base.progress import Progress, silent
from tinyml.cores.targets import find_target
from tinyml.emit import emit
from tinyml.emit.feed import feed_code
from tinyml.emit.model import Provenance
from tinyml.emit.output_folder import write_depfile as write_depfile
from tinyml.emit.output_folder import write_files
from tinyml.emit.probe import probe_files
from tinyml.emit.summary import summarize
from tinyml.features.feed import attach, check_training
from tinyml.features.settings import FrontEnd
from tinyml.importers import ModelFile as ModelFile
from tinyml.importers import read_model as read_model
from tinyml.importers import with_outputs as with_outputs
from tinyml.ir import Array, Graph, Shape
from tinyml.ir.bodies import in_bodies
from tinyml.ir.interpreter import interpret
from tinyml.ir.verifier import check, verify
from tinyml.memory.bands.banded import banded_layers as banded_layers
from tinyml.memory.bands.banded import calls_in_bands as calls_in_bands
from tinyml.memory.bands.row_arrangement import row_order
from tinyml.memory.float16_sums import has_float16_sums as has_float16_sums
from tinyml.memory.loops.placed import looped_layers as looped_layers
from tinyml.memory.placement import LIBRARIES as LIBRARIES
from tinyml.memory.placement import choose_kernels as choose_kernels
from tinyml.memory.placement import lay_out
from tinyml.memory.plan import Plan, validate_plan
from tinyml.memory.select import Selected as Selected
from tinyml.ops.framework import outside
from tinyml.ops.framework.registration import outside_faults
from tinyml.ops.framework.tally import Tally
from tinyml.passes import PASSES, find_passes, with_fed_rows, without_attention, without_tables
from tinyml.passes import pass_summaries as pass_summaries
from tinyml.passes.int8_interface import int8_interface
from tinyml.passes.savings import Ledger, Saving
from tinyml.player.program import Program as Program
from tinyml.player.program import program_of as player_program
from tinyml.settings.adapt_request import Adapt
from tinyml.settings.class_names import with_classes
from tinyml.settings.optimize import find_goal
from tinyml.settings.options import Options as Options
from tinyml.settings.quantize_request import Request
from tinyml.watch import reference
from tinyml.watch.keys import COUNTED
from tinyml.watch.plan import WatchPlan, channels_of, plan_watch

if TYPE_CHECKING:
    from onnx import ModelProto

    from tinyml.datasets.reader import Samples
    from tinyml.quantize.cache import Result
    from tinyml.quantize.report import Report

LOG = logging.getLogger(__name__)

STAGES: tuple[str, ...] = ("import", *dict.fromkeys(step.__name__ for step in PASSES), "bands")
"""The stages after which an observer is called with the graph."""

Observer = Callable[[str, Graph], None]
"""Called with the name of a stage and the graph after it."""


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
    tallies: Mapping[int, Tally] = field(default_factory=dict)  # what each layer's C does, by step
    watch: WatchPlan | None = None  # the counters of a watched model
    adapt: AdaptPlan | None = None  # what it learns on the device
    files_read: tuple[Path, ...] = ()  # the model and its external data
    read_ns: int = 0  # when, in nanoseconds since 1970


def optimize(
    graph: Graph,
    observe: Observer | None = None,
    steps: Sequence[Callable[[Graph], Graph]] | None = None,
) -> Graph:
    """All passes, or ``steps``; the verifier checks what each changed."""
    verify(graph, "import")
    if observe:
        observe("import", graph)
    for step in PASSES if steps is None else steps:
        limits.check_time()
        after = step(in_bodies(graph, step))
        if not after.is_unchanged(graph):
            verify(after, step.__name__)
            graph = after
        if observe:
            observe(step.__name__, graph)
    return graph


def apply_passes(graph: Graph, names: Sequence[str]) -> Graph:
    """Passes by name, on a graph that a person may have written."""
    steps = find_passes(names)
    check(graph)
    return optimize(graph, steps=steps)


def compile_model(model: Path | ModelFile, options: Options, observe: Observer | None = None) -> Compiled:
    """From a model file to C."""
    path = model if isinstance(model, Path) else model.path
    name = options.name or model_name(path)
    check_name(name)
    outside.load(options.operators)
    outside.load_installed()
    read_ns = time.time_ns()
    file = with_outputs(read_model(model), options.outputs)
    if options.frontend:
        check_training(options.frontend, importers.metadata(file))
    quantized = _quantized(file, options)
    with limits.timed(), outside_faults():
        graph = _imported(file, quantized, options)
        origin = Provenance(path.name, file.sha256, options.describe())
        compiled = compile_graph(graph, name, origin, options, observe, _watched(file, quantized, options))
    report = quantized.report if quantized else None
    return replace(compiled, quantization=report, files_read=tuple(file.files), read_ns=read_ns)


def quantize_model(
    model: Path | ModelFile,
    request: Request,
    shapes: Mapping[str, Shape] | None = None,
    progress: Progress | None = None,
    operators: Sequence[Path] = (),
    bounds: Mapping[str, int] | None = None,
) -> Result:
    """From a float model file to int8, or the cached result. Bounds are the lengths of a decoder's caches."""
    from tinyml.quantize import cache

    outside.load(operators)
    outside.load_installed()
    file = read_model(model)
    lengths = _lengths(file, shapes or {}, bounds) if bounds else shapes
    return cache.quantized(file, request, lengths, progress or silent)


def _lengths(file: ModelFile, shapes: Mapping[str, Shape], bounds: Mapping[str, int]) -> Mapping[str, Shape]:
    """The shapes, with those of caches whose length is a bound; others say nothing about an int8 file."""
    lengths, others = importers.stated_lengths(file, shapes, bounds)
    if others:
        raise ConfigError(
            f"{', '.join(others)}: not the length of a cache that grows",
            "give other bounds to the command that compiles the int8 model",
        )
    return lengths


def read_graph(
    model: Path | ModelFile,
    shapes: Mapping[str, Shape] | None = None,
    bounds: Mapping[str, int] | None = None,
) -> Graph:
    """A model as it is imported, before any pass."""
    return importers.load(model, shapes, bounds)


def read_onnx(file: ModelFile) -> ModelProto:
    """An ONNX model with all of its data inside, as other runtimes take it."""
    from tinyml.importers import onnx_model

    return onnx_model.parse(file)


def read_samples(request: Request, graph: Graph) -> Samples:
    """Data for a compiled model, and labels of any kind if there are some."""
    from tinyml.datasets.model_inputs import rows

    return rows(request, graph)


def _quantized(file: ModelFile, options: Options) -> Result | None:
    if options.quantize is None:
        return None
    request = replace(options.quantize, frontend=options.frontend)
    return quantize_model(file, request, shapes_to_quantize(file, options))


def shapes_to_quantize(file: ModelFile, options: Options) -> Mapping[str, Shape]:
    """Those of the options, and of caches whose length is a bound."""
    return importers.stated_lengths(file, options.shapes, options.bounds)[0]


def _imported(file: ModelFile, quantized: Result | None, options: Options) -> Graph:
    given = importers.read(file, options.shapes, options.bounds)
    if quantized is None:
        return given
    _, bounds = importers.stated_lengths(file, options.shapes, options.bounds)  # the int8 file has caches
    graph = importers.read(ModelFile(file.path, quantized.content), bounds=bounds)
    notes = tuple(dict.fromkeys((*given.notes, *graph.notes)))
    return replace(graph, notes=notes, open_inputs=given.open_inputs)  # the int8 file has none any more


def _watched(file: ModelFile, quantized: Result | None, options: Options) -> Watched:
    """What the model file says about the data that it was calibrated on."""
    if not options.watch:
        return Watched()
    source = ModelFile(file.path, quantized.content) if quantized else file
    text = importers.metadata(source).get(reference.KEY, "")
    return Watched(reference.from_text(text) if text else {}, importers.version(file))


def _counters(graph: Graph, watched: Watched, options: Options, macs: int) -> WatchPlan | None:
    """The counters of a watched model, with the references of its file or of ``watch_data``."""
    if not options.watch:
        return None
    references = dict(watched.references)
    channels: list[reference.Reference] = []
    if options.watch_data is not None:
        request = Request(options.watch_data, samples=sys.maxsize, frontend=options.frontend)
        samples = read_samples(request, graph).inputs
        references |= _references(graph, graph.inputs, samples)
        others = plan_watch(graph, {}, macs).values
        if others and not options.npu:  # which no NPU computes here
            computed = interpret(graph, samples[: max(1, WATCHED_MACS // max(macs, 1))])
            references |= _references(graph, others, computed)
        if options.watch_channels:
            channels = _channels(graph, samples)
    plan = plan_watch(graph, references, macs, watched.version, channels)
    return replace(plan, order=row_order(graph))


def _channels(graph: Graph, samples: Sequence[Mapping[str, Array]]) -> list[reference.Reference]:
    """Of the first input, each on its own."""
    order = row_order(graph)
    count, name = channels_of(graph, order), graph.inputs[0]
    arrays = [order.arranged(sample[name]) if order else sample[name] for sample in samples]
    return [
        reference.of_stored((array[..., channel] for array in arrays), graph.tensors[name])
        for channel in range(count)
    ]


WATCHED_MACS = 200_000_000
"""How much is computed at most to know what the outputs of a watched model are like."""


def _references(
    graph: Graph, names: Sequence[str], samples: Sequence[Mapping[str, Array]]
) -> dict[str, reference.Reference]:
    return {
        name: reference.of_stored((sample[name] for sample in samples), graph.tensors[name])
        for name in names
        if graph.tensors[name].dtype in COUNTED
    }


def _held_out(graph: Graph, plan: AdaptPlan, request: Adapt, options: Options) -> AdaptPlan:
    """The plan with what it takes from files: the embeddings of its self-test, the inputs of the training."""
    if request.reference is not None:
        if not request.reference.exists():
            raise ConfigError(
                f"adapt: there is no reference {request.reference}",
                "samples of the training, or no reference",
            )
        data = Request(request.reference, samples=sys.maxsize, frontend=options.frontend)
        return plan.with_reference(read_samples(data, graph).inputs)
    if request.holdout is None:
        return plan
    from tinyml.adapt.held_out import with_holdout

    if not request.holdout.exists():
        raise ConfigError(
            f"adapt: there is no holdout file {request.holdout}", "samples with labels (.npz), or no holdout"
        )
    data = Request(request.holdout, samples=sys.maxsize, frontend=options.frontend)
    return with_holdout(graph, plan, read_samples(data, graph), request.holdout, request.tolerance)


@dataclass(frozen=True)
class Watched:
    """What a model file says for the counters of a watched model."""

    references: Mapping[str, reference.Reference] = field(default_factory=dict)  # by input and output
    version: int = 0


def compile_graph(
    graph: Graph,
    name: str,
    origin: Provenance,
    options: Options,
    observe: Observer | None = None,
    watched: Watched | None = None,
) -> Compiled:
    """From an imported graph to C, with the prefix ``name``."""
    target, goal = find_target(options.target), find_goal(options.optimize)
    graph = with_classes(graph, options.classes)
    ledger = Ledger()

    def note(stage: str, graph: Graph) -> None:
        ledger.note(stage, graph)
        LOG.debug("%s: %d layers", stage, len(graph.nodes))
        if observe:
            observe(stage, graph)

    steps = without_attention(PASSES) if options.attention_apart else PASSES
    steps = with_fed_rows(steps) if options.io.rows else steps
    graph = optimize(graph, note, without_tables(steps) if options.npu else steps)
    if options.io.int8:
        graph = int8_interface(graph)
        verify(graph, "int8_interface")
        note("int8_interface", graph)
    if options.expose:
        graph = replace(graph, outputs=tuple(dict.fromkeys((*graph.outputs, *options.expose))))
    if not (graph.outputs or graph.states):
        raise ModelError("the model has no outputs", "export it with outputs: nothing else is computed")
    if options.npu:
        from tinyml.npu.offload import on_npu

        graph = on_npu(graph, options)
        verify(graph, "npu")
    learning = None
    if options.adapt:
        graph, learning = plan_adapt(graph, name, options.adapt, origin.sha256)
        verify(graph, "adapt")
        learning = _held_out(graph, learning, options.adapt, options)
        graph = replace(graph, notes=(*graph.notes, *learning.notes))
    feed = feed_code(name, attach(options.frontend, graph)) if options.frontend else None
    graph, selected, placed = lay_out(graph, target, options)
    if observe:
        observe("bands", graph)
    LOG.debug("plan: %d bytes of arena in %d steps", placed.arena_bytes, len(selected))
    sources = [file for file in options.operators if outside.is_c(file)]
    macs = sum(chosen.layer.op.macs(chosen.layer) for chosen in selected)
    counters = _counters(graph, watched or Watched(), options, macs)
    if counters:
        graph = replace(graph, notes=(*graph.notes, *counters.notes))
    emitted = emit(name, graph, placed, selected, target, origin, feed, sources, counters, learning)
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
        emitted.watch,
        emitted.adapt,
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
        tallies=emitted.tallies,
        watch=counters,
        adapt=learning,
    )


def check_plan(compiled: Compiled) -> None:
    """Simulate a run byte by byte, as every compilation does; a wrong byte is a PlanError."""
    validate_plan(compiled.graph, compiled.selected, compiled.plan)


def program_of(compiled: Compiled) -> Program:
    """A compiled model as a program for the player."""
    target = find_target(str(compiled.summary["target"]))
    return player_program(compiled.name, compiled.graph, compiled.plan, compiled.selected, target)


def compile_built(graph: Graph, options: Options) -> Compiled:
    """Compile a graph that came from no file."""
    return compile_graph(graph, graph.name, Provenance(graph.name, "0" * 64, options.describe()), options)


def write_folder(
    compiled: Compiled,
    folder: Path,
    others: Mapping[str, str] | None = None,
    depfile: Path | None = None,
    sources: Sequence[Path] = (),
) -> list[Path]:
    """Write the C, and ``others`` with it; returns the files that changed.

    ``depfile`` lists ``sources`` as the dependencies of the C, for ninja and make. The C then gets the time
    at which the model was read: one that was replaced since is newer, so the next build compiles it.
    """
    changed = write_files(folder, {**compiled.files, **(others or {})})
    if depfile:
        source = folder / f"{compiled.name}.c"
        write_depfile(depfile, source, sources)
        os.utime(source, ns=(compiled.read_ns, compiled.read_ns))
    return changed


def compile_frontend(frontend: FrontEnd, name: str, target: str) -> dict[str, str]:
    """A front end alone, as generated files that the harness can run."""
    return probe_files(name, frontend, find_target(target))
