# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What float16 weights cost and save, and float16 sums: python -m tools.float16_figures

Counts layers with the same float16 numbers as weights, stored as floats and as float16, on every emulated
core, and writes the table of docs/fewer_bits.md; and with sums in float16, for docs/floats.md. It takes a
minute.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

import numpy as np

from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.harness.footprint import MODEL, RUNTIME
from tinyml.ir import Array, DType, Graph, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.dense.dense import Dense
from tinyml.pipeline import Options, compile_graph

PAGE = ROOT / "docs" / "fewer_bits.md"
HEAD = "| core | convolution | pointwise | depthwise | dense | flash, all four |"
RULE = "|---|---:|---:|---:|---:|---:|"
TABLE = re.compile(re.escape(HEAD) + r"\n(?:\|.*\n)+")
SUMS_PAGE = ROOT / "docs" / "floats.md"
SUMS_HEAD = "| | convolution | pointwise | dense |"
SUMS_RULE = "|---|---:|---:|---:|"
SUMS_TABLE = re.compile(re.escape(SUMS_HEAD) + r"\n(?:\|.*\n)+")
WITH_VECTORS = "qemu-cortex-m55"
MACHINES = (
    *("qemu-cortex-m0", "qemu-cortex-m3", "qemu-cortex-m4", "qemu-cortex-m55"),
    *("qemu-riscv32", "qemu-riscv32-zve32f"),
)
SAME = (1, 1, 1, 1)


def layers() -> Graph:
    """The columns of the table, in their order."""
    sketch = Sketch(seed=16)

    def weights(*shape: int) -> Tensor:
        values = sketch.rng.normal(0, 0.3, shape).astype(np.float16)
        return sketch.constant(values.astype(np.float32))

    def image(channels: int) -> Tensor:
        return sketch.input((1, 10, 10, channels), DType.FLOAT32)

    return sketch.graph(
        sketch.add(Conv(pads=SAME), image(16), weights(24, 3, 3, 16), sketch.real(24)),
        sketch.add(Conv(), image(32), weights(32, 1, 1, 32), sketch.real(32)),
        sketch.add(DepthwiseConv(pads=SAME), image(32), weights(1, 3, 3, 32), sketch.real(32)),
        sketch.add(Dense(), sketch.input((1, 256), DType.FLOAT32), weights(64, 256), sketch.real(64)),
    )


@dataclass(frozen=True)
class Figures:
    """Of one machine, with floats and with float16."""

    machine: str
    instructions: tuple[tuple[int, int], ...]  # for each layer
    flash: tuple[int, int]  # bytes of all layers: weights, other constants and code

    def row(self) -> str:
        cells = [_change(*pair) for pair in self.instructions]
        return f"| {self.machine.removeprefix('qemu-')} | {' | '.join(cells)} | {_change(*self.flash)} |"


def _change(before: int, after: int) -> str:
    return f"{after:,} ({100 * (after / before - 1):+.0f} %)"


def measured(machine: str) -> Figures:
    (floats, large), (halves, small) = (_counted(machine, goal) for goal in ("speed", "balanced"))
    return Figures(machine, tuple(zip(floats, halves, strict=True)), (large, small))


def _counted(machine: str, goal: str) -> tuple[list[int], int]:
    """Instructions of each layer, and bytes of flash."""
    counts, _, flash = _run(machine, goal)
    return counts, flash


def _run(machine: str, goal: str, arithmetic: str = "float32") -> tuple[list[int], list[Array], int]:
    """Instructions and outputs of each layer, and bytes of flash."""
    graph = layers()
    target = harness.find_machine(machine).target.name
    options = Options(target=target, kernels="portable", optimize=goal, arithmetic=arithmetic, bands=False)
    compiled = compile_graph(graph, "layers", Provenance("layers", "0" * 64, ""), options)
    assert all(one.kernel.weights_are_float16 == (goal == "balanced") for one in compiled.selected)
    rng = np.random.default_rng(1)
    inputs = {name: rng.normal(0, 1, graph.tensors[name].shape).astype(np.float32) for name in graph.inputs}
    run = harness.run_files(compiled.files, machine, [inputs], options=harness.Options(profile=True))
    plain = harness.run_files(compiled.files, machine, [inputs])
    assert run.layers is not None, "profiled images report every layer"
    assert plain.footprint is not None
    flash = plain.footprint.part(MODEL).flash + plain.footprint.part(RUNTIME).flash
    steps = {one.layer.output.name: step for step, one in enumerate(compiled.selected)}
    outputs = [plain.outputs[0][name] for name in graph.outputs]
    return [run.layers[steps[name]] for name in graph.outputs], outputs, flash


def sums() -> list[str]:
    """The rows of the second table: float32 weights, float16 weights, float16 sums, and what these lose."""
    floats, real, _ = _run(WITH_VECTORS, "speed")
    halves, _, _ = _run(WITH_VECTORS, "balanced")
    summed, found, _ = _run(WITH_VECTORS, "balanced", "float16")
    errors = [np.abs(a - b).max() / np.abs(b).max() for a, b in zip(found, real, strict=True)]
    cells = {
        "float32 weights": [f"{count:,}" for count in floats],
        "float16 weights": [_change(*pair) for pair in zip(floats, halves, strict=True)],
        "`arithmetic: float16`": [_change(*pair) for pair in zip(floats, summed, strict=True)],
        "error of float16 sums": [f"{100 * error:.3f} %" for error in errors],
    }
    return [f"| {name} | {' | '.join((*row[:2], row[3]))} |" for name, row in cells.items()]


def table(rows: Iterable[str]) -> str:
    return "\n".join([HEAD, RULE, *rows]) + "\n"


def stated() -> list[str]:
    """The rows of the page."""
    return _stated(PAGE, TABLE)


def stated_sums() -> list[str]:
    """The rows of the second table."""
    return _stated(SUMS_PAGE, SUMS_TABLE)


def _stated(page: Path, rows: re.Pattern[str]) -> list[str]:
    found = rows.search(page.read_text(encoding="utf-8"))
    assert found, f"{page} has no such table"
    return found[0].splitlines()[2:]


def main() -> int:
    first = table(measured(machine).row() for machine in MACHINES)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda _: first, page), encoding="utf-8")
    page = SUMS_PAGE.read_text(encoding="utf-8")
    rows = "\n".join([SUMS_HEAD, SUMS_RULE, *sums()]) + "\n"
    SUMS_PAGE.write_text(SUMS_TABLE.sub(lambda _: rows, page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
