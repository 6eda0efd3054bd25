# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What each part of a very small int8 transformer takes, and the least that any kernel could take.

``tools.page_tables`` writes the table into docs/quantize.md. The least is counted from the model: how often
its parts multiply, and how many elements they read and write, each once. There are no loops in it, no
addresses, no calls, and no element that is read for a second window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tinyml import harness
from tinyml.cores.machines import MACHINES
from tinyml.cost.cycles import run_files
from tinyml.datasets import arrays
from tinyml.ir import Layer
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.lookup import Lookup
from tinyml.ops.normalization.normalization import Normalize
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.ops.reduce.reduce import Reduce
from tinyml.ops.transpose import Transpose
from tinyml.ops.weighted.weighted import Weighted
from tinyml.pipeline import Compiled, Options, compile_model

MODEL = "d_tinyvit_qdq_s8.onnx"
BARS = {"qemu-cortex-m4": 1.5, "qemu-cortex-m55": 0.5}
"""Instructions per multiplication that larger networks stay below."""

QUANTISER, NORMALISATION, ORDER, PRODUCTS, TABLES, SUMS = range(6)
NAMES = {
    QUANTISER: "float inputs become int8",
    NORMALISATION: "normalisations, in float between int8 borders",
    ORDER: "channels last",
    PRODUCTS: "convolutions and dense layers",
    TABLES: "functions, from tables",
    SUMS: "sums and means",
}


@dataclass(frozen=True)
class Least:
    """Instructions that nothing can save on a core."""

    product: float  # for each multiplication
    word: float  # to load or store a byte, among others
    widened: float  # to make an operand of products of a byte that is loaded
    scaled: float  # from an int32 to an int8: multiplied, rounded, saturated
    real: float  # an operation on a float
    looked_up: float  # for each byte of a table
    float_word: float  # to load or store a float


LEAST = {
    # SMLAD multiplies two pairs, SXTB16 widens two bytes; SMMLAR and SSAT; one float at a time, but VLDM
    # loads sixteen; of a word, UXTB and a load for each byte, and an instruction that puts it into a word
    "qemu-cortex-m4": Least(1 / 2, 1 / 4, 1 / 2, 2, 1, 3, 1 / 16),
    # VMLADAVA multiplies sixteen pairs; VQRDMULH, VRSHL and a narrowing move of four; four floats, or
    # sixteen bytes of a table, at a time
    "qemu-cortex-m55": Least(1 / 16, 1 / 16, 0, 3 / 4, 1 / 4, 1 / 16, 1 / 4),
}
QUANTISED = 3  # operations on a float that becomes int8: scaled, rounded, saturated
DEQUANTISED = 2  # converted, scaled
NORMALISED = 5  # summed up, without the mean, squared and summed up, scaled, offset


@dataclass(frozen=True)
class Part:
    """Layers of one kind."""

    name: str
    multiplications: int
    elements: int  # that come in and go out
    instructions: int
    least: int


@dataclass(frozen=True)
class Figures:
    parts: tuple[Part, ...]
    multiplications: int
    instructions: int  # of a run without marks between layers
    outputs: tuple[int, ...]  # elements of each layer that computes

    @property
    def least(self) -> int:
        return sum(part.least for part in self.parts)


def kind_of(layer: Layer, before: Layer | None, after: Layer | None) -> int:
    """To which part a layer belongs."""
    if isinstance(layer.op, Quantize | Dequantize):
        near = before if isinstance(layer.op, Quantize) else after
        return NORMALISATION if near is not None and isinstance(near.op, Normalize) else QUANTISER
    for classes, kind in (
        (Normalize, NORMALISATION),
        (Weighted, PRODUCTS),
        (Lookup, TABLES),
        (Binary | Reduce, SUMS),
        (Transpose, ORDER),
    ):
        if isinstance(layer.op, classes):
            return kind
    raise ValueError(f"the figures have no part for {layer.op.kind}")


