# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Fit what the work of loops costs on each core: ``plugin/tinyml/cost/data/own_loops``.

``python -m tools.fit_own_loops [--on qemu-cortex-m4,...]``

The layers are those of ``python -m tools.own_loop_counts``, without the held-out batches. All layers weigh
the same, whatever they cost: the errors that are squared are relative. There are more names of work than
layers, so each figure is drawn towards zero, the more the smaller its usual size is: what general names
(operations, turns of loops) explain is not left to special ones (a statement, a whole loop). Published models
(the folder ``TINYML_MODELS``) only decide up to which size kinds of layers have them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from tools import own_loop_counts
from tools.cost_examples import Known, examples
from tools.environment import ROOT
from tools.fit_loops import MATTERS, missed_by

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.base.whole_files import write_whole
from tinyml.cores.core_data import own_loops_file
from tinyml.cost.loops.loop_work import loop_work
from tinyml.cost.model import Speed, by_models, find_model

USUAL = {
    "layer": 15.0,
    "operation": 1.5,
    "call": 50.0,
    "copy": 30.0,
    "copied": 3.0,
    "statement with": 8.0,
    "statement without": 1.5,
    "body": 4.0,
    "loop": 3.0,
    "turn": 3.0,
    "begin": 6.0,
    "start": 6.0,
}
"""The usual size of figures, by how their names begin: in instructions, before anything was counted."""
NOISE = 0.1
"""The error that remains where the work is the same, as a part."""
CONSTANT = 20
"""Instructions that are added to those of a layer before errors become relative: tiny layers weigh less."""
LEAST = 0.05
"""A figure that nowhere makes more than this part of a layer is left out, and the others are fitted again.
Those of kernels stay: they tell which kernels were counted."""
DIGITS = 3
FAR = 0.06
"""Of the tenth by which estimates of published models may miss, what one kernel alone may take. More means
that its time depends on data: a kernel of which the figures fitted to models are better keeps those."""

Work = Mapping[str, float]


def usual(name: str) -> float:
    return next(size for begin, size in USUAL.items() if name.startswith(begin))


def fitted(works: Sequence[Work], spent: Sequence[float]) -> dict[str, float]:
    """The figures that estimate the layers best, given their usual sizes; few of those that matter little."""
    largest = _fitted(works, spent)
    return _fitted([{name: work[name] for name in work if name in largest} for work in works], spent)


def _fitted(works: Sequence[Work], spent: Sequence[float]) -> dict[str, float]:
    names = {name: index for index, name in enumerate(sorted({name for work in works for name in work}))}
    weights = 1 / (np.asarray(spent, float) + CONSTANT)
    cells = [
        (row, names[name], amount * weights[row])
        for row, work in enumerate(works)
        for name, amount in work.items()
    ]
    rows, columns, values = zip(*cells, strict=True)
    amounts = sparse.csr_matrix((values, (rows, columns)), (len(works), len(names)))
    sizes = np.array([usual(name) for name in names])
    scaled = amounts @ sparse.diags(sizes)
    alike = (scaled @ scaled.T).toarray() + NOISE**2 * np.eye(len(works))
    figures = sizes * (scaled.T @ np.linalg.solve(alike, np.asarray(spent, float) * weights))
    largest = abs(amounts).max(axis=0).toarray()[0] * np.abs(figures)
    kept = {name for name, index in names.items() if largest[index] >= LEAST or name.startswith("layer ")}
    return {name: float(f"{figures[names[name]]:.{DIGITS}g}") for name in sorted(kept)}


def fit(machine: str) -> dict[str, float]:
    # A compiler may know that all results are the same number: this says nothing about others.
    layers = [one for one in own_loop_counts.counted(machine, held_out=False) if not one.is_level]
    works = [loop_work(one.layer, one.kernel.name, one.tally) for one in layers]
    figures = fitted(works, [float(one.spent) for one in layers])
    return {**figures, **limits(machine, figures)}


def limits(machine: str, figures: Mapping[str, float]) -> dict[str, float]:
    """For kinds of layers whose published models these figures estimate worse than those fitted to models:
    half of what the smallest of those takes. Smaller layers have these figures all the same."""
    model = find_model(harness.find_machine(machine).target.name)
    speed = replace(model.instructions if model else Speed(), own_loops=figures)
    by_work = missed_by(speed, machine, _kind)
    by_fit = missed_by(replace(speed, own_loops={}), machine, _kind)
    far = {name for name, missed in by_work.items() if missed > max(FAR, by_fit[name])}
    found: dict[str, float] = {}
    for one in examples(machine):
        for known in one.layers("instructions"):
            name = _kind(known)
            if name not in far or known.tally is None or f"layer {known.kernel.name}" not in figures:
                continue
            guess = speed.of_loops(known.layer, known.kernel, known.tally)
            if abs(guess - known.spent) > MATTERS * known.whole:
                found[name] = min(found.get(name, np.inf), guess / 2)
    return {name: float(f"{limit:.{DIGITS}g}") for name, limit in sorted(found.items())}


def _kind(known: Known) -> str:
    return by_models(known.layer, known.kernel)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--on", default=",".join(own_loop_counts.load()), metavar="MACHINES")
    for machine in parser.parse_args().on.split(","):
        figures = fit(machine)
        path = own_loops_file(harness.find_machine(machine).target.name)
        path.parent.mkdir(exist_ok=True)
        write_whole(path, (json.dumps(figures, indent=0) + "\n").encode())
        print(f"{machine}: {len(figures)} figures", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
