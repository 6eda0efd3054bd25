# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Compiles a model of an application, when CMake configures and again when ninja finds it out of date.

    compile_model.py DIR NAME compile MODEL -o DIR --depfile DIR/NAME.d ...
    compile_model.py --kernels DIR NAME compile MODEL -o DIR --depfile DIR/NAME.d ...

The last arguments are those of `tinyml`. CMake compiles a model that is new or has other settings at once, so
that its errors come before anything is built, and marks it as fresh. The first time that ninja runs, there is
nothing left to do.

DIR/NAME.kernels lists the sources of the runtime that the model needs. CMake compiles no others. The file is
written only if it changes, because then ninja runs CMake again. ninja must know it before it decides that, so
`--kernels` comes first and compiles the model. It never fails: a model that the old settings do not allow may
be one that the new settings allow, and those are not in use before CMake has run. Without `--kernels`, the
script compiles again what could not be compiled, and this time its error ends the build.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from pathlib import Path

from sources import remember, sources


def is_fresh(folder: Path, name: str) -> bool:
    """Whether the model has been compiled, and nothing has changed since it was read: the date of the C."""
    try:
        when = (folder / f"{name}.c").stat().st_mtime_ns
        complete = all(
            (folder / f"{name}{end}").exists() for end in (".h", "_weights.h", ".json", ".kernels")
        )
        return complete and all(path.stat().st_mtime_ns <= when for path in sources(folder / f"{name}.d"))
    except OSError:
        return False


def write_kernels(out: Path, summary: Path) -> None:
    needed = json.loads(summary.read_text(encoding="utf-8"))["sources"]["runtime"]
    text = "".join(f"{name}\n" for name in sorted(set(needed)))
    if not out.exists() or out.read_text(encoding="utf-8") != text:
        out.write_text(text, encoding="utf-8")


def compile_model(folder: Path, name: str, command: list[str]) -> int:
    from tinyml.verbs.cli import main as tinyml

    status = tinyml(command)
    if status == 0:
        write_kernels(folder / f"{name}.kernels", folder / f"{name}.json")
        source, more = folder / f"{name}.c", [folder / f"{name}{end}" for end in (".command", ".fresh")]
        read_ns = source.stat().st_mtime_ns
        remember(folder / f"{name}.sources", sources(folder / f"{name}.d"), [source], more, read_ns)
    return status


def find_kernels(folder: Path, name: str, command: list[str]) -> None:
    """Compile the model if that is possible, and mark it.

    What CMake has compiled is accepted. ninja may ask twice in its first run: it has no date of the list yet.
    """
    mark = folder / f"{name}.fresh"
    if not (mark.exists() and is_fresh(folder, name)):
        mark.unlink(missing_ok=True)
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = compile_model(folder, name, command)
        if status != 0:
            return
        print(said.getvalue(), end="")
    mark.touch()
    rule = (folder / f"{name}.d").read_bytes()
    target, dependencies = re.split(rb"(?<=:)(?= )", rule, maxsplit=1)
    (folder / f"{name}.kernels.d").write_bytes(target.replace(b".c:", b".kernels:") + dependencies)


def main(argv: list[str]) -> int:
    only_kernels = argv[0] == "--kernels"
    words = argv[1:] if only_kernels else argv
    folder, name, command = Path(words[0]), words[1], words[2:]
    if only_kernels:
        find_kernels(folder, name, command)
        return 0
    mark = folder / f"{name}.fresh"
    fresh = mark.exists() and is_fresh(folder, name)
    mark.unlink(missing_ok=True)
    return 0 if fresh else compile_model(folder, name, command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
