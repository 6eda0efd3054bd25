# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.explore``: all ways to build a model for a board, and those that no other one beats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tinyml.api.choices import Machine, Target
from tinyml.api.compiled import CompiledModel, build
from tinyml.api.costs import cost_of
from tinyml.api.data import DataLike, data_file
from tinyml.api.exploration import Board, Exploration, Point
from tinyml.api.sources import Model, ModelLike, as_model
from tinyml.base.errors import ConfigError, TinymlError, ToolError
from tinyml.base.progress import Progress, silent
from tinyml.cost import cycles as cycle_models
from tinyml.cost.cycles import Cycles
from tinyml.datasets import arrays
from tinyml.harness.zephyr.boards import find_board
from tinyml.ir import Shape
from tinyml.pipeline import LIBRARIES, Options
from tinyml.settings.optimize import GOALS
from tinyml.settings.quantize_request import Request
from tinyml.setup.workspace import find_cmsis_nn

KERNELS = ("auto", *LIBRARIES)
BY_COST_MODEL = "estimated"

Measure = Callable[[Point], int]
"""Cycles of one run of a point on the board itself."""


def explore(
    model: ModelLike,
    board: str = "",
    *,
    target: Target = "cortex-m3",
    on: Machine = "",
    mhz: float | None = None,
    calibration: DataLike | None = None,
    example: Any = None,
    shapes: Mapping[str, Shape] | None = None,
    progress: Progress | None = None,
) -> Exploration:
    """Build a model in all ways that ``tinyml.yaml`` can choose from, and compare RAM, flash and cycles.

    Costs are estimates unless ``on`` is given.

    :param model: a file, bytes, or a model of a training framework
    :param board: a board by Zephyr's name or PlatformIO's id: gives the core, the memory and the clock
    :param target: the core, without a board
    :param on: an emulated machine such as ``qemu-cortex-m4``, which counts instructions and flash
    :param mhz: the clock (default: the board's)
    :param calibration: real inputs, with which a float model is also tried as int8, with int16 activations
        and with weights of four bits
    :param example: example inputs of a PyTorch module or a JAX function, which determine the shapes: an
        array or tensor, a tuple of them, or one shape
    :param shapes: shapes of inputs that the model leaves open: ``{"input": (1, 16, 8)}``; default: 1 for
        each open axis
    :param progress: is called with the name of a step, how much of it is done, and how much there is
    """
    source = as_model(model, example, shapes=shapes)
    found = find_board(board) if board else None
    place = Board(board or target, found.target if found else target)
    if found:
        place = replace(place, ram_bytes=found.ram_bytes, flash_bytes=found.flash_bytes, mhz=found.mhz)
    if mhz is not None:
        place = replace(place, mhz=mhz)
    with data_file(calibration, "calibration") as path:
        options = Options(source.name, shapes=source.shapes, quantize=Request(path) if path else None)
        return explore_options(source, options, place, on, progress=progress)


def explore_options(
    model: Model,
    options: Options,
    place: Board,
    on: str = "",
    kernels: Sequence[str] = (),
    measure: Measure | None = None,
    progress: Progress | None = None,
) -> Exploration:
    """The same with the pipeline's own options; ``measure`` measures the best points on the board."""
    report = progress or silent
    has_cmsis_nn = find_cmsis_nn() is not None
    libraries = kernels or (KERNELS if has_cmsis_nn else KERNELS[:1])
    base = replace(options, target=place.target, cmsis_nn=has_cmsis_nn and "auto" in libraries)
    precisions = list(_precisions(model, base))
    jobs = [
        (precision, wanted, library, goal)
        for precision, wanted in precisions
        for library in libraries
        for goal in GOALS
    ]
    points: list[Point] = []
    failures: dict[str, str] = {}
    for done, (precision, wanted, library, goal) in enumerate(jobs):
        report("exploring", done, len(jobs))
        chosen = replace(wanted, kernels=library, optimize=goal)
        point = Point(goal, library, "flash", precision, quantize=wanted.quantize)
        try:
            points.append(_costed(point, build(model, chosen), on))
        except TinymlError as error:
            failures[point.settings] = error.message
    report("exploring", len(jobs), len(jobs))
    if not points:
        raise ToolError(f"{model.name} cannot be built: {next(iter(failures.values()))}")
    points = _with_float_accuracy(points)
    points += [point.with_weights_in_ram() for point in points]
    explored = Exploration(
        model.name, place, tuple(points), failures, f"counted on {on}" if on else BY_COST_MODEL
    ).sorted_out()
    return _measured(explored, measure, report) if measure else explored


