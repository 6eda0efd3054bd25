# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Run static analysers over the C of every operator case and over the runtime.

``python -m tools.analyze_c [--only NAME] [--cases PATTERN] [--keep FOLDER]``

Generates the C of all cases in ``tests/ops`` and of all TFLite cases, then runs gcc and clang with all
warnings, gcc's -fanalyzer, cppcheck and clang-tidy. Analysers that are not installed are listed and skipped.
Exits with 1 if an analyser reports anything. All of it takes some minutes.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tests.support.tflite_cases import all_cases
from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml.emit.model import Provenance
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, WARNINGS
from tinyml.importers import tflite_graph
from tinyml.ir import Graph
from tinyml.pipeline import Options, compile_graph

GROUP = 16  # models in a source, because starting an analyser takes longer than analysing a small model
TREES = "trees"
"""Begins the names of the models with decision trees."""
STRICT = ("-std=c11", *WARNINGS, "-Wpedantic", "-Wsign-conversion", "-Wcast-align", "-Wvla")
STACK = "-Wstack-usage=2048"  # gcc only
TIDY = (
    "-*",
    "clang-analyzer-*",
    "bugprone-*",
    # Checks that contradict the design: kernels take many integers; every loop index is an int32_t;
    # memcpy is in C11 without Annex K; macros take calls as arguments.
    "-bugprone-easily-swappable-parameters",
    "-bugprone-implicit-widening-of-multiplication-result",
    "-bugprone-macro-parentheses",
    "-bugprone-narrowing-conversions",  # -Wconversion reports what changes values
    "-bugprone-signed-char-misuse",  # int8_t holds numbers, not characters
    "-bugprone-suspicious-include",  # the groups of models below
    "-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling",
)


@dataclass(frozen=True)
class Analyser:
    """A program that reports on one C source; silence and an exit status of 0 mean that it is clean."""

    name: str
    command: tuple[str, ...]
    debian: str  # the package that has it
    after: tuple[str, ...] = ()  # arguments after the source

    @property
    def program(self) -> str:
        return self.command[0]

    def report(self, source: Path, includes: Sequence[Path]) -> str:
        """What it finds in ``source``; empty if nothing."""
        paths = [f"-I{path}" for path in includes]
        clang_tidy = self.after[:1] == ("--",)
        arguments = [str(source), *self.after, *paths] if clang_tidy else [*paths, str(source), *self.after]
        done = subprocess.run([*self.command, *arguments], capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else (done.stdout + done.stderr).strip()


ANALYSERS = (
    Analyser("gcc", ("gcc", *STRICT, STACK, "-O2", "-c", "-o", os.devnull), "gcc"),
    Analyser("clang", ("clang", *STRICT, "-O2", "-c", "-o", os.devnull), "clang"),
    Analyser("analyzer", ("gcc", *STRICT, "-O1", "-fanalyzer", "-c", "-o", os.devnull), "gcc"),
    Analyser(
        "cppcheck",
        (
            *("cppcheck", "--quiet", "--std=c11", "--error-exitcode=1", "--inline-suppr"),
            *("--enable=warning,performance,portability", "-UTINYML_PORT_HEADER"),
            "--suppress=shiftTooManyBitsSigned",  # x >> 31 is arithmetic with the compilers we support
            # It assumes that the walk down a tree may end at a node that is not a leaf.
            f"--suppress=arrayIndexOutOfBounds:*/{TREES}*.c",
            # It takes the names in a function type for variables.
            "--suppress=legacyUninitvar:*/depthwise_conv_mve_s8.c",
        ),
        "cppcheck",
    ),
    Analyser(
        "clang-tidy",
        ("clang-tidy", "--quiet", "--warnings-as-errors=*", f"--checks={','.join(TIDY)}"),
        "clang-tidy",
        ("--", "-std=c11", "-DTINYML_ASSERTIONS=1"),  # which tell it what callers guarantee
    ),
)


def available() -> list[Analyser]:
    return [analyser for analyser in ANALYSERS if shutil.which(analyser.program)]


def graphs(pattern: str = "") -> Iterator[tuple[str, Graph]]:
    """Every case whose name matches, with its name."""
    for path in sorted((ROOT / "tests" / "ops").glob("*.py")):
        if path.stem == "__init__":
            continue
        for case in import_module(f"tests.ops.{path.stem}").CASES:
            if re.search(pattern, f"{path.stem}: {case.name}"):
                yield f"{path.stem}: {case.name}", case.graph()
    for tflite in all_cases():
        if re.search(pattern, f"tflite: {tflite.name}"):
            yield f"tflite: {tflite.name}", tflite_graph.read(Path("case.tflite"), tflite.content, {})


def generate(folder: Path, pattern: str = "") -> list[Path]:
    """Write the C of the cases and sources that include some of them each; returns the latter."""
    names = []
    for number, (title, graph) in enumerate(graphs(pattern)):
        trees = any(node.op.kind == "Trees" for node in graph.nodes)
        name = f"{TREES if trees else 'case'}{number}"
        origin = Provenance(title, "00" * 32, "")
        compiled = compile_graph(graph, name, origin, Options(target="host", kernels="portable"))
        for file, text in compiled.files.items():
            (folder / file).write_text(text, encoding="utf-8")
        names.append(name)
    groups = []
    for start in range(0, len(names), GROUP):
        group = folder / f"group{start // GROUP}.c"
        group.write_text(
            "".join(f'#include "{name}.c"\n#undef AT\n' for name in names[start : start + GROUP])
        )
        groups.append(group)
    return groups


def analyse(analyser: Analyser, sources: Sequence[Path], includes: Sequence[Path]) -> list[str]:
    """What an analyser finds in some sources."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = pool.map(lambda source: analyser.report(source, includes), sources)
        return [report for report in reports if report]


def run(folder: Path, analysers: Sequence[Analyser], pattern: str) -> bool:
    """Whether all analysers are content with the cases and the runtime."""
    groups = generate(folder, pattern)
    runtime = sorted(RUNTIME_C.rglob("*.c"))
    print(f"{len(groups)} sources with up to {GROUP} models each, {len(runtime)} of the runtime", flush=True)
    clean = True
    for analyser in analysers:
        start = time.monotonic()
        found = analyse(analyser, [*groups, *runtime], (folder, RUNTIME_INCLUDE, RUNTIME_C))
        clean = clean and not found
        print(f"[{'!!' if found else 'ok'}] {analyser.name} ({time.monotonic() - start:.0f} s)", flush=True)
        for report in found:
            print(report, flush=True)
    return clean


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=[a.name for a in ANALYSERS], help="run one analyser")
    parser.add_argument("--cases", default="", metavar="PATTERN", help="only cases whose name matches")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the C here and keep it")
    options = parser.parse_args()
    present = available()
    for analyser in ANALYSERS:
        if analyser not in present:
            print(f"[--] {analyser.name}: not installed (sudo apt-get install {analyser.debian})")
    chosen = [a for a in present if options.only in (None, a.name)]
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        return 0 if run(options.keep, chosen, options.cases) else 1
    with tempfile.TemporaryDirectory(prefix="tinyml-analyze-") as name:
        return 0 if run(Path(name), chosen, options.cases) else 1


if __name__ == "__main__":
    sys.exit(main())
