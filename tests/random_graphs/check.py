# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random models in three ways: somebody else's runtime, numpy after all passes, and C under sanitizers.

C equals numpy in every bit of an integer, and so do LiteRT's results. onnxruntime scales in float32, so a
value within float32's error of a tie may differ by a step, and later layers may enlarge it; but that happens
on one input in many. So a model is wrong if it differs on most of its inputs. Of int16 one element in some
hundred is that near to a tie, and a sum of many such elements differs more often: such a model is wrong if
also more than ``NEAR_TIES`` of its elements differ, or more than ``ONE_STEP`` by one step.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from tests.random_graphs.onnx_model import onnx_model
from tests.random_graphs.recipe import (
    LOOP_KINDS,
    NNSMITH,
    QUANTISED_LOOP,
    TFLITE_KINDS,
    TFLITE_OPS,
    UNROLLED,
    Model,
    Recipe,
)
from tests.random_graphs.their_arithmetic import in_their_arithmetic, ties_rounded
from tests.support.batch import Item, run_batch
from tests.support.interpret import interpret_runs
from tinyml.base.errors import TinymlError
from tinyml.emit.model import Provenance
from tinyml.importers import onnx_graph, tflite_graph
from tinyml.ir import Array, Graph
from tinyml.ops.quantization.quantize import Dequantize
from tinyml.pipeline import Options, compile_graph, optimize
from tinyml.reference.session import Session

RELATIVE = 2e-4
RELATIVE_HALF = 2e-3
NEAR_TIES = 0.03
ONE_STEP = 0.1
C_NEAR_TIES = 0.01


@dataclass
class Tally:
    """What became of some recipes."""

    equal: int = 0
    ties: int = 0  # of which the reference differs on a minority of the inputs
    refused: Counter[str] = field(default_factory=Counter)
    wrong: dict[Recipe, str] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.equal += other.equal
        self.ties += other.ties
        self.refused += other.refused
        self.wrong |= other.wrong

    def __str__(self) -> str:
        total = self.equal + self.ties + self.refused.total() + len(self.wrong)
        return (
            f"{total} models: {self.equal} equal, {self.ties} equal but for ties, "
            f"{self.refused.total()} refused, {len(self.wrong)} wrong"
        )


def build(recipe: Recipe) -> Model:
    """The model of a recipe."""
    if recipe.kind in TFLITE_KINDS:
        from tests.random_graphs.tflite_model import tflite_model

        return tflite_model(recipe)
    if recipe.kind == TFLITE_OPS:
        from tests.random_graphs.tflite_ops import tflite_op_model

        return tflite_op_model(recipe)
    if recipe.kind in LOOP_KINDS:
        from tests.random_graphs.loop_model import loop_model

        return loop_model(recipe)
    if recipe.kind == QUANTISED_LOOP:
        from tests.random_graphs.quantised_loop import quantised_loop

        return quantised_loop(recipe)
    if recipe.kind == UNROLLED:
        from tests.random_graphs.unrolled_model import unrolled_model

        return unrolled_model(recipe)
    if recipe.kind == NNSMITH:
        from tests.random_graphs.nnsmith_model import nnsmith_model

        return nnsmith_model(recipe)
    return onnx_model(recipe)


