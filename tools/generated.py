# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Run the commands that write generated files, and name the files that changed.

``python -m tools.generated [--all] [--check]``

Without ``--all``, only the commands that take seconds and need nothing but the development environment.
``--check`` exits with 1 if a file changed. The table of CONTRIBUTING.md is written from ``COMMANDS``.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.environment import ROOT

GUIDE = ROOT / "CONTRIBUTING.md"
MARKS = "<!-- generated files -->\n", "<!-- /generated files -->"


@dataclass(frozen=True)
class Command:
    """A command that writes generated files."""

    words: str  # after "python"
    writes: tuple[str, ...]  # files or folders
    when: str  # what was changed
    needs: str = ""  # what it needs beyond seconds; empty: `make generated` runs it

    @property
    def is_cheap(self) -> bool:
        return not self.needs


MODELS = "`TINYML_MODELS`"
COMMANDS: tuple[Command, ...] = (
    Command(
        "-m tools.supported_ops",
        ("docs/SUPPORTED_OPS.md",),
        "an operator, a kernel, a constraint, its docstring",
    ),
    Command("tests/golden/regenerate.py", ("tests/golden",), "generated C"),
    Command(
        "-m tools.benchmarks", ("docs/BENCHMARKS.md", "README.md"), "the text or the record of the benchmarks"
    ),
    Command(
        "-m tools.settings_docs",
        ("docs/settings.md", "docs/platformio.md"),
        "settings of a model",
    ),
    Command(
        "-m tools.zephyr_docs",
        ("docs/zephyr_settings.md", "docs/zephyr_testing.md"),
        "keys of tinyml.yaml, Kconfig",
    ),
    Command("-m tools.player_docs", ("docs/data_image.md",), "kernels and records of the player"),
    Command(
        "-m tools.trained_models",
        ("docs/quantize.md",),
        "kernels or passes of quantised models",
        "QEMU",
    ),
    Command("-m tools.known_boards", ("docs/KNOWN_BOARDS.md",), "boards that are known without Zephyr"),
    Command("-m tools.figures", ("docs/figures",), "the pictures of docs/concepts.md"),
    Command(
        "-m tools.benchmarks --measure",
        ("benchmarks/record.json", "docs/BENCHMARKS.md", "README.md"),
        "instructions, flash or RAM of a model",
        f"minutes, {MODELS}, QEMU",
    ),
    Command(
        "-m tools.rivals",
        ("benchmarks/rivals.json",),
        "our figures beside those of interpreters, for the published models",
        f"a minute, {MODELS}, QEMU",
    ),
    Command(
        "-m tools.conformance",
        ("docs/ONNX_CONFORMANCE.md", "tests/conformance/passed.txt"),
        "support of ONNX operators, or their error messages",
        "minutes",
    ),
    Command("-m tools.helium_limits", ("docs/HELIUM_LIMITS.md",), "Helium kernels", f"{MODELS}, QEMU"),
    Command(
        "-m tools.fewer_bits",
        ("docs/fewer_bits.md", "docs/figures/fewer_bits.svg"),
        "the quantiser, or a sample's training",
        "many minutes, espeak-ng",
    ),
    Command(
        "-m tools.float16_figures",
        ("docs/fewer_bits.md",),
        "float kernels and their float16 weights",
        "a minute, QEMU, RISC-V tools, clang-19",
    ),
    Command("-m tools.quantized_models", ("docs/quantize.md",), "the quantiser", f"minutes, {MODELS}"),
    Command(
        "-m tools.page_tables",
        (
            "docs/rows.md",
            "docs/measure.md",
            "docs/floats.md",
            "docs/npu.md",
            "docs/features.md",
            "docs/decoders.md",
            "docs/quantize.md",
            "samples/writer/README.rst",
        ),
        "memory plans or kernels: tables of figures in guides",
        f"minutes, {MODELS}, QEMU, clang-19, Vela",
    ),
    Command(
        "-m tools.four_bits_page",
        ("docs/FOUR_BITS.md", "benchmarks/four_bits.json", "benchmarks/four_bits_costs.json"),
        "kernels for weights of four bits (`--measure`)",
        f"minutes, {MODELS}, QEMU",
    ),
    Command(
        "-m tools.misra",
        ("docs/MISRA.md",),
        "C of the runtime, generated C, or its deviations from MISRA C:2012",
        "minutes, cppcheck",
    ),
    Command(
        "-m tools.kernel_checks",
        ("plugin/tinyml/api/evidence/data/checks.json",),
        "kernels, cases of operators, proofs: what `tinyml evidence` says about kernels",
        "a minute",
    ),
    Command(
        "-m tools.worst_cases",
        ("docs/WORST_CASES.md", "benchmarks/worst_cases.json", "benchmarks/worst_ways.json"),
        "kernels or the walk of `tinyml bound` (`--measure`)",
        f"minutes, {MODELS}, QEMU",
    ),
    Command(
        "-m tools.worst_shapes",
        ("docs/WORST_SHAPES.md", "benchmarks/shape_counts.json"),
        "kernels of convolutions (`--measure`)",
        "minutes, QEMU",
    ),
    Command("-m tools.spending", ("docs/OPTIMIZE.md",), "what `optimize:` does", f"minutes, {MODELS}, QEMU"),
    Command(
        "-m tools.kernel_counts",
        ("benchmarks/kernel_counts.json",),
        "a kernel that competes with another (the C of existing kernels: with `--again`)",
        "minutes, QEMU, CMSIS-NN, RISC-V tools",
    ),
    Command(
        "-m tools.layer_counts",
        ("benchmarks/layer_counts.json",),
        "which kernels compute a layer (the C of existing kernels: with `--again`, an hour)",
        f"minutes, {MODELS}, QEMU",
    ),
    Command(
        "-m tools.random_counts",
        ("benchmarks/random_counts.json",),
        "kernels (their C: with `--again`): random layers, for the error bars of `tinyml cost`",
        "minutes, QEMU, RISC-V tools",
    ),
    Command(
        "-m tools.contender_counts",
        ("benchmarks/contender_counts.json",),
        "kernels with `loop_counts` (their C: with `--again`): random layers, for the figures of their loops",
        "minutes, QEMU",
    ),
    Command(
        "-m tools.tree_counts",
        ("benchmarks/tree_counts.json",),
        "the C of trees: layers that `tinyml cost` learns from, and trained ones for its error bars",
        "minutes, QEMU, RISC-V tools",
    ),
    Command(
        "-m tools.own_loop_counts",
        ("benchmarks/own_loop_counts.json",),
        "kernels that write loops (their C: with `--again`): random layers that `tinyml cost` learns from",
        "minutes, QEMU",
    ),
    Command(
        "-m tools.fit_own_loops",
        ("plugin/tinyml/cost/data/own_loops",),
        "the counts of loops, or how their work is read from the C: their figures in `tinyml cost`",
        "minutes",
    ),
    Command(
        "-m tools.fit_costs",
        ("plugin/tinyml/cost/data", "docs/COSTS.md"),
        "the counts of layers, or the size of kernels (`--relink`): the figures of `tinyml cost`, by which "
        "kernels are chosen too",
        f"minutes, {MODELS}, CMSIS-NN",
    ),
    Command(
        "-m tools.cost_errors",
        ("plugin/tinyml/cost/data/errors", "docs/COST_ERRORS.md", "benchmarks/cost_errors.json"),
        "the figures of `tinyml cost`, or counts of random layers: error bars",
        f"minutes, {MODELS}",
    ),
    Command(
        "-m tools.kernel_sizes",
        ("plugin/tinyml/cost/data/kernels",),
        "the size and cost of kernels on RISC-V, by which they are chosen",
        "a minute, RISC-V tools",
    ),
    Command("-m tools.slot_figures", ("docs/slots.md",), "the cost of slots", f"minutes, {MODELS}, QEMU"),
    Command(
        "-m tools.player_figures",
        ("docs/PLAYER_FIGURES.md", "docs/BENCHMARKS.md"),
        "the cost of the player",
        f"minutes, {MODELS}, QEMU",
    ),
    Command(
        "-m tools.watch_figures",
        ("docs/watch.md",),
        "what watched models count, or the models of its samples",
        "a minute, espeak-ng",
    ),
    Command(
        "-m tools.adapt_figures",
        ("docs/adapt.md", "docs/BENCHMARKS.md"),
        "what models learn on the device, or the samples that learn",
        f"minutes, {MODELS}, QEMU, espeak-ng",
    ),
    Command("-m tools.samples", ("docs/SAMPLE_BOARDS.md",), "a sample, or its boards", "a west workspace"),
    Command("-m tools.boards", ("docs/BOARDS.md",), "boards of vendors", "a west workspace with HALs"),
    Command(
        "-m tools.zephyr_versions",
        ("docs/ZEPHYR_VERSIONS.md",),
        "supported Zephyr versions",
        "an hour, GitHub",
    ),
    Command(
        "-m tools.growth --write",
        ("docs/COMPILE_TIME.md",),
        "the time to compile large models",
        "minutes; seconds differ in every run",
    ),
    Command(
        "-m tests.support.record_tflite",
        ("tests/recorded",),
        "a TFLite case",
        "a virtual environment with tflite-runtime ([below](#tflite-readers))",
    ),
)
"""In an order in which later ones may read what earlier ones wrote."""


