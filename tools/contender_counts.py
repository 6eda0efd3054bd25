# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Count random layers with every kernel that can compute them: what the figures of kernels are fitted to.

``python -m tools.contender_counts [--on qemu-cortex-m4,...] [--batches 60]``

The layers are like those of ``tools.random_counts``, but others. Each batch has layers of one kind, each
computed by every kernel of ours that competes for it, in one image. The counts go into
benchmarks/contender_counts.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from tests.random_layers.batch import Batch, batch
from tests.support.any_plan import any_plan
from tests.support.layer_kinds import random_values
from tools import random_counts
from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import __version__, harness
from tinyml.base.errors import TinymlError
from tinyml.base.whole_files import write_whole
from tinyml.cores.targets import Target
from tinyml.emit import emit
from tinyml.emit.model import Provenance
from tinyml.emit.summary import summarize
from tinyml.ir import Graph, Layer, Node
from tinyml.memory.plan import Plan, plan
from tinyml.memory.select import Selected
from tinyml.ops.framework.kernel import Kernel, Library, kernels_of
from tinyml.ops.framework.tally import Tally
from tinyml.pipeline import optimize

RECORD = ROOT / "benchmarks" / "contender_counts.json"
SEED = 4000
SIZE = 50
KINDS = (
    *(
        "int8",
        "four_bits",
        "int8",
        "int16",
        "float32",
        "int8",
        "into_float",
        "int16",
        "four_bits",
        "computed",
    ),
    *("int8", "float32", "plain", "int8", "grouped", "int8", "four_bits", "int16", "sparse", "transposed"),
)
"""Of the batches, in turns; those after ``IN_TURNS`` came later."""
IN_TURNS = 60
FLOAT16 = "float16"
FLOAT16_SUMS = "float16_sums"
"""Float layers with such weights on cores that can add up their products in float16."""
LATER = (
    *(*[FLOAT16] * 10, *["recurrent"] * 6, *["plain"] * 4, *["recurrent_float"] * 3),
    *["limited_float32"] * 4,
    *(*["few"] * 3, *["few_int16"] * 2),
    *[FLOAT16_SUMS] * 10,
    *["short"] * 4,
    *(*["real_float32"] * 3, *["transposed_int16"] * 2),
)
SIZES = {"recurrent": 25}
"""Layers of batches that are smaller: their layers have several outputs."""
BATCHES = IN_TURNS + len(LATER)


@dataclass(frozen=True)
class ContenderCount:
    """What one kernel took for a layer of a batch; ``step`` is its place in the optimised graph."""

    machine: str
    batch: int
    step: int
    kernel: str
    instructions: int


def kind_of(number: int) -> str:
    return KINDS[number % len(KINDS)] if number < IN_TURNS else LATER[number - IN_TURNS]


@cache
def made(number: int) -> tuple[Graph, Batch]:
    """A batch, optimised, and as it was."""
    kind = kind_of(number)
    layers = batch(SEED, number, SIZES.get(kind, SIZE), FLOAT16 if kind == FLOAT16_SUMS else kind)
    return optimize(layers.graph), layers


def contenders(layer: Layer, target: Target, kind: str = "") -> list[Kernel[Any]]:
    """Our own kernels that may be chosen for a layer; with weights of four bits also those for bytes.

    Weights of many float layers are float16 numbers, but only the kinds that have this name are counted so.
    """
    kernels = (k for k in kernels_of(type(layer.op)) if k.library is Library.PORTABLE and k.runs_on(target))
    found = [
        k
        for k in kernels
        if k.refusal(layer) is None
        and k.adds_in_float16 == (kind == FLOAT16_SUMS)
        and (kind in (FLOAT16, FLOAT16_SUMS) or not k.weights_are_float16)
    ]
    return found[:1] if layer.output.dtype.is_float else found


@dataclass(frozen=True)
class Placed:
    """All layers of a batch with all their kernels, in one image."""

    chosen: tuple[tuple[int, Layer, Kernel[Any]], ...]
    graph: Graph
    selected: tuple[Selected, ...]
    plan: Plan

    def tallies(self) -> dict[tuple[int, str], Tally]:
        """By step and kernel, where the tensors of a layer are."""
        return {
            (step, kernel.name): Tally(
                distance=self.plan.distance(self.selected[place].layer),
                backwards=place in self.plan.backwards,
            )
            for place, (step, _, kernel) in enumerate(self.chosen)
        }