def _precisions(model: Model, options: Options) -> Iterator[tuple[str, Options]]:
    """The model as it is and, if there is data to quantise it with, as int8, int16, and with fewer bits."""
    request = options.quantize
    if request is None:
        yield "", options
        return
    yield "float", replace(options, quantize=None)
    yield "int8", replace(options, quantize=replace(request, weights="int8", max_loss=None))
    if (wide := _int16(model, options)) is not None:
        yield "int16", replace(options, quantize=wide)
    for weights in _fewer_bits(model, options):
        limit = request.max_loss if weights == "mixed" else None
        yield weights, replace(options, quantize=replace(request, weights=weights, max_loss=limit))


def _fewer_bits(model: Model, options: Options) -> Iterator[str]:
    """``int4``, and ``mixed`` where that is neither int8 nor int4; none if no layer can have four bits."""
    from tinyml.api.quantized import convert

    assert options.quantize is not None
    request = replace(options.quantize, frontend=options.frontend, weights="mixed")
    try:
        plain, mixed, small = convert(model, request).report.variants
    except ConfigError:
        return
    if small.int4_layers > mixed.int4_layers > plain.int4_layers:
        yield "mixed"
    yield "int4"


def _int16(model: Model, options: Options) -> Request | None:
    """The request with int16 activations wherever there is an integer form for them; None if nowhere."""
    from tinyml.api.quantized import convert

    assert options.quantize is not None
    plain = replace(options.quantize, weights="int8", max_loss=None)
    request = replace(plain, frontend=options.frontend)
    quantized = convert(model, request).report
    names = [layer.name for layer in quantized.computing() if layer.kind == "int8"] if quantized else []
    while names:
        wanted = replace(plain, int16=tuple(names))
        try:
            convert(model, replace(wanted, frontend=options.frontend))
        except ConfigError as error:
            refused = [name for name in names if error.message.startswith(f"layer {name} (")]
            if not refused:
                raise
            names.remove(refused[0])
        else:
            return wanted
    return None


def _costed(point: Point, compiled: CompiledModel, on: str) -> Point:
    """The costs of a compiled model: estimated or, with ``on``, counted."""
    found = cost_of(compiled)
    loss = compiled.quantization
    point = replace(
        point,
        ram_bytes=found.ram_bytes,
        flash_bytes=found.weights_bytes if found.flash_bytes is None else found.flash_bytes,
        weights_bytes=found.weights_bytes,
        instructions=found.instructions,
        instructions_error=found.instructions_error,
        cycles=found.cycles,
        quality=loss.headline() if loss else "",
        decibels=loss.decibels if loss else None,
        accuracy=loss.accuracy_int8 if loss else None,
        lost_points=loss.lost_points if loss else 0.0,
    )
    if not on:
        return point
    graph = compiled.built.graph
    result, cycles = cycle_models.run_files(
        compiled.files, on, [arrays.pattern_inputs(graph)], reset_before={0}
    )
    if result.instructions is None or result.footprint is None:
        raise ToolError(f"{on} does not count instructions", "a QEMU machine, such as qemu-cortex-m4")
    return replace(
        point,
        instructions=result.instructions[0],
        instructions_error=0.0,
        cycles=cycles.total if isinstance(cycles, Cycles) else None,
        flash_bytes=result.footprint.total.flash,
        ram_bytes=max(result.footprint.total.ram, found.ram_bytes),
    )


def _with_float_accuracy(points: list[Point]) -> list[Point]:
    """What labels say about the float model: its accuracy is that of a quantised one before the loss."""
    known = next((p for p in points if p.accuracy is not None), None)
    if known is None or known.accuracy is None:
        return points
    accuracy = known.accuracy + known.lost_points / 100
    return [replace(p, accuracy=accuracy) if p.precision == "float" else p for p in points]


def _measured(explored: Exploration, measure: Measure, report: Progress) -> Exploration:
    """Measure what is best by estimate on the board, with the weights in flash and in RAM."""
    best = explored.best_settings
    wanted = [
        point for point in explored.points if point.fits and replace(point, weights="flash").settings in best
    ]
    measured, failures = [], dict(explored.failures)
    for done, point in enumerate(wanted):
        report("measuring", done, len(wanted))
        try:
            measured.append(replace(point, cycles=measure(point), instructions=None))
        except TinymlError as error:
            failures[point.settings] = error.message
    if not measured:
        raise ToolError("nothing could be measured on the board", next(iter(failures.values()), ""))
    how = f"measured on {explored.place.name}"
    return replace(explored, points=tuple(measured), failures=failures, how=how).sorted_out()
