# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure the tables of figures inside guides, and write them between their marks.

``python -m tools.page_tables [--only NAME] [--check]``

It needs the models in the folder ``TINYML_MODELS``, QEMU for Arm and RISC-V, clang-19, and Vela
(``pip install '.[npu]'``). ``--check`` compares what needs no emulator (arenas and tables in bytes) with the
pages and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml.bench.measure import measure
from tinyml.cores.machines import MACHINES
from tinyml.harness import run_files
from tinyml.pipeline import Compiled, Options, compile_model
from tools import transformer_figures

M4 = "qemu-cortex-m4"
ROWS = (
    ("MLPerf Tiny VWW", "mlperf_vww_int8", "balanced"),
    ("MLPerf Tiny VWW, `optimize: speed`", "mlperf_vww_int8", "speed"),
    ("MCUNet VWW, float interface", "mcunet_vww_int8", "balanced"),
    ("YOLO for persons (Efinix)", "efinix_yolo_person_int8", "balanced"),
    ("MLPerf Tiny KWS, `optimize: ram`", "mlperf_kws_int8", "ram"),
    ("MLPerf Tiny KWS", "mlperf_kws_int8", "balanced"),
    ("MLPerf Tiny IC", "mlperf_resnet_int8", "balanced"),
)
VECTORS = (
    ("MLPerf Tiny, keyword spotting", "mlperf_kws_int8"),
    ("MLPerf Tiny, visual wake words", "mlperf_vww_int8"),
    ("MLPerf Tiny, image classification", "mlperf_resnet_int8"),
    ("MLPerf Tiny, anomaly detection", "mlperf_ad_int8"),
)
NPU = (
    ("keyword spotting", "mlperf_kws_int8"),
    ("visual wake words", "mlperf_vww_int8"),
    ("image classification", "mlperf_resnet_int8"),
)
FEATURES = ROOT / "benchmarks" / "features.json"
DECODER_CORES = {
    "Cortex-M3, without an FPU": "qemu-cortex-m3",
    "Cortex-M4": M4,
    "Cortex-M7": "qemu-cortex-m7",
    "Cortex-M55": "qemu-cortex-m55",
}
CORES = {
    "Cortex-M0, M0+": "qemu-cortex-m0",
    "Cortex-M3": "qemu-cortex-m3",
    "Cortex-M4 with FPU": M4,
}


def models() -> Path:
    return Path(os.environ.get("TINYML_MODELS", ROOT / "models"))


def compiled(name: str, **options: object) -> Compiled:
    return compile_model(models() / f"{name}.tflite", Options(**options))  # type: ignore[arg-type]


def row_bytes(name: str, optimize: str) -> tuple[int, int, int]:
    """The bytes of the input, of the arena, and of the arena with rows."""
    plain, rows = (
        compiled(name, target="cortex-m4", kernels="portable", optimize=optimize, io=io)
        for io in ("arena", "rows")
    )
    whole = sum(plain.graph.tensors[each].bytes for each in plain.graph.inputs)
    return whole, plain.summary["arena_bytes"], rows.summary["arena_bytes"]


def rows_table() -> Iterator[str]:
    yield "| model | input | arena | with `rows` | instructions | with `rows` |"
    yield "|---|---:|---:|---:|---:|---:|"
    for title, name, optimize in ROWS:
        sizes = " | ".join(f"{size:,}" for size in row_bytes(name, optimize))
        path = models() / f"{name}.tflite"
        counts = [measure(path, M4, "portable", Options(io=io), optimize) for io in ("arena", "rows")]
        yield f"| {title} | {sizes} | {' | '.join(f'{row.instructions / 1e6:.2f}' for row in counts)} |"


def vectors_table() -> Iterator[str]:
    yield "| model | `qemu-riscv32` | `qemu-riscv32-zve32x` | times fewer |"
    yield "|---|---:|---:|---:|"
    for title, name in VECTORS:
        path = models() / f"{name}.tflite"
        plain, vectors = (
            measure(path, machine, "portable", Options()).instructions
            for machine in ("qemu-riscv32", "qemu-riscv32-zve32x")
        )
        yield f"| {title} | {plain:,} | {vectors:,} | {plain / vectors:.1f} |"


def npu_table() -> Iterator[str]:
    ram = "arena with `optimize: ram` | NPU cycles"
    yield f"| model | arena | tables | NPU cycles | {ram} | arena without an NPU |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for title, name in NPU:
        fast, small = (
            compiled(name, target="cortex-m55", npu="ethos-u55-128", optimize=goal).summary
            for goal in ("balanced", "ram")
        )
        alone = compiled(name, target="cortex-m55", kernels="portable").summary
        cycles = [sum(part["cycles_estimated"] for part in each["npu"]) for each in (fast, small)]
        figures = (fast["arena_bytes"], fast["weights_bytes"], cycles[0], small["arena_bytes"], cycles[1])
        yield f"| {title} | {' | '.join(f'{n:,}' for n in (*figures, alone['arena_bytes']))} |"


