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

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tests.support.recurrent_shapes import Shape, instructions_each
from tinyml.bench.measure import measure
from tinyml.pipeline import Compiled, Options, compile_model
from tools import (
    biased_attention,
    float_table,
    masked_attention,
    small_transformer,
    transformer_figures,
    writer_tables,
)

M4 = "qemu-cortex-m4"
ROWS = (
    ("MLPerf Tiny VWW", "mlperf_vww_int8", "balanced"),
    ("MLPerf Tiny VWW, `optimize: speed`", "mlperf_vww_int8", "speed"),
    ("MCUNet VWW, float interface", "mcunet_vww_int8", "balanced"),
    ("MobileNetV2 (ST), ONNX, float interface", "d_st_mbv2_qdq_s8", "balanced"),
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
CORES = {
    "Cortex-M0, M0+": "qemu-cortex-m0",
    "Cortex-M3": "qemu-cortex-m3",
    "Cortex-M4 with FPU": M4,
}


def models() -> Path:
    return Path(os.environ.get("TINYML_MODELS", ROOT / "models"))


def model(name: str) -> Path:
    """The file of a published model."""
    tflite = models() / f"{name}.tflite"
    return tflite if tflite.exists() else tflite.with_suffix(".onnx")


def compiled(name: str, **options: object) -> Compiled:
    return compile_model(model(name), Options(**options))  # type: ignore[arg-type]


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
        path = model(name)
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


def transformer_table() -> Iterator[str]:
    """A transformer of KWT-1's size, with random weights."""
    yield "| Core | RAM, in parts | RAM | instructions | per multiplication |"
    yield "|---|---:|---:|---:|---:|"
    model = transformer_figures.quantized()
    for title in ("Cortex-M4", "Cortex-M55"):
        found = transformer_figures.figures(model, writer_tables.CORES[title])
        counts = (found.apart_bytes, found.arena_bytes, found.instructions)
        yield f"| {title} | {' | '.join(f'{n:,}' for n in counts)} | {found.per_mac:.2f} |"


def recurrent_table() -> Iterator[str]:
    """Instructions per multiplication of layers that give all steps, or the last one."""
    cores = ("Cortex-M4", "Cortex-M55")
    cells = {
        "RNN": ("rnn", False),
        "GRU": ("gru", False),
        "GRU, linear": ("gru", True),
        "LSTM": ("lstm", False),
    }
    sizes = ((32, 12), (32, 32), (40, 12), (64, 64), (128, 40))
    titles = " | ".join(f"{core}: {cell}" for core in cores for cell in cells)
    yield f"| units x inputs | steps given | {titles} |"
    yield f"|---|---|{'---:|' * len(cores) * len(cells)}"
    for every, given in ((True, "all"), (False, "last")):
        for units, inputs in sizes:
            some = [Shape(cell, units, inputs, every, linear) for cell, linear in cells.values()]
            counted = [instructions_each(some, writer_tables.CORES[core]).values() for core in cores]
            figures = " | ".join(f"{each:.2f}" for found in counted for each in found)
            yield f"| {units} x {inputs} | {given} | {figures} |"


TABLES: dict[str, tuple[str, Callable[[], Iterator[str]]]] = {
    "rows": ("rows.md", rows_table),
    "vectors": ("measure.md", vectors_table),
    "floats": ("floats.md", lambda: float_table.rows(models())),
    "npu": ("npu.md", npu_table),
    "transforms": ("features.md", transforms_table),
    "decoder": ("decoders.md", writer_tables.decoder_table),
    "writer": ("../samples/writer/README.rst", writer_tables.sample_table),
    "recurrent": ("quantize.md", recurrent_table),
    "transformer": ("quantize.md", transformer_table),
    "masked attention": ("quantize.md", masked_attention.rows),
    "biased attention": ("quantize.md", biased_attention.rows),
    "small transformer": ("quantize.md", lambda: small_transformer.rows(models())),
}
"""By the mark around them: the page, and the lines."""


def marks(page: Path, mark: str) -> tuple[str, str]:
    """The lines around a table: comments of the page's language."""
    if page.suffix == ".rst":
        return f".. {mark}\n\n", f"\n.. /{mark}\n"
    return f"<!-- {mark} -->\n", f"<!-- /{mark} -->"


def written(page: Path, mark: str) -> str:
    """The table that a page has now."""
    text = page.read_text(encoding="utf-8")
    start, end = map(re.escape, marks(page, mark))
    match = re.search(rf"(?s){start}(.*?){end}", text)
    if match is None:
        raise SystemExit(f"{page} has no marks for {mark}")
    return match[1]


def write(mark: str) -> None:
    name, lines = TABLES[mark]
    page = ROOT / "docs" / name
    new = "".join(f"{line}\n" for line in lines())
    text = page.read_text(encoding="utf-8")
    start, end = marks(page, mark)
    old = f"{start}{written(page, mark)}{end}"
    page.write_text(text.replace(old, f"{start}{new}{end}"), encoding="utf-8")


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
