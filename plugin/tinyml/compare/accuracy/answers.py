# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The answers of a compiled model, and of its original, to all samples of a test set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.base.progress import Progress
from tinyml.compare.reference import DENSE_CAUSE, DENSE_NOTE, find_reference
from tinyml.datasets.arrays import real, stored
from tinyml.harness.runner import Runner, built_once
from tinyml.ir import Array, Graph, Shape, Tensor
from tinyml.pipeline import Compiled, read_graph, read_model

CHUNK = 64
"""Samples between two steps of the progress bar; a model that keeps state runs whole sequences."""

Samples = Sequence[Mapping[str, Array]]


def chunks(count: int, starts: frozenset[int], stateful: bool) -> Iterator[range]:
    """Ranges of samples that can run on their own."""
    borders = sorted(starts | {0}) if stateful else range(0, count, CHUNK)
    for first, end in zip(borders, [*list(borders)[1:], count], strict=True):
        yield range(first, end)


def compiled_answers(
    compiled: Compiled, place: Runner, samples: Samples, starts: frozenset[int], progress: Progress
) -> tuple[list[list[Array]], int | None]:
    """The outputs of the C for each sample, in the model's order, as real numbers.

    Also the cycles of one run, if hardware measured them: the mean.
    """
    graph = compiled.graph
    found: list[list[Array]] = []
    cycles: list[int] = []
    with built_once(place, compiled.files) as ready:
        for part in chunks(len(samples), starts, bool(graph.states)):
            progress(f"on {place.name}", part.start, len(samples))
            result = ready.run(compiled.files, [samples[index] for index in part])
            found += [[real(out[n], graph.tensors[n]) for n in graph.outputs] for out in result.outputs]
            cycles += result.cycles or []
    progress(f"on {place.name}", len(samples), len(samples))
    return found, round(sum(cycles) / len(cycles)) if cycles else None


def original_answers(
    original: Path,
    shapes: Mapping[str, Shape],
    ours: Graph,
    samples: Samples,
    starts: frozenset[int],
    progress: Progress,
) -> tuple[str, list[list[Array]]]:
    """The name of the runtime, and the outputs of the original model in it, as real numbers.

    ``ours``: the model that the samples are for.
    """
    file = read_model(original)
    theirs = read_graph(file, shapes)
    _check_same(ours, theirs, original)
    pairs = [(ours.tensors[a], theirs.tensors[b]) for a, b in zip(ours.inputs, theirs.inputs, strict=True)]
    reference = find_reference(file, theirs)
    try:
        _ = reference.run(_converted(samples[:1], pairs))
    except ConfigError:  # its outputs are text
        reference = find_reference(file, theirs, "numpy")
    found: list[list[Array]] = []
    for part in chunks(len(samples), starts, bool(theirs.states)):
        progress(reference.name, part.start, len(samples))
        for answer in reference.run(_converted([samples[index] for index in part], pairs)):
            outputs = zip(answer.outputs, theirs.outputs, strict=True)
            found.append([real(array, theirs.tensors[name]) for array, name in outputs])
    progress(reference.name, len(samples), len(samples))
    return reference.name, found


def why_they_differ(
    original: Path,
    shapes: Mapping[str, Shape],
    ours: Graph,
    samples: Samples,
    answers: tuple[Sequence[Sequence[Array]], Sequence[Sequence[Array]]],
) -> str:
    """The cause of differences between our answers and the original's, if one is known and was checked."""
    differ = [
        sample
        for sample, found, wanted in zip(samples, *answers, strict=True)
        if not all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    ]
    file = read_model(original)
    theirs = read_graph(file, shapes)
    if not differ or theirs.states:
        return ""
    pairs = [(ours.tensors[a], theirs.tensors[b]) for a, b in zip(ours.inputs, theirs.inputs, strict=True)]
    reference = find_reference(file, theirs)
    some = _converted(differ[:CHUNK], pairs)
    found = reference.note(theirs, some, reference.run(some))
    return DENSE_CAUSE if found == DENSE_NOTE else found


def _converted(samples: Samples, pairs: Sequence[tuple[Tensor, Tensor]]) -> list[dict[str, Array]]:
    return [{b.name: stored(real(sample[a.name], a), b) for a, b in pairs} for sample in samples]


def _check_same(ours: Graph, theirs: Graph, original: Path) -> None:
    for kind in ("inputs", "outputs"):
        a, b = ([graph.tensors[name].elements for name in getattr(graph, kind)] for graph in (ours, theirs))
        if a != b:
            raise ConfigError(
                f"{original.name} has {kind} of {b} elements; the compiled model has {a}",
                "compare models that take and return the same numbers",
            )
