# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Count layers of unusual shapes, and list the worst: ``python -m tools.worst_shapes [--measure] [--on ...]``

``--measure`` counts the layers of ``tools/sampled_shapes.py`` and the models of ``tools/int16_models.py`` on
emulated cores into benchmarks/shape_counts.json, with the kernels that the compiler chooses by default.
Without it, only the page docs/WORST_SHAPES.md is written from that file.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone

from tinyml import harness
from tinyml.base.whole_files import write_whole
from tinyml.ir import Graph
from tinyml.memory.other_forms import with_other_forms
from tinyml.memory.select import Selected, select
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.framework.kernel import Library
from tools import int16_models
from tools.environment import ROOT
from tools.kernel_counts import computed
from tools.sampled_shapes import TYPES, Shaped, as_graph, in_parts, multiplications, plain_channels, sampled

RECORD = ROOT / "benchmarks" / "shape_counts.json"
PAGE = ROOT / "docs" / "WORST_SHAPES.md"
MACHINES = ("qemu-cortex-m4", "qemu-cortex-m55", "qemu-cortex-m3", "qemu-cortex-m0", "qemu-cortex-m7")
AT_ONCE = 16
WORST = 10
RESCALED = 28
"""Instructions with Helium for eight outputs of int16."""
FEW_FILTER, FEW_VECTOR = 17, 11
"""Instructions with Helium for a filter of few channels at four windows, and for each of its vectors."""
LIMIT = 3.0
"""Times the plain layer of its size; above it, the page gives a reason."""


@dataclass(frozen=True)
class ShapeCount:
    """What one layer took."""

    machine: str
    kind: str
    layer: str
    kernel: str
    instructions: int
    multiplications: int

    @property
    def each(self) -> float:
        return self.instructions / self.multiplications


def load() -> tuple[str, list[ShapeCount]]:
    """The day of the counts, and the counts; those of whole models have no kernel."""
    if not RECORD.is_file():
        return "", []
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    return record["date"], [ShapeCount(*row) for row in record["counts"]]


def save(date: str, counts: Iterable[ShapeCount]) -> None:
    ordered = sorted(counts, key=lambda one: (one.machine, one.kind, one.layer))
    rows = ",\n".join(json.dumps(list(asdict(one).values()), separators=(",", ":")) for one in ordered)
    write_whole(RECORD, f'{{"date": "{date}", "counts": [\n{rows}\n]}}\n'.encode())


def count(machine: str, kind: str, shapes: Mapping[str, Shaped]) -> Iterator[ShapeCount]:
    """All layers in one image."""
    target = harness.find_machine(machine).target

    def choose(graph: Graph) -> tuple[Selected, ...]:
        return select(graph, target, frozenset({Library.PORTABLE, Library.GENERATED}))

    graph = as_graph(shapes, kind)
    graph = with_other_forms(graph, choose(graph), choose, target, any_code=True) or graph
    chosen = choose(graph)
    spent, _ = computed(graph, [one.kernel for one in chosen], machine)
    for step, (name, one) in enumerate(zip(shapes, chosen, strict=True)):
        yield ShapeCount(machine, kind, name, one.kernel.name, spent[step], multiplications(one.layer))


def ratio(one: ShapeCount, plain: Mapping[str, ShapeCount]) -> float:
    """Times the instructions per multiplication of the plain layer of its size."""
    return one.each / plain[f"plain {plain_channels(one.multiplications)}"].each


