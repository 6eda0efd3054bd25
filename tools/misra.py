# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Compare the C with MISRA C:2012, by cppcheck's addon, and write the page of deviations.

``python -m tools.misra [--check]``

Checks the runtime and the C of some models. A rule that has no deviation in
``plugin/tinyml/api/evidence/deviations.py`` is an error, and so is a deviation that nothing needs. Takes
minutes. ``--check`` does not write docs/MISRA.md.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml.api.evidence.deviations import DEVIATIONS
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE
from tinyml.pipeline import Options, compile_model

PAGE = ROOT / "docs" / "MISRA.md"
MODELS = ("samples/digits/model.onnx", "samples/gesture/model.onnx", "samples/vibration/model.onnx")
"""Models whose C is checked: convolutions, dense layers, loops over floats."""
COMMAND = (
    *("cppcheck", "--quiet", "--addon=misra", "--std=c11", "--platform=unix32", "--max-configs=1"),
    *("--inline-suppr", "-UTINYML_PORT_HEADER", "--template={file}:{line}: {id}"),
)
MANDATORY = {
    *("9.1", "12.5", "13.6", "17.3", "17.4", "17.6", "19.1", "21.13", "21.17", "21.18", "21.19", "21.20"),
    *("22.2", "22.4", "22.5", "22.6"),
}


def violations(sources: Sequence[Path], includes: Sequence[Path]) -> list[tuple[str, str]]:
    """The rules that cppcheck finds broken, each with its place."""
    paths = [f"-I{path}" for path in (*includes, RUNTIME_INCLUDE, RUNTIME_C)]
    done = subprocess.run([*COMMAND, *paths, *map(str, sources)], capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).splitlines()
    if done.returncode or any("Bailing out" in line for line in lines):
        raise SystemExit(f"cppcheck failed:\n{done.stderr[-2000:]}")
    found = re.findall(r"^(\S+:\d+): misra-c2012-([\d.]+)$", "\n".join(lines), re.MULTILINE)
    return sorted({(rule, Path(place).name) for place, rule in found})


def generate(folder: Path, models: Sequence[str] = MODELS) -> list[Path]:
    """The C of some models, for a core without assembly."""
    sources = []
    for number, model in enumerate(models):
        compiled = compile_model(ROOT / model, Options(f"model{number}", "host", kernels="portable"))
        for name, text in compiled.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        sources.append(folder / f"model{number}.c")
    return sources


def without_deviation(found: Sequence[tuple[str, str]]) -> list[str]:
    """Violations that the table does not have, in words."""
    known = {one.rule for one in DEVIATIONS}
    return [f"{place}: rule {rule} has no deviation" for rule, place in found if rule not in known]


def not_needed(found: Sequence[tuple[str, str]]) -> list[str]:
    """Deviations that nothing needs."""
    rules = {rule for rule, _ in found}
    return [f"nothing deviates from rule {one.rule}" for one in DEVIATIONS if one.rule not in rules]


def page() -> str:
    rows = "".join(f"| {one.rule} | {one.category} | {one.what} | {one.reason} |\n" for one in DEVIATIONS)
    return f"""# MISRA C:2012

<!-- Written by `python -m tools.misra`; do not edit. -->

The runtime and the C of some models are compared with MISRA C:2012 by the addon of cppcheck. No
mandatory rule is broken. From required and advisory rules the C deviates where the table says so, for
the reason that it gives; the command fails for any other rule, and for a deviation that nothing needs.
The addon does not check every rule: rules about the whole program, and rules that no program can decide,
are left to others. The texts of the rules are MISRA's and are not repeated here.

The same C is clean under `-Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wcast-align -Wvla` with
gcc and clang, and under gcc's `-Wstack-usage=2048` (`python -m tools.analyze_c`).

| rule | category | what | reason |
|---|---|---|---|
{rows}"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args()
    if not options.check:
        PAGE.write_text(page(), encoding="utf-8")
    if shutil.which("cppcheck") is None:
        print("cppcheck is not installed: sudo apt-get install cppcheck")
        return 1
    with tempfile.TemporaryDirectory(prefix="tinyml-misra-") as name:
        sources = generate(Path(name))
        found = violations([*sorted(RUNTIME_C.rglob("*.c")), *sources], [Path(name)])
    for rule, count in Counter(rule for rule, _ in found).most_common():
        print(f"{rule:>6} {count:5}")
    problems = [*without_deviation(found), *not_needed(found)]
    print("\n".join(problems) or "no rule is broken without a deviation")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