def least_of(layer: Layer, core: Least) -> float:
    """Elements are read and written once, whatever reads them."""
    x, y = layer.input(0), layer.output
    moved = sum(t.elements * (core.float_word if t.dtype.is_float else core.word) for t in (x, y))
    op = layer.op
    if isinstance(op, Weighted):
        work = layer.op.macs(layer) * core.product + x.elements * core.widened + y.elements * core.scaled
    elif isinstance(op, Quantize):
        work = y.elements * QUANTISED * core.real
    elif isinstance(op, Dequantize):
        work = y.elements * DEQUANTISED * core.real
    elif isinstance(op, Normalize):
        work = y.elements * NORMALISED * core.real
    elif isinstance(op, Lookup):
        work = y.elements * core.looked_up
    elif isinstance(op, Binary | Reduce):  # each operand has a scale, then the sum
        work = x.elements * core.scaled + y.elements * core.scaled
    else:
        work = 0.0
    return moved + work


def compiled(path: Path, machine: str, io: str = "arena") -> Compiled:
    return compile_model(path, Options("model", MACHINES[machine].target.name, "portable", io=io))


def figures(path: Path, machine: str, io: str = "arena") -> Figures:
    made = compiled(path, machine, io)
    inputs = [arrays.pattern_inputs(made.graph)]
    (plain,) = harness.run_files(made.files, machine, inputs).instructions or (0,)
    profiled, _ = run_files(made.files, machine, inputs, options=harness.Options(profile=True))
    spent, least, macs, elements = Counter[int](), Counter[int](), Counter[int](), Counter[int]()
    layers = [one.layer for one in made.selected]
    steps = {step: layer for step, layer in enumerate(layers) if step in (profiled.layers or {})}
    computing = [*steps.values()]
    for index, (step, layer) in enumerate(steps.items()):
        near = computing[index - 1] if index else None
        kind = kind_of(layer, near, computing[index + 1] if index + 1 < len(computing) else None)
        spent[kind] += (profiled.layers or {})[step]
        least[kind] += round(least_of(layer, LEAST[machine]))
        macs[kind] += layer.op.macs(layer)
        elements[kind] += layer.input(0).elements + layer.output.elements
    parts = (Part(NAMES[k], macs[k], elements[k], spent[k], least[k]) for k in NAMES if spent[k])
    return Figures(tuple(parts), sum(macs.values()), plain, tuple(one.output.elements for one in computing))


def rows(folder: Path) -> Iterator[str]:
    """The lines of the page: a table, and what follows from it."""
    found = {machine: figures(folder / MODEL, machine) for machine in BARS}
    titles = [MACHINES[machine].target.name.title() for machine in BARS]
    yield f"| part | multiplications | elements | {' | '.join(f'{title} | at least' for title in titles)} |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    first, *others = (figure.parts for figure in found.values())
    for part in first:
        same = [part, *(next(one for one in parts if one.name == part.name) for parts in others)]
        counts = " | ".join(f"{one.instructions:,} | {one.least:,}" for one in same)
        yield f"| {part.name} | {part.multiplications:,} | {part.elements:,} | {counts} |"
    total = " | ".join(f"{one.instructions:,} | {one.least:,}" for one in found.values())
    macs = next(iter(found.values())).multiplications
    yield f"| all | {macs:,} | | {total} |"
    yield f"| per multiplication | | | {_each(found.values(), macs)} |"
    inner = {machine: figures(folder / MODEL, machine, "int8") for machine in BARS}
    yield f"| with `io: int8`, per multiplication | | | {_each(inner.values(), macs)} |"
    yield ""
    for title, machine in zip(titles, BARS, strict=True):
        yield _conclusion(title, found[machine], inner[machine], BARS[machine])


def _each(found: Iterable[Figures], macs: int) -> str:
    return " | ".join(f"{one.instructions / macs:.2f} | {one.least / macs:.2f}" for one in found)


def _conclusion(title: str, found: Figures, inner: Figures, bar: float) -> str:
    """Whether the bar of larger networks can be reached."""
    least, without = (one.least / found.multiplications for one in (found, inner))
    if least > bar:
        share = f"cannot be reached on a {title}: the least is {least:.2f}, or {without:.2f} with `io: int8`."
    else:
        size, layers = int(median(found.outputs)), len(found.outputs)
        share = (
            f"leaves {bar - least:.2f} on a {title} for loops and calls. Half of the {layers} layers have at "
            f"most {size} elements, whose loops are short, and whose vectors are not full."
        )
    return f"{bar} instructions per multiplication, as larger networks take, {share}"
