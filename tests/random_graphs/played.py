# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random models as data: the player computes every bit that compiled code computes on the same machine."""

from __future__ import annotations

import traceback
from collections.abc import Iterable

from tests.random_graphs.check import Tally, build, read, widened
from tests.random_graphs.recipe import Recipe
from tinyml import harness
from tinyml.base.errors import TinymlError
from tinyml.emit.model import Provenance
from tinyml.pipeline import Options, compile_graph
from tinyml.slots.data import data_image
from tinyml.slots.play import play_files
from tinyml.slots.version import Version


def check_played(recipes: Iterable[Recipe], machine: str) -> Tally:
    """Models that cannot be data are counted as refused."""
    tally = Tally()
    for recipe in recipes:
        try:
            complaint = _differs(recipe, machine)
        except TinymlError as error:
            tally.refused[" ".join(str(error).split()[:40])] += 1
            continue
        except Exception:  # a crash of the compiler is a finding as well
            complaint = traceback.format_exc(limit=-4)
        if complaint:
            tally.wrong[recipe] = complaint
        else:
            tally.equal += 1
    return tally


def _differs(recipe: Recipe, machine: str) -> str:
    """What is wrong, in words."""
    model = build(recipe)
    graph = read(model)
    target = harness.find_machine(machine).target.name
    options = Options(target=target, kernels="portable")
    compiled = compile_graph(graph, "random", Provenance("random", "0" * 64, ""), options)
    played = play_files(data_image(compiled, Version(1, 0, 0, 0)).content, target)
    samples = [dict(zip(graph.inputs, map(widened, sample), strict=True)) for sample in model.samples]
    try:
        wanted, found = (
            harness.run_files(files, machine, samples).outputs for files in (compiled.files, played)
        )
    except TinymlError as error:
        return str(error)
    for run, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        for name, array in theirs.items():
            if ours[name].tobytes() != array.tobytes():
                elements = int((ours[name] != array).sum())
                return f"run {run}, {name}: {elements} of {array.size} differ from compiled code"
    return ""
