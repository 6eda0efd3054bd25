#!/usr/bin/env python3
# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Write the generated C that is kept here for review and comparison, or check that it is up to date.

python tests/golden/regenerate.py [--check]
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Golden:
    """A model and the options it is compiled with; its files are in the folder of that name."""

    folder: str
    model: str
    target: str
    io: str = "arena"


GOLDENS = (
    Golden("digits", "samples/digits/model.onnx", "cortex-m3"),
    Golden("digits_caller", "samples/digits/model.onnx", "cortex-m4", "caller"),
)


def generated(golden: Golden) -> Mapping[str, str]:
    """File name -> text, as this compiler writes it. Weights are in the first folder only."""
    from tinyml.pipeline import Options, compile_model

    options = Options("digits", golden.target, "portable", io=golden.io)
    files = compile_model(ROOT / golden.model, options).files
    return {
        name: text for name, text in files.items() if golden.io == "arena" or not name.endswith("_weights.h")
    }


def differences() -> Iterator[str]:
    """Unified diffs of files that are not what the compiler writes."""
    for golden in GOLDENS:
        folder = HERE / golden.folder
        wanted = generated(golden)
        for name, text in wanted.items():
            path = folder / name
            kept = path.read_text() if path.is_file() else ""
            label = path.relative_to(ROOT).as_posix()
            lines = difflib.unified_diff(
                kept.splitlines(), text.splitlines(), f"{label} (kept)", f"{label} (now)", lineterm=""
            )
            yield from lines
        present = {path.name for path in folder.glob("*")} if folder.is_dir() else set()
        yield from (f"{golden.folder}/{name} is not written any more" for name in sorted(present - {*wanted}))


def main() -> int:
    sys.path.insert(0, str(ROOT / "plugin"))
    if "--check" in sys.argv[1:]:
        found = list(differences())
        print("\n".join(found[:80]) or "the generated C is current")
        return 1 if found else 0
    for golden in GOLDENS:
        folder = HERE / golden.folder
        folder.mkdir(exist_ok=True)
        for path in folder.glob("*"):
            path.unlink()
        for name, text in generated(golden).items():
            (folder / name).write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
