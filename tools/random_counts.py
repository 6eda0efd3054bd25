# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Count random layers: what the error bars of ``tinyml cost`` come from.

``python -m tools.random_counts [--on qemu-cortex-m4,...] [--batches 20]``

The layers are those of the campaigns of random layers (tests/random_layers), in batches of a hundred: int8,
four bits, int16, float, sparse, pools, element-wise, recurrent, of all shapes. Each batch is one image, with
our own kernels. The counts go into benchmarks/random_counts.json. No figure is fitted to them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from tests.random_layers.batch import SIZE, Batch, batch
from tests.support.any_plan import any_plan
from tools import layer_counts
from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import __version__, harness
from tinyml.base.errors import TinymlError
from tinyml.base.whole_files import write_whole
from tinyml.emit import emit
from tinyml.emit.model import Emitted, Provenance
from tinyml.emit.summary import summarize
from tinyml.memory.plan import plan
from tinyml.memory.select import Selected, select
from tinyml.ops.framework.kernel import Library
from tinyml.ops.weighted.float16_sums import adds_in_float16
from tinyml.pipeline import optimize
from tinyml.settings.optimize import BALANCED

RECORD = ROOT / "benchmarks" / "random_counts.json"
MACHINES = layer_counts.MACHINES
SEED = 40
ALIGNMENT = 16
BATCHES = 25
FLOAT16 = (20, 21, 22, 23)
"""Batches that have only layers with such weights; no other batch stores them so."""
FLOAT16_SUMS = (22, 23)
"""Those of them that add up products in float16, for cores that can."""
REAL = (24,)
"""Batches of float layers whose weights are not bytes times a scale."""
LIBRARIES = frozenset({Library.PORTABLE, Library.GENERATED})


@dataclass(frozen=True)
class RandomCount:
    """What one layer of a batch took; ``step`` is its place in the optimised graph."""

    machine: str
    batch: int
    step: int
    kernel: str
    instructions: int


@dataclass(frozen=True)
class Made:
    """A batch, compiled for a core."""

    layers: Batch
    selected: tuple[Selected, ...]
    emitted: Emitted
    summary: str


@cache
def made(number: int, target_name: str, seed: int = SEED, kind: str | None = None, size: int = SIZE) -> Made:
    target = next(m.target for m in map(harness.find_machine, MACHINES) if m.target.name == target_name)
    kind = "float16" if seed == SEED and number in FLOAT16 else kind
    kind = "real_float32" if seed == SEED and number in REAL else kind
    layers = batch(seed, number, size, kind)
    graph = optimize(layers.graph)
    sums = seed == SEED and number in FLOAT16_SUMS
    goal = replace(BALANCED, float16=kind == "float16", float16_sums=sums)
    selected = select(graph, target, LIBRARIES, goal=goal)
    with any_plan(ALIGNMENT):
        placed = plan(graph, selected, False)
    emitted = emit("layers", graph, placed, selected, target, Provenance("layers", "0" * 64, ""))
    summary = summarize(
        "layers", graph, selected, placed, target, "0" * 64, __version__, emitted.layer_bytes, emitted.libm
    )
    return Made(layers, selected, emitted, summary.text)


def count(machine: str, number: int) -> Iterator[RandomCount]:
    """All layers of a batch, in one image."""
    target = harness.find_machine(machine).target
    if number in FLOAT16_SUMS and not adds_in_float16(target):
        return
    one = made(number, target.name)
    files = {**one.emitted.files, "layers.json": one.summary}
    spent = harness.run_files(
        files, machine, [one.layers.inputs], options=harness.Options(profile=True)
    ).layers
    assert spent is not None, "profiled images report every layer"
    for step, chosen in enumerate(one.selected):
        if spent.get(step, 0) > 0 and (number not in FLOAT16_SUMS or chosen.kernel.adds_in_float16):
            yield RandomCount(machine, number, step, chosen.kernel.name, spent[step])


def load() -> list[RandomCount]:
    """The counts that were taken."""
    if not RECORD.is_file():
        return []
    data = json.loads(RECORD.read_text(encoding="utf-8"))
    names: list[str] = data["kernels"]
    return [
        RandomCount(machine, int(number), step, names[kernel], instructions)
        for machine, batches in data["counts"].items()
        for number, rows in batches.items()
        for step, kernel, instructions in rows
    ]


def save(counts: Iterable[RandomCount]) -> None:
    """Grouped by machine and batch, one batch to a line."""
    counts = sorted(counts, key=lambda one: (one.machine, one.batch, one.step))
    names = sorted({one.kernel for one in counts})
    numbers = {name: index for index, name in enumerate(names)}
    grouped: dict[str, dict[str, list[list[int]]]] = {}
    for one in counts:
        rows = grouped.setdefault(one.machine, {}).setdefault(str(one.batch), [])
        rows.append([one.step, numbers[one.kernel], one.instructions])
    machines = []
    for machine, batches in grouped.items():
        lines = ",\n".join(
            f'  "{key}": {json.dumps(rows, separators=(",", ":"))}' for key, rows in batches.items()
        )
        machines.append(f' "{machine}": {{\n{lines}\n }}')
    text = f'{{"kernels": {json.dumps(names, indent=1)},\n"counts": {{\n' + ",\n".join(machines) + "\n}}\n"
    write_whole(RECORD, text.encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--on", default=",".join(MACHINES), metavar="MACHINES", help="default: %(default)s")
    parser.add_argument("--batches", type=int, default=BATCHES, help="of a hundred layers (%(default)s)")
    parser.add_argument("--again", action="store_true", help="count again what is recorded")
    args = parser.parse_args()
    known = load()
    for machine in args.on.split(","):
        for number in range(args.batches):
            if not args.again and any((one.machine, one.batch) == (machine, number) for one in known):
                continue
            try:
                found = list(count(machine, number))
            except TinymlError as error:
                print(f"{machine}, batch {number}: {error}\n{error.hint}", file=sys.stderr)
                continue
            known = [one for one in known if (one.machine, one.batch) != (machine, number)] + found
            save(known)
            print(f"{machine}, batch {number}: {len(found)} layers", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
