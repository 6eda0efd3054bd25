# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Bounds of what takes its way by data beside the worst runs that a search finds, for tools/worst_cases.py.

The models and the inputs with which the search begins are those of tests/support/ways_by_data.py.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tests.support.ways_by_data import BOXES, Subject, subjects
from tinyml import harness
from tinyml.base.errors import ModelError
from tinyml.bounds import bound_generated
from tinyml.bounds.image_bounds import Bound
from tinyml.harness.generated import Generated, read_generated
from tinyml.harness.program_build import Image
from tinyml.ir import Array
from tinyml.ir.interpreter import interpret
from tinyml.pipeline import Compiled
from tools.environment import ROOT

RECORD = ROOT / "benchmarks" / "worst_ways.json"
PER_ROUND = 40
SAMPLE = dict[str, Array]
Change = Callable[[SAMPLE, np.random.Generator], SAMPLE]

TEXT = """
## Ways by data

Trees, sorting and the choice of boxes take their way by data. The search begins with inputs that are made to
take long: sorted and equal numbers, boxes that are nested or almost empty (`tests/support/ways_by_data.py`).
It then changes the worst of them. There are {boxes} boxes, for NonMaxSuppression ("boxes"; "for 3 classes",
these share the rows), for TFLite's NON_MAX_SUPPRESSION_V4 ("queued boxes") and V5 with a sigma ("soft
boxes"), or for TFLite_Detection_PostProcess ("detection"); "by class", those of one class do not suppress
those of another.
Each cell has the bound, and how far it is above the worst run.

| model | {cores} |
|---|{rule}|
"""


@dataclass(frozen=True)
class Way:
    model: str
    machine: str
    bound: int
    worst: int

    @property
    def above(self) -> float:
        return self.bound / self.worst - 1


@contextmanager
def linked(compiled: Compiled, machine: harness.Machine) -> Iterator[tuple[Generated, Bound, Image]]:
    """A compiled model for a machine: its bound, and the image to run."""
    with tempfile.TemporaryDirectory(prefix="tinyml-") as name:
        folder = Path(name)
        for file, text in compiled.files.items():
            (folder / file).write_text(text, encoding="utf-8")
        model = read_generated(folder)
        yield model, bound_generated(model, machine, folder), harness.build(model, machine, folder)


def way(subject: Subject, machine: harness.Machine, rounds: int, change: Change) -> Way:
    """Bound a model and search for its worst run."""
    random = np.random.default_rng(38)
    compiled = subject.compiled(machine.target.name)
    with linked(compiled, machine) as (model, bound, image):
        samples: list[SAMPLE] = [
            dict(zip(compiled.graph.inputs, row, strict=True)) for row in subject.samples
        ]
        worst, best = 0, samples[0]
        for _ in range(rounds):
            counts = harness.execute(image, model, samples, reset_before=range(len(samples))).instructions
            assert counts is not None
            for sample, count in zip(samples, counts, strict=True):
                if count > worst:
                    worst, best = count, sample
            changed = [change(best, random) for _ in range(PER_ROUND)]
            samples = [sample for sample in changed if _is_possible(compiled, sample)] or [best]
    if worst > bound.instructions:
        raise SystemExit(f"{subject.name} on {machine.name}: a run exceeds the bound: {worst}; {bound}")
    return Way(subject.name, machine.name, bound.instructions, worst)


def _is_possible(compiled: Compiled, sample: SAMPLE) -> bool:
    """Whether results have room: a run that has more ends with an error."""
    try:
        interpret(compiled.graph, [sample])
    except ModelError:
        return False
    return True


def measure(machines: Sequence[str], rounds: int, change: Change) -> None:
    """Bound and run all models again on these machines."""
    kept = {(one.model, one.machine): one for one in load()} if RECORD.is_file() else {}
    every = subjects()
    for subject in every:
        for machine in machines:
            found = way(subject, harness.find_machine(machine), rounds, change)
            kept[subject.name, machine] = found
            print(found, f"{100 * found.above:.1f} %", flush=True)
    names = [subject.name for subject in every]
    order = sorted(
        (one for one in kept.values() if one.model in names), key=lambda one: names.index(one.model)
    )
    RECORD.write_text(json.dumps([asdict(one) for one in order], indent=1) + "\n", encoding="utf-8")


def load() -> list[Way]:
    return [Way(**entry) for entry in json.loads(RECORD.read_text(encoding="utf-8"))]


def section(ways: Sequence[Way], machines: Sequence[str], core: Callable[[str], str]) -> str:
    """The part of the page: for each model and core the bound, and how far it is above the worst run."""
    by_place = {(one.model, one.machine): one for one in ways}
    lines = []
    for model in dict.fromkeys(one.model for one in ways):
        cells = [model]
        for machine in machines:
            one = by_place.get((model, machine))
            cells.append("" if one is None else f"{one.bound:,}, {100 * one.above:.1f} % above {one.worst:,}")
        lines.append(f"| {' | '.join(cells)} |\n")
    rule = "|".join("---" for _ in machines)
    head = TEXT.format(boxes=BOXES, cores=" | ".join(map(core, machines)), rule=rule)
    return head + "".join(lines)
