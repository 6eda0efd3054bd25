# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Compiles a model of an application, when CMake configures and again when ninja finds it out of date.

    compile_model.py DIR NAME compile MODEL -o DIR --depfile DIR/NAME.d ...

The last arguments are those of `tinyml`. CMake compiles a model that is new or has other settings at once, so
that its errors come before anything is built, and marks it as fresh. The first time that ninja runs, there is
nothing left to do.

DIR/NAME.kernels lists the sources of the runtime that the model needs. CMake compiles no others. The file is
written only if it changes, because then ninja runs CMake again.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path


def sources(depfile: Path) -> list[Path]:
    """What the generated C depends on: the rule that `tinyml compile` wrote."""
    rule = os.fsdecode(depfile.read_bytes()).replace("\\\n", " ")
    words = re.split(r"(?<!\\)\s+", rule.strip())
    return [Path(word.replace("\\ ", " ")) for word in words[1:]]


def is_fresh(mark: Path, generated: Path, depfile: Path) -> bool:
    """Whether CMake has compiled the model, and nothing has changed since it was read: the date of the C."""
    try:
        when = generated.stat().st_mtime_ns
        return mark.exists() and all(path.stat().st_mtime_ns <= when for path in sources(depfile))
    except OSError:
        return False


def write_kernels(out: Path, summary: Path) -> None:
    needed = json.loads(summary.read_text(encoding="utf-8"))["sources"]["runtime"]
    text = "".join(f"{name}\n" for name in sorted(set(needed)))
    if not out.exists() or out.read_text(encoding="utf-8") != text:
        out.write_text(text, encoding="utf-8")


def main(argv: list[str]) -> int:
    folder, name, command = Path(argv[0]), argv[1], argv[2:]
    mark = folder / f"{name}.fresh"
    fresh = is_fresh(mark, folder / f"{name}.c", folder / f"{name}.d")
    mark.unlink(missing_ok=True)
    if fresh:
        return 0
    from tinyml.verbs.cli import main as tinyml

    status = tinyml(command)
    if status == 0:
        write_kernels(folder / f"{name}.kernels", folder / f"{name}.json")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