def check(recipes: Iterable[Recipe], in_c: bool = True, c_every: int = 1) -> Tally:
    """Build and compare all of them; each ``c_every``-th as compiled C too, which takes most of the time."""
    tally = Tally()
    items: list[Item] = []
    numpy_results: dict[str, tuple[Recipe, Graph, list[list[Array]]]] = {}
    for number, recipe in enumerate(recipes):
        try:
            model = build(recipe)
            graph = read(model)
            optimized = optimize(graph)
            samples = [dict(zip(graph.inputs, map(widened, sample), strict=True)) for sample in model.samples]
            found = [list(run.values()) for run in interpret_runs(optimized, samples)]
            prefix = f"r{number}"
            if in_c and number % c_every == 0:
                origin = Provenance("random", "0" * 64, "")
                compiled = compile_graph(graph, prefix, origin, Options(target="host"))
                items.append(Item(prefix, compiled.files, samples))
                numpy_results[prefix] = recipe, optimized, found
            theirs = in_their_arithmetic(model, graph)
            comparable = [list(run.values()) for run in interpret_runs(theirs, samples)]
            wanted = _reference(model, graph)
            complaints = [c for c in map(_compare, comparable, wanted) if c]
        except TinymlError as error:
            tally.refused[" ".join(str(error).split()[:40])] += 1
            continue
        except Exception:  # a crash of the compiler is a finding as well
            tally.wrong[recipe] = traceback.format_exc(limit=-4)
            continue
        differs = len(complaints) > (0 if model.is_tflite else len(found) // 2)
        if differs and recipe.kind == QUANTISED_LOOP and _tied(graph, samples, comparable, wanted):
            differs = False
        if differs and not (recipe.kind == "qdq_s16" and _ties(comparable, wanted)):
            tally.wrong[recipe] = f"numpy against the reference: {complaints[0]}"
        elif complaints:
            tally.ties += 1
        else:
            tally.equal += 1
    for prefix, outcome in run_batch(items).items():
        recipe, optimized, computed = numpy_results[prefix]
        results = [[*output.values()] for output in outcome.outputs]
        complaint = outcome.failure or _c_differs(results, computed, _computes_in_float(optimized))
        if complaint and recipe not in tally.wrong:
            tally.equal -= 1
            tally.wrong[recipe] = f"C: {complaint}"
    return tally


def widened(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype == np.float16 else array


def shrink(recipe: Recipe, tried: Callable[[Iterable[Recipe]], Tally] = check) -> Recipe:
    """The simplest recipe that still fails, by single changes."""
    for smaller in recipe.smaller():
        if tried([smaller]).wrong:
            return shrink(smaller, tried)
    return recipe


def read(model: Model) -> Graph:
    if model.is_tflite:
        return tflite_graph.read(Path("random.tflite"), model.content, {})
    return onnx_graph.read(onnx.load_from_string(model.content), "random", {})


def _reference(model: Model, graph: Graph) -> list[list[Array]]:
    if model.is_tflite:
        from tests.random_graphs.tflite_ops import run

        return run(model.content, model.samples)
    session = Session(onnx.load_from_string(model.content))
    return [
        list(session.run(dict(zip(graph.inputs, sample, strict=True))).values()) for sample in model.samples
    ]


def _compare(found: Sequence[Array], wanted: Sequence[Array]) -> str:
    """The first difference beyond what rounding explains, in words."""
    for index, (f, w) in enumerate(zip(found, wanted, strict=True)):
        if w.dtype == np.float16:  # computed in float32
            f = f.astype(np.float16)
        if f.shape != w.shape or f.dtype != w.dtype:
            return f"output {index} is {f.dtype}{f.shape} instead of {w.dtype}{w.shape}"
        if f.dtype.kind == "f":
            finite = np.isfinite(w)
            allowed = (RELATIVE if w.dtype == np.float32 else RELATIVE_HALF) * float(
                np.abs(w[finite]).max(initial=1e-3)
            )
            with np.errstate(invalid="ignore"):
                wrong = ~((np.abs(f - w) <= allowed) | (f == w) | (np.isnan(f) & np.isnan(w)))
        else:
            wrong = f != w
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            return (
                f"output {index}: {wrong.sum()} of {wrong.size}, at {place} {f[place]} instead of {w[place]}"
            )
    return ""


def _ties(found: Sequence[Sequence[Array]], wanted: Sequence[Sequence[Array]]) -> bool:
    """Whether so few elements of int16 differ that ties of float32 explain it."""
    pairs = [
        pair for ours, theirs in zip(found, wanted, strict=True) for pair in zip(ours, theirs, strict=True)
    ]
    steps = np.concatenate([np.abs(f.astype(np.int64) - w).reshape(-1) for f, w in pairs])
    share = np.count_nonzero(steps) / steps.size
    return bool(share <= NEAR_TIES or (share <= ONE_STEP and steps.max() <= 1))


def _tied(
    graph: Graph,
    samples: Sequence[dict[str, Array]],
    found: Sequence[Sequence[Array]],
    wanted: Sequence[Sequence[Array]],
) -> bool:
    """Whether the graph as it was read gives each element, with ties rounded one way or another."""
    ways = [wanted]
    for direction in ("up", "down", "away"):
        with ties_rounded(direction):
            ways.append([list(run.values()) for run in interpret_runs(graph, samples)])
    nearest = [
        [_nearest(f, same) for f, *same in zip(*runs, strict=True)] for runs in zip(found, *ways, strict=True)
    ]
    return not any(map(_compare, found, nearest))


def _nearest(found: Array, ways: Sequence[Array]) -> Array:
    """Of several arrays the elements that are closest."""
    stacked = np.stack(ways)
    with np.errstate(invalid="ignore"):
        distances = np.abs(stacked.astype(np.float64) - found.astype(np.float64))
    places = np.where(np.isnan(distances), np.inf, distances).argmin(axis=0)
    return np.take_along_axis(stacked, places[None], 0)[0]


def _computes_in_float(graph: Graph) -> bool:
    return any(
        graph.tensors[name].dtype.is_float
        for node in graph.nodes
        if not isinstance(node.op, Dequantize)
        for name in node.outputs
    )


def _c_differs(
    found: Sequence[Sequence[Array]], wanted: Sequence[Sequence[Array]], computes_in_float: bool
) -> str:
    """Integers are equal. If they come from float layers, a few that are close to a tie may be a step off."""
    for run, (outputs, expected) in enumerate(zip(found, wanted, strict=True)):
        for index, (f, w) in enumerate(zip(outputs, expected, strict=True)):
            if f.dtype.kind == "f":
                scale = float(np.abs(w[np.isfinite(w)]).max(initial=1e-3))
                same = np.isclose(f, w, rtol=1e-5, atol=2e-5 * scale, equal_nan=True)
            else:
                same = f == w
                steps = np.abs(f.astype(np.int64) - w.astype(np.int64))
                most = max(1, C_NEAR_TIES * steps.size)
                few = np.count_nonzero(steps) <= most and steps.max(initial=0) <= 1
                if computes_in_float and few:
                    continue
            if not same.all():
                return f"run {run}, output {index}: {(~same).sum()} of {same.size} differ from numpy"
    return ""