def transforms_table() -> Iterator[str]:
    """From the record of front ends, which a test holds."""
    counts = {(row["name"], row["machine"]): row["instructions"] for row in json.loads(FEATURES.read_text())}
    yield "| Core | int16 | float |"
    yield "| --- | ---: | ---: |"
    for title, machine in CORES.items():
        cells = (f"{counts[f'{kind}: 512 samples', machine]:,}" for kind in ("int16", "float"))
        yield f"| {title} | {' | '.join(cells)} |"


def writer(target: str) -> Compiled:
    return compile_model(ROOT / "samples/writer/model.onnx", Options("writer", target, "portable"))


def decoder_table() -> Iterator[str]:
    """One run of samples/writer for the first row of its caches, and one for the last."""
    yield "| Core | arena | caches | weights | instructions, first character | last character |"
    yield "|---|---:|---:|---:|---:|---:|"
    for title, machine in DECODER_CORES.items():
        made = writer(MACHINES[machine].target.name)
        last = made.graph.tensors[made.graph.states[0].tensor].shape[2] - 1
        steps = [{"character": np.array([[1]]), "position": np.array([place])} for place in (0, last)]
        samples = [{name: value.astype(np.int32) for name, value in step.items()} for step in steps]
        counted = run_files(made.files, machine, samples).instructions or [0, 0]
        yield f"| {title} | {' | '.join(f'{n:,}' for n in (*decoder_bytes(made), *counted))} |"


def decoder_bytes(made: Compiled) -> tuple[int, int, int]:
    states = sum(made.graph.tensors[state.tensor].bytes for state in made.graph.states)
    return made.summary["arena_bytes"], states, made.summary["weights_bytes"]


def transformer_table() -> Iterator[str]:
    """A transformer of KWT-1's size, with random weights."""
    yield "| Core | RAM, in parts | RAM | instructions | per multiplication |"
    yield "|---|---:|---:|---:|---:|"
    model = transformer_figures.quantized()
    for title in ("Cortex-M4", "Cortex-M55"):
        found = transformer_figures.figures(model, DECODER_CORES[title])
        counts = (found.apart_bytes, found.arena_bytes, found.instructions)
        yield f"| {title} | {' | '.join(f'{n:,}' for n in counts)} | {found.per_mac:.2f} |"


TABLES: dict[str, tuple[str, Callable[[], Iterator[str]]]] = {
    "rows": ("rows.md", rows_table),
    "vectors": ("measure.md", vectors_table),
    "npu": ("npu.md", npu_table),
    "transforms": ("features.md", transforms_table),
    "decoder": ("decoders.md", decoder_table),
    "transformer": ("quantize.md", transformer_table),
}
"""By the mark around them: the page, and the lines."""


def written(page: Path, mark: str) -> str:
    """The table that a page has now."""
    text = page.read_text(encoding="utf-8")
    match = re.search(rf"(?s)<!-- {mark} -->\n(.*?)<!-- /{mark} -->", text)
    if match is None:
        raise SystemExit(f"{page} has no marks for {mark}")
    return match[1]


def write(mark: str) -> None:
    name, lines = TABLES[mark]
    page = ROOT / "docs" / name
    new = "".join(f"{line}\n" for line in lines())
    text = page.read_text(encoding="utf-8")
    old = f"<!-- {mark} -->\n{written(page, mark)}<!-- /{mark} -->"
    page.write_text(text.replace(old, f"<!-- {mark} -->\n{new}<!-- /{mark} -->"), encoding="utf-8")


def stale() -> list[str]:
    """The lines of the pages that no longer hold, as far as that can be seen without an emulator."""
    found = []
    rows = written(ROOT / "docs" / "rows.md", "rows")
    for title, name, optimize in ROWS:
        start = f"| {title} | {' | '.join(f'{size:,}' for size in row_bytes(name, optimize))} |"
        if start not in rows:
            found.append(f"docs/rows.md: {start}")
    if "".join(f"{line}\n" for line in transforms_table()) != written(
        ROOT / "docs/features.md", "transforms"
    ):
        found.append("docs/features.md: the transforms")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=TABLES, help="one of the tables")
    parser.add_argument("--check", action="store_true", help="compare what needs no emulator; write nothing")
    options = parser.parse_args()
    if options.check:
        found = stale()
        print("\n".join(found) or "the tables are current")
        return 1 if found else 0
    for mark in [options.only] if options.only else TABLES:
        print(f"{mark}: docs/{TABLES[mark][0]}", flush=True)
        write(mark)
    return 0


if __name__ == "__main__":
    sys.exit(main())