@cache
def placed(machine: str, number: int) -> Placed | None:
    """None if no kernel of ours computes a layer of the batch."""
    target = harness.find_machine(machine).target
    graph, _ = made(number)
    chosen = [
        (step, layer, kernel)
        for step, layer in enumerate(graph.layers())
        for kernel in contenders(layer, target, kind_of(number))
    ]
    if not chosen:
        return None
    repeated = _repeated(graph, [step for step, _, _ in chosen])
    selected = tuple(
        Selected(layer, kernel, kernel.scratch_bytes(layer, target))
        for layer, (_, _, kernel) in zip(repeated.layers(), chosen, strict=True)
    )
    with any_plan(random_counts.ALIGNMENT):
        return Placed(tuple(chosen), repeated, selected, plan(repeated, selected, False))


def count(machine: str, number: int) -> Iterator[ContenderCount]:
    """All layers of a batch with all their kernels."""
    image = placed(machine, number)
    if image is None:
        return
    target, layers, repeated = harness.find_machine(machine).target, made(number)[1], image.graph
    emitted = emit("layers", repeated, image.plan, image.selected, target, Provenance("layers", "0" * 64, ""))
    summary = summarize(
        *("layers", repeated, image.selected, image.plan, target, "0" * 64, __version__),
        *(emitted.layer_bytes, emitted.libm),
    )
    files = {**emitted.files, "layers.json": summary.text}
    rng = np.random.default_rng((SEED, number))
    inputs = {
        name: layers.inputs[name] if name in layers.inputs else random_values(rng, repeated.tensors[name])
        for name in repeated.inputs
    }
    spent = harness.run_files(files, machine, [inputs], options=harness.Options(profile=True)).layers
    assert spent is not None, "profiled images report every layer"
    for place, (step, _, kernel) in enumerate(image.chosen):
        if spent.get(place, 0) > 0:
            yield ContenderCount(machine, number, step, kernel.name, spent[place])


def _repeated(graph: Graph, steps: Sequence[int]) -> Graph:
    """A graph with these of its layers, each with outputs of its own; what others computed is an input."""
    tensors = dict(graph.tensors)
    nodes: list[Node] = []
    for place, step in enumerate(steps):
        node = graph.nodes[step]
        outputs = tuple(f"{name}_{place}" for name in node.outputs)
        tensors |= {
            new: replace(graph.tensors[old], name=new) for old, new in zip(node.outputs, outputs, strict=True)
        }
        nodes.append(replace(node, name=f"{node.name}_{place}", outputs=outputs))
    used = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    return replace(
        graph,
        tensors={name: tensor for name, tensor in tensors.items() if name in used},
        nodes=tuple(nodes),
        inputs=tuple(sorted(name for name in used if name in graph.tensors and _arrives(graph, name))),
        outputs=tuple(name for node in nodes for name in node.outputs),
    )


def _arrives(graph: Graph, name: str) -> bool:
    """Whether a tensor of a repeated layer is an input of it that is no constant."""
    return bool(name) and not graph.tensors[name].is_constant


def load() -> list[ContenderCount]:
    """The counts that were taken."""
    if not RECORD.is_file():
        return []
    data = json.loads(RECORD.read_text(encoding="utf-8"))
    names: list[str] = data["kernels"]
    return [
        ContenderCount(machine, int(number), step, names[kernel], instructions)
        for machine, batches in data["counts"].items()
        for number, rows in batches.items()
        for step, kernel, instructions in zip(rows[::3], rows[1::3], rows[2::3], strict=True)
    ]


def save(counts: Iterable[ContenderCount]) -> None:
    """Grouped by machine and batch, one batch to a line: steps, kernels and instructions in turns."""
    counts = sorted(counts, key=lambda one: (one.machine, one.batch, one.step))
    names = sorted({one.kernel for one in counts})
    numbers = {name: index for index, name in enumerate(names)}
    grouped: dict[str, dict[str, list[int]]] = {}
    for one in counts:
        row = grouped.setdefault(one.machine, {}).setdefault(str(one.batch), [])
        row += [one.step, numbers[one.kernel], one.instructions]
    machines = []
    for machine, batches in grouped.items():
        lines = ",\n".join(
            f'"{key}":{json.dumps(rows, separators=(",", ":"))}' for key, rows in batches.items()
        )
        machines.append(f'"{machine}": {{\n{lines}\n}}')
    text = f'{{"kernels": {json.dumps(names, indent=1)},\n"counts": {{\n' + ",\n".join(machines) + "\n}}\n"
    write_whole(RECORD, text.encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    names = ",".join(random_counts.MACHINES)
    parser.add_argument("--on", default=names, metavar="MACHINES", help="default: %(default)s")
    parser.add_argument("--batches", type=int, default=BATCHES, help=f"of {SIZE} layers (%(default)s)")
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
            print(f"{machine}, batch {number}: {len(found)} counts", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