def table() -> str:
    """The commands as a table for CONTRIBUTING.md."""
    rows = ["| changed | command | writes | needs |", "|---|---|---|---|"]
    for command in COMMANDS:
        files = ", ".join(command.writes)
        rows.append(f"| {command.when} | `python {command.words}` | {files} | {command.needs} |")
    return "\n".join(rows) + "\n"


def with_table(guide: str) -> str:
    """The text of CONTRIBUTING.md with the current table."""
    begin, end = map(re.escape, MARKS)
    return re.sub(f"({begin}).*?({end})", lambda match: match[1] + table() + match[2], guide, flags=re.S)


def contents(command: Command) -> dict[Path, bytes]:
    """The files of a command, as they are now."""
    return {path: path.read_bytes() for name in command.writes for path in _files(ROOT / name)}


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    for inner in sorted(path.rglob("*")) if path.is_dir() else ():
        if inner.is_file() and "__pycache__" not in inner.parts:
            yield inner


def run(command: Command) -> list[Path]:
    """Run a command; returns the files that it changed, created or removed."""
    before = contents(command)
    print(f"python {command.words}", flush=True)
    subprocess.run(
        [sys.executable, *shlex.split(command.words)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )
    after = contents(command)
    return [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--all", action="store_true", help="also commands that take minutes or need models")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a file changed")
    options = parser.parse_args()
    changed: dict[Path, None] = {}
    failed = []
    guide = GUIDE.read_text(encoding="utf-8")
    if with_table(guide) != guide:
        GUIDE.write_text(with_table(guide), encoding="utf-8")
        changed[GUIDE] = None
    for command in COMMANDS:
        if not (command.is_cheap or options.all):
            continue
        try:
            changed |= dict.fromkeys(run(command))
        except subprocess.CalledProcessError as error:
            failed.append(f"python {command.words} ended with {error.returncode}")
            if command.needs:
                failed[-1] += f"; it needs {command.needs}"
    for path in changed:
        print(f"changed: {path.relative_to(ROOT).as_posix()}")
    print("\n".join(failed) if failed else "" if changed else "nothing changed")
    return 1 if failed or (options.check and changed) else 0


if __name__ == "__main__":
    sys.exit(main())
