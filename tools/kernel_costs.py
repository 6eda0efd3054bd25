# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure the costs of kernels again: ``Cost(...)`` in ``ops/``, by which CMSIS-NN and our kernels compete.

``python -m tools.kernel_costs [--check]``

Each kernel that has a cost computes small layers on the emulated cores, where QEMU counts its instructions.
The table shows the recorded cost next to a least-squares fit: instructions per multiplication, per output
and, where the cost has such a figure, per channel.
``--check`` only compares the ranking: for each layer, the kernel that the compiler selects must need about as
few instructions as its rival. Requires the Arm tools and CMSIS-NN (see `tinyml doctor`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.support.sketch import Sketch
from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import __version__, harness
from tinyml.base.errors import TinymlError
from tinyml.cores.targets import Target
from tinyml.emit import emit
from tinyml.emit.model import Provenance
from tinyml.emit.summary import summarize
from tinyml.ir import Graph, Layer, Quant, Shape
from tinyml.memory.plan import plan
from tinyml.memory.select import Selected
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.framework.kernel import Cost, Kernel, kernels_of
from tinyml.pipeline import LIBRARIES, choose_kernels

MACHINES = {"plain": "qemu-cortex-m3", "dsp": "qemu-cortex-m4", "mve": "qemu-cortex-m55"}
"""The machine that each column of a cost is measured on."""

WORST_CHOICE = 1.15
"""A selected kernel may need this much more than its rival: two figures cannot fit layers of all shapes."""


@dataclass(frozen=True)
class Case:
    """A layer to measure: its operator, and the shapes of its input and weights."""

    op: Conv | DepthwiseConv | Dense
    x: Shape
    weights: Shape


SAME = (1, 1, 1, 1)
HALF = (0, 0, 1, 1)  # padding of a 3x3 layer with stride 2 on even extents

LAYERS = {
    "pointwise_8_to_16": Case(Conv(), (1, 12, 12, 8), (16, 1, 1, 8)),
    "pointwise_32_to_32": Case(Conv(), (1, 8, 8, 32), (32, 1, 1, 32)),
    "pointwise_64_to_64": Case(Conv(), (1, 5, 5, 64), (64, 1, 1, 64)),
    "pointwise_128_to_128": Case(Conv(), (1, 3, 3, 128), (128, 1, 1, 128)),
    "pointwise_strided": Case(Conv((2, 2)), (1, 8, 8, 16), (32, 1, 1, 16)),
    "first_of_images": Case(Conv((2, 2), pads=HALF), (1, 16, 16, 3), (8, 3, 3, 3)),
    "first_of_audio": Case(Conv((2, 2), pads=(4, 1, 5, 1)), (1, 25, 10, 1), (32, 10, 4, 1)),
    "square_16_to_16": Case(Conv(pads=SAME), (1, 8, 8, 16), (16, 3, 3, 16)),
    "square_32_to_64": Case(Conv((2, 2), pads=HALF), (1, 8, 8, 32), (64, 3, 3, 32)),
    "row_of_audio": Case(Conv(pads=(0, 1, 0, 1)), (1, 1, 32, 16), (16, 1, 3, 16)),
    "row_of_sensors": Case(Conv(pads=(0, 2, 0, 2)), (1, 1, 40, 8), (24, 1, 5, 8)),
    "depthwise_8": Case(DepthwiseConv(pads=SAME), (1, 12, 12, 8), (1, 3, 3, 8)),
    "depthwise_32": Case(DepthwiseConv(pads=SAME), (1, 8, 8, 32), (1, 3, 3, 32)),
    "depthwise_64": Case(DepthwiseConv(pads=SAME), (1, 10, 5, 64), (1, 3, 3, 64)),
    "depthwise_strided": Case(DepthwiseConv((2, 2), pads=HALF), (1, 8, 8, 32), (1, 3, 3, 32)),
    "depthwise_5x5": Case(DepthwiseConv(pads=(2, 2, 2, 2)), (1, 8, 8, 16), (1, 5, 5, 16)),
    "depthwise_stream": Case(DepthwiseConv(), (1, 9, 1, 48), (1, 9, 1, 48)),
    "depthwise_of_three": Case(DepthwiseConv(), (1, 7, 1, 48), (1, 5, 1, 48)),
    "depthwise_single": Case(DepthwiseConv(), (1, 3, 3, 32), (1, 3, 3, 32)),
    "depthwise_four": Case(DepthwiseConv(pads=SAME), (1, 2, 2, 64), (1, 3, 3, 64)),
    "depthwise_row": Case(DepthwiseConv(pads=(0, 1, 0, 1)), (1, 1, 20, 16), (1, 1, 3, 16)),
    "dense_16": Case(Dense(), (1, 64), (16, 64)),
    "dense_small": Case(Dense(), (1, 32), (10, 32)),
    "dense_128": Case(Dense(), (1, 128), (64, 128)),
    "dense_large": Case(Dense(), (1, 640), (32, 640)),
}


@dataclass(frozen=True)
class Count:
    """What one kernel needs for one layer."""

    case: str
    layer: Layer
    kernel: Kernel[Any]
    instructions: int


@dataclass(frozen=True)
class Fit:
    """A kernel's cost on one kind of core, as recorded and as measured."""

    kernel: str
    column: str
    recorded: tuple[float, ...]
    measured: tuple[float, ...]
    worst: float  # the largest relative error of the measured figures, over all layers

    def row(self) -> str:
        recorded, measured = (
            f"({', '.join(f'{figure:.4g}' for figure in figures)})"
            for figures in (self.recorded, self.measured)
        )
        return f"{self.kernel:36}{self.column:7}{recorded:>20}{measured:>23}{self.worst:>9.0%}"


def sketched(names: Iterable[str], copies: Mapping[str, int] | None = None) -> Graph:
    """Independent layers, named after their case; with ``copies``, each so often."""
    sketch = Sketch(seed=5)
    outputs = []
    for name in names:
        case = LAYERS[name]
        axis = 3 if isinstance(case.op, DepthwiseConv) else 0
        x = sketch.input(case.x, quant=Quant.per_tensor(0.05, 3))
        for _ in range(copies[name] if copies else 1):
            w, b = sketch.weights(case.weights, axis), sketch.bias(case.weights[axis])
            outputs.append(sketch.add(case.op, x, w, b, quant=Quant.per_tensor(0.1, -7)))
    return sketch.graph(*outputs)


def contenders(layer: Layer, target: Target) -> list[Kernel[Any]]:
    """The kernels with a cost that can compute a layer on a target."""
    kernels = (kernel for kernel in kernels_of(type(layer.op)) if kernel.cost and kernel.runs_on(target))
    return [kernel for kernel in kernels if kernel.refusal(layer) is None]


def count(column: str, names: Iterable[str] = tuple(LAYERS)) -> list[Count]:
    """Every contender for every layer on one kind of core, in one image."""
    names = list(names)
    machine = harness.find_machine(MACHINES[column])
    kernels = {
        name: contenders(layer, machine.target)
        for name, layer in zip(names, sketched(names).layers(), strict=True)
    }
    graph = sketched(names, {name: len(found) for name, found in kernels.items()})
    assigned = [(name, kernel) for name, found in kernels.items() for kernel in found]
    selected = tuple(
        Selected(layer, kernel, kernel.scratch_bytes(layer, machine.target))
        for layer, (_, kernel) in zip(graph.layers(), assigned, strict=True)
    )
    spent = instructions(graph, selected, machine)
    return [
        Count(name, each.layer, kernel, spent[index])
        for index, (each, (name, kernel)) in enumerate(zip(selected, assigned, strict=True))
    ]


def instructions(graph: Graph, selected: tuple[Selected, ...], machine: harness.Machine) -> dict[int, int]:
    """Instructions of each layer, computed by the kernels that are given."""
    placed = plan(graph, selected, False)
    emitted = emit("layers", graph, placed, selected, machine.target, Provenance("layers", "0" * 64, ""))
    source = emitted.files["layers.c"]
    summary = summarize(
        "layers", graph, selected, placed, machine.target, "0" * 64, __version__, emitted.layer_bytes, source
    )
    files = {**emitted.files, "layers.json": summary.text}
    sample = {name: np.zeros(graph.tensors[name].shape, np.int8) for name in graph.inputs}
    result = harness.run_files(files, machine.name, [sample], options=harness.Options(profile=True))
    assert result.layers is not None, "profiled images report every layer"
    return result.layers


def fits(column: str, counts: Iterable[Count]) -> Iterator[Fit]:
    """The figures that come closest, in relative terms, to the counts of each kernel."""
    by_kernel: dict[Kernel[Any], list[Count]] = {}
    for each in counts:
        by_kernel.setdefault(each.kernel, []).append(each)
    for kernel, found in by_kernel.items():
        cost = kernel.cost
        assert cost is not None
        figures = recorded(cost, column)
        work = np.array([_work(c.layer)[: len(figures)] for c in found], float)
        spent = np.array([c.instructions for c in found], float)
        shares = work / spent[:, np.newaxis]
        fitted = np.linalg.lstsq(shares, np.ones(len(found)), rcond=None)[0]
        worst = float(np.abs(shares @ fitted - 1).max())
        yield Fit(kernel.name, column, figures, tuple(float(figure) for figure in fitted), worst)


def _work(layer: Layer) -> tuple[int, int, int]:
    """Multiplications, outputs and output channels."""
    return layer.op.macs(layer), layer.output.elements, layer.output.shape[-1]


def recorded(cost: Cost, column: str) -> tuple[float, ...]:
    """One figure for each kind of work that the cost counts."""
    figures: tuple[float, float] = getattr(cost, column)
    return (*figures, cost.channel) if cost.channel else figures


def wrong_choices(column: str, counts: Iterable[Count]) -> list[str]:
    """Layers for which the compiler selects a kernel that needs clearly more than the one it rejected."""
    spent = {(each.case, each.kernel.name): each.instructions for each in counts}
    names = list(dict.fromkeys(case for case, _ in spent))
    graph, target = sketched(names), harness.find_machine(MACHINES[column]).target
    chosen = choose_kernels(graph, target, "auto", cmsis_nn=True)
    found = []
    for choice in LIBRARIES:
        for name, ours, rival in zip(names, chosen, choose_kernels(graph, target, choice, True), strict=True):
            takes, other = spent[name, ours.kernel.name], spent[name, rival.kernel.name]
            if takes > other * WORST_CHOICE:
                found.append(
                    f"{name} on {target.name}: {ours.kernel.name} is selected and needs {takes:,} "
                    f"instructions; {rival.kernel.name} needs {other:,}"
                )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only check that costs rank kernels correctly")
    check = parser.parse_args().check
    wrong: list[str] = []
    if not check:
        print(f"{'kernel':36}{'core':7}{'recorded':>20}{'measured':>23}{'error':>9}")
    try:
        for column in MACHINES:
            counts = count(column)
            wrong += wrong_choices(column, counts)
            for fit in () if check else fits(column, counts):
                print(fit.row(), flush=True)
    except TinymlError as error:
        print(f"{error}\n{error.hint}", file=sys.stderr)
        return 1
    print("\n".join(wrong) if wrong else f"the costs rank all kernels within {WORST_CHOICE - 1:.0%}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
