# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Count random layers that are loops in the model's own C: what ``tools.fit_own_loops`` fits, and its error.

``python -m tools.own_loop_counts [--on qemu-cortex-m4,...] [--batches 100] [--again]``

A batch is an image of a hundred layers (tests/random_layers): of all kinds of loops, then of pools and the
like with other shapes, then with weights that are computed, whose convolutions are loops. The counts go into
benchmarks/own_loop_counts.json, one list to a batch, by step. The first batches are never fitted: error bars
and a test come from them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.random_layers.batch import SIZE
from tools import random_counts
from tools.environment import ROOT
from tools.random_counts import Made

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.base.errors import TinymlError
from tinyml.base.whole_files import write_whole
from tinyml.ir import Layer
from tinyml.ops.framework.kernel import Kernel, Library
from tinyml.ops.framework.tally import Tally

RECORD = ROOT / "benchmarks" / "own_loop_counts.json"
SEED = 7
KINDS = (
    *(*["loops"] * 26, "plain", "computed", "computed", "plain", "plain"),
    *(*["plain"] * 15, *["computed"] * 10, *["transposed_float32"] * 4),
    *(*["plain"] * 20, *["computed"] * 16, *["transposed_float32"] * 4),
    *["usual_pools"] * 4,
    "round_scales",
)
"""Of the batches."""
SIZES = {"computed": 50, "transposed_float32": 50}
"""Layers of batches that are smaller: weights are inputs, too, or layers take millions of instructions."""
BATCHES = len(KINDS)
LEVEL = 8
"""Results that must all be the same, for that not to be chance."""
HELD_OUT = 6
"""The first batches, which no figure is fitted to."""

Counts = dict[str, dict[str, list[int]]]
"""By machine and batch: the instructions of each step, 0 for one that takes none."""


@dataclass(frozen=True)
class CountedLoops:
    """One layer of loops, and what it took."""

    batch: int
    layer: Layer
    kernel: Kernel[Any]
    tally: Tally
    spent: int
    is_level: bool  # all its results are the same number

    @property
    def is_held_out(self) -> bool:
        return self.batch < HELD_OUT


def load() -> Counts:
    """The counts that were taken."""
    if not RECORD.is_file():
        return {}
    found: Counts = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def save(counts: Counts) -> None:
    machines = []
    for machine, batches in sorted(counts.items()):
        ordered = sorted(batches.items(), key=lambda item: int(item[0]))
        lines = ",\n".join(f'"{key}":{json.dumps(row, separators=(",", ":"))}' for key, row in ordered)
        machines.append(f'"{machine}": {{\n{lines}\n}}')
    write_whole(RECORD, ("{\n" + ",\n".join(machines) + "\n}\n").encode())


def made(number: int, target_name: str) -> Made:
    """A batch, compiled for a core."""
    kind = KINDS[number]
    return random_counts.made(number, target_name, SEED, kind, SIZES.get(kind, SIZE))


def count(machine: str, number: int) -> list[int]:
    """What every step of a batch takes."""
    one = made(number, harness.find_machine(machine).target.name)
    files = {**one.emitted.files, "layers.json": one.summary}
    options = harness.Options(profile=True)
    spent = harness.run_files(files, machine, [one.layers.inputs], options=options).layers
    assert spent is not None, "profiled images report every layer"
    return [max(0, spent.get(step, 0)) for step in range(len(one.selected))]


def counted(machine: str, held_out: bool | None = None) -> Iterator[CountedLoops]:
    """The layers that were counted on a machine: those that were held out, the others, or all."""
    target = harness.find_machine(machine).target.name
    for key, spent in load().get(machine, {}).items():
        number = int(key)
        if held_out is not None and (number < HELD_OUT) != held_out:
            continue
        one = made(number, target)
        for step, (chosen, amount) in enumerate(zip(one.selected, spent, strict=True)):
            tally = one.emitted.tallies.get(step)
            if amount and tally is not None and chosen.kernel.library is Library.GENERATED:
                results = one.layers.expected.get(chosen.layer.output.name)
                level = (
                    results is not None and results.size > LEVEL and bool((results == results.flat[0]).all())
                )
                yield CountedLoops(number, chosen.layer, chosen.kernel, tally, amount, level)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--on", default=",".join(random_counts.MACHINES), metavar="MACHINES")
    parser.add_argument("--batches", type=int, default=BATCHES, help="of a hundred layers (%(default)s)")
    parser.add_argument("--again", action="store_true", help="count again what is recorded")
    args = parser.parse_args()
    known = load()
    for machine in args.on.split(","):
        batches = known.setdefault(machine, {})
        for number in range(args.batches):
            if str(number) in batches and not args.again:
                continue
            try:
                batches[str(number)] = count(machine, number)
            except TinymlError as error:
                print(f"{machine}, batch {number}: {error}\n{error.hint}", file=sys.stderr)
                continue
            save({name: rows for name, rows in known.items() if rows})
            print(f"{machine}, batch {number}: {len(batches[str(number)])} layers", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