def reason(one: ShapeCount, shaped: Shaped) -> str:
    """Why a layer is above the limit."""
    outs, *kernel, ins = shaped.weights
    products = ins * kernel[0] * kernel[1]
    if one.kernel.endswith("loops"):
        return "loops in the model's own source: there is no kernel for these types"
    if isinstance(shaped.op, ConvTranspose):
        taps = products / (shaped.op.strides[0] * shaped.op.strides[1])
        return f"an output has {taps:.0f} multiplications on average, and is made from a column of its own"
    if "_few_mve_" in one.kernel:
        vectors = -(-products // (8 if one.kernel.endswith("s16") else 16))
        spent = FEW_FILTER + FEW_VECTOR * vectors
        return (
            f"a filter takes {spent} instructions at four windows, {spent / (4 * products):.1f} for each "
            f"multiplication: {FEW_VECTOR * vectors} to load and multiply, the others to rescale and store"
        )
    if "_depthwise_" in one.kernel:
        return f"the channel is copied with its padding, and an output has only {products} multiplications"
    if "_short_" in one.kernel:
        return f"an output has {products} multiplications, in {kernel[0]} rows that are walked one by one"
    if "_few_groups_" in one.kernel:
        return (
            f"the channels of each group are copied apart; an output has {products} multiplications, in "
            f"{kernel[0]} {'row' if kernel[0] == 1 else 'rows'}"
        )
    if "_few_" in one.kernel:
        return (
            f"an output has {products} multiplications, in {kernel[0]} rows that are walked one by one; "
            "windows with padding are copied"
        )
    if shaped.op.groups > 1:
        blocks = "pairs of filters" if one.kernel.endswith("s16") else "blocks of four filters"
        return (
            f"an output has {products} multiplications, of {ins} channels each: words, vectors and {blocks} "
            "are not full"
        )
    if outs == 1 and one.kernel.endswith("_dsp_s16"):
        return f"an output has {products} multiplications, in {kernel[0]} rows that are found one by one"
    if outs < 4:
        return f"columns are filled for {outs} {'filter' if outs == 1 else 'filters'} only"
    if set(shaped.op.dilations) != {1}:
        return "windows are copied tap by tap, and most of them contain padding"
    return f"an output has {products} multiplications"


def table(machine: str, kind: str, counts: Iterable[ShapeCount], shapes: Mapping[str, Shaped]) -> list[str]:
    """The worst layers of a core and a type."""
    found = [one for one in counts if (one.machine, one.kind) == (machine, kind)]
    plain = {one.layer: one for one in found if one.layer.startswith("plain")}
    others = [one for one in found if one.layer in shapes and one.layer not in plain]
    worst = sorted(others, key=lambda one: -ratio(one, plain))[:WORST]
    above = sum(ratio(one, plain) > LIMIT for one in others)
    figures = ", ".join(f"{plain[name].each:.2f}" for name in ("plain 8", "plain 16", "plain 32", "plain 64"))
    lines = [
        f"## {machine.removeprefix('qemu-')}, {TYPES[kind]}",
        "",
        f"Plain layers of 8, 16, 32 and 64 channels: {figures}. Of {len(others)} layers, {above} are above "
        f"{LIMIT:.0f} times the plain layer of their size.",
        "",
        "| layer | kernel | per multiplication | times plain | why |",
        "|---|---|---:|---:|---|",
    ]
    for one in worst:
        times = ratio(one, plain)
        why = reason(one, shapes[one.layer]) if times > LIMIT else ""
        lines.append(f"| {shapes[one.layer].words} | {one.kernel} | {one.each:.2f} | {times:.1f} | {why} |")
    return [*lines, ""]


MODELS = """## int16 activations in whole models

Two models with random weights, on int16 activations and on int8 (`tools/int16_models.py`): the keyword
spotter of MLPerf Tiny without its softmax, and a 1-D denoiser of three convolutions with stride 2 and
three transposed ones. Weights are int8 in flash in both.

What inner loops take is the limit. With DSP instructions, four elements of two filters and three windows
are 24 multiplications in 17 instructions, 0.71 for each: twelve SMLAD, three loads, and two that widen the
weights of one filter; those of the other are multiplied together with them, and what these add to its sums
is subtracted once. Weights of int16 in flash would make it 0.67. Eight outputs of a 3x3 depthwise layer are
72 multiplications in 99 instructions, 1.38 for each; copying the channels and the ends of lines come on
top. With Helium, eight elements of two filters and four windows are 64 multiplications in 14 instructions,
0.22 for each: eight VMLADAV, for whose sums there are no more registers, and six loads. An instruction
multiplies eight pairs of int16 or sixteen of int8, so twice the instructions of int8 are the least there.
Two outputs of eight channels of a
3x3 depthwise layer are 144 multiplications in 121 instructions, 0.84 for each.

| model | core | int16, per multiplication | int8 | int16 / int8 |
|---|---|---:|---:|---:|"""


def models(counts: Iterable[ShapeCount]) -> list[str]:
    """The table of whole models."""
    whole = {(one.machine, one.kind, one.layer): one for one in counts if not one.kernel}
    lines = []
    for name in int16_models.MODELS:
        for machine in MACHINES:
            wide, narrow = (whole.get((machine, kind, name)) for kind in ("int16", "int8"))
            if wide and narrow:
                times = wide.instructions / narrow.instructions
                core = machine.removeprefix("qemu-")
                lines.append(f"| {name} | {core} | {wide.each:.2f} | {narrow.each:.2f} | {times:.2f} |")
    return [MODELS, *lines, "", *floor(whole)] if lines else []


def floor(whole: Mapping[tuple[str, str, str], ShapeCount]) -> list[str]:
    """Why the denoiser takes more than on int8 with Helium."""
    wide, narrow = (whole.get(("qemu-cortex-m55", kind, "1-D denoiser")) for kind in ("int16", "int8"))
    if not (wide and narrow):
        return []
    products, empty, outputs = int16_models.denoiser_with_helium()
    scaling = outputs * RESCALED // 8
    rest = wide.instructions - products - scaling
    least = (products + scaling) / narrow.instructions
    full = (products + scaling - empty) / narrow.instructions
    text = (
        f"On Cortex-M55, the denoiser takes {wide.instructions:,} instructions, and {narrow.instructions:,} "
        f"on int8. Of the former, {products:,} are products ({products / narrow.instructions:.2f} times all "
        f"of int8), {scaling:,} rescale {outputs:,} outputs, {RESCALED} for eight, and {rest:,} are the "
        "rest: finding windows, copying those with padding, loops and calls. Products and rescaling alone "
        f"are {least:.2f} times all of int8; {empty:,} of their instructions are for lanes without an "
        "element, in the first layer, and for the zeros that the last layer's filter is paired with, and it "
        f"would be {full:.2f} times without these. To copy less or to call less brings the ratio no lower."
    )
    return [*textwrap.wrap(text, 108), ""]


HEAD = """# The worst shapes

<!-- Written by `python -m tools.worst_shapes`; do not edit. -->

This page shows for which shapes of layers the kernels take the most instructions per multiplication, as
counted on {date} (`python -m tools.worst_shapes --measure` counts again).

{count} layers of unusual shapes are drawn from a seed (`tools/sampled_shapes.py`): convolutions in 2 to 32
groups, 1x1 on few pixels, 1xN and Nx1, dilated, strided and transposed ones, channels from 1 to 7, batches.
This page has the worst ten of each core and type, by instructions per multiplication against **the plain
layer of its size**: a 3x3 convolution of 8x8 positions, from as many channels to as many, with about as many
multiplications. Products with padding count as multiplications; those that strides of transposed
convolutions leave out do not. Kernels are those that the compiler chooses without CMSIS-NN and where the
layer is not at the peak of memory; code is built with -O2 and counted in QEMU.

A convolution with three spatial axes is computed as one of images, whose channels are those of all slices
that its kernel spans: the shapes below say what it takes.
"""


def page(date: str, counts: Iterable[ShapeCount]) -> str:
    counts, shapes = list(counts), sampled()
    unusual = sum(not name.startswith("plain") for name in shapes)
    lines = [HEAD.format(date=date, count=unusual)]
    pairs = {(one.machine, one.kind) for one in counts if one.kernel}  # whole models have none
    for kind in TYPES:
        for machine in MACHINES:
            if (machine, kind) in pairs:
                lines += table(machine, kind, counts, shapes)
    lines += models(counts)
    return "\n".join(lines).rstrip() + "\n"


def measure(machines: Iterable[str], kinds: Iterable[str], only: str) -> list[ShapeCount]:
    shapes = {name: one for name, one in sampled().items() if only in name or name.startswith("plain")}
    counts: list[ShapeCount] = []
    for machine in machines:
        for kind in kinds:
            for some in in_parts(shapes, AT_ONCE):
                counts += count(machine, kind, some)
                print(f"{machine}: {len(counts)} counts", flush=True)
            if kind == "int16":
                counts += whole_models(machine, only)
    return counts


def whole_models(machine: str, only: str) -> Iterator[ShapeCount]:
    """On int16, and on int8 beside it."""
    for name in int16_models.MODELS:
        for kind in int16_models.KINDS if only in name else ():
            run = int16_models.run(name, kind, machine)
            yield ShapeCount(machine, kind, name, "", run.instructions, run.multiplications)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="count the layers again")
    parser.add_argument("--on", default=",".join(MACHINES), metavar="MACHINES", help="default: %(default)s")
    parser.add_argument("--types", default=",".join(TYPES), help="default: %(default)s")
    parser.add_argument(
        "--only", default="", metavar="WORD", help="layers with this in their name; writes nothing"
    )
    args = parser.parse_args()
    date, counts = load()
    machines, kinds = args.on.split(","), args.types.split(",")
    if args.measure:
        found = measure(machines, kinds, args.only)
        if args.only:
            for one in found:
                print(f"{one.machine} {one.kind} {one.layer}: {one.each:.2f} {one.kernel}")
            return 0
        again = {(one.machine, one.kind, one.layer) for one in found}
        kept = [one for one in counts if (one.machine, one.kind, one.layer) not in again]
        date, counts = datetime.now(timezone.utc).date().isoformat(), [*kept, *found]
        save(date, counts)
    write_whole(PAGE, page(date, counts).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
