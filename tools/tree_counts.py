# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Count layers of trees: what the figures of trees are fitted to, and how far off they are.

``python -m tools.tree_counts [--on qemu-cortex-m4,...]``

Random layers are fitted, trained ones are held out (``tools/tree_layers.py``). The counts go into
benchmarks/tree_counts.json, with the work that each layer was estimated to have.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

from tests.support.sketch import Sketch
from tools import layer_counts
from tools.environment import ROOT
from tools.tree_layers import TreeLayer, random_layers, trained_layers

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import __version__, harness
from tinyml.base.errors import TinymlError
from tinyml.base.whole_files import write_whole
from tinyml.emit import emit
from tinyml.emit.model import Provenance
from tinyml.emit.summary import summarize
from tinyml.ir import DType, Graph, Layer
from tinyml.memory.plan import plan
from tinyml.memory.select import select
from tinyml.ops.classical.trees import Trees, TreeWalk
from tinyml.ops.framework.kernel import Library
from tinyml.ops.framework.work import Work

RECORD = ROOT / "benchmarks" / "tree_counts.json"
AT_ONCE = 16
"""Layers in an image."""
HELD_OUT = "trained"


@dataclass(frozen=True)
class TreeCount:
    """What a layer took on a machine, for all of its rows."""

    machine: str
    name: str
    work: Work
    instructions: int

    @property
    def is_held_out(self) -> bool:
        return self.name.startswith(HELD_OUT)


@cache
def layers() -> Mapping[str, TreeLayer]:
    trained = {f"{HELD_OUT}_{name}": layer for name, layer in trained_layers()}
    return {**random_layers(), **trained}


def sketched(some: Sequence[TreeLayer]) -> Graph:
    """Independent layers, each with an input of its own."""
    sketch = Sketch()
    outputs = []
    for one in some:
        x = sketch.input(one.x.shape, DType(str(one.x.dtype)), one.quant)
        tables = [sketch.constant(table, dtype=str(table.dtype)) for table in one.tables]
        outputs.append(sketch.add(one.op, x, *tables))
    return sketch.graph(*outputs)


def count(machine: str, some: Sequence[TreeLayer]) -> Iterator[tuple[Work, int]]:
    """The work of each layer, and what it took."""
    target = harness.find_machine(machine).target
    graph = sketched(some)
    selected = select(graph, target, frozenset({Library.GENERATED}))
    placed = plan(graph, selected, False)
    emitted = emit("layers", graph, placed, selected, target, Provenance("layers", "0" * 64, ""))
    summary = summarize(
        "layers", graph, selected, placed, target, "0" * 64, __version__, emitted.layer_bytes, emitted.libm
    )
    inputs = {name: one.x for name, one in zip(graph.inputs, some, strict=True)}
    spent = harness.run_files(
        {**emitted.files, "layers.json": summary.text},
        machine,
        [inputs],
        options=harness.Options(profile=True),
    ).layers
    assert spent is not None, "profiled images report every layer"
    for step, layer in enumerate(graph.layers()):
        work = TreeWalk().loop_counts(cast("Layer[Trees]", layer), target)
        assert work is not None
        yield {name: round(amount, 3) for name, amount in work.items() if amount}, spent[step]


def load() -> list[TreeCount]:
    """The counts that were taken."""
    if not RECORD.is_file():
        return []
    data = json.loads(RECORD.read_text(encoding="utf-8"))
    return [
        TreeCount(machine, name, data["work"][name], instructions)
        for machine, found in data["counts"].items()
        for name, instructions in found.items()
    ]


def save(counts: Sequence[TreeCount]) -> None:
    work = {one.name: dict(one.work) for one in counts}
    machines: dict[str, dict[str, int]] = {}
    for one in counts:
        machines.setdefault(one.machine, {})[one.name] = one.instructions
    rows = ",\n".join(f' "{name}": {json.dumps(amounts)}' for name, amounts in sorted(work.items()))
    found = ",\n".join(f' "{name}": {json.dumps(spent)}' for name, spent in sorted(machines.items()))
    write_whole(RECORD, f'{{"work": {{\n{rows}\n}},\n"counts": {{\n{found}\n}}}}\n'.encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--on", default=",".join(layer_counts.MACHINES), metavar="MACHINES")
    args = parser.parse_args()
    known = load()
    names = list(layers())
    for machine in args.on.split(","):
        found = []
        for start in range(0, len(names), AT_ONCE):
            some = names[start : start + AT_ONCE]
            try:
                counted = list(count(machine, [layers()[name] for name in some]))
            except TinymlError as error:
                print(f"{machine}: {error}\n{error.hint}", file=sys.stderr)
                return 1
            found += [
                TreeCount(machine, name, work, spent)
                for name, (work, spent) in zip(some, counted, strict=True)
            ]
        known = [one for one in known if one.machine != machine] + found
        save(known)
        print(f"{machine}: {len(found)} layers", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
