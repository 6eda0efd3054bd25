# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The files of a model in a PlatformIO build: what it is made from, and what is written.

This runs in every build, also in one that has nothing to do, so it imports nothing of the compiler.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tinyml.projects.platformio.project import Model

RUNTIME = Path(__file__).parents[2] / "runtime"


def external_files(model: Path) -> list[Path]:
    """External data files of an ONNX model, so that a build depends on them too.

    Found in the raw bytes (key 1 "location", value 2, as protobuf writes the pair): this runs in every
    build, and parsing would mean importing onnx only to find that nothing has changed.
    """
    if model.suffix.lower() != ".onnx":
        return []
    content = model.read_bytes()
    names = set()
    for pair in re.finditer(rb"\x0a\x08location\x12([\x80-\xff]*)([\x00-\x7f])", content):
        digits = (*pair[1], *pair[2])  # of the length, with base 128, the lowest first
        length = sum((digit & 0x7F) << 7 * place for place, digit in enumerate(digits))
        names.add(content[pair.end() : pair.end() + length].decode(errors="replace"))
    return [model.parent / name for name in sorted(names)]


def operator_files(model: Model) -> list[Path]:
    """Files with operators, and all C beside them: what they use of it is known only later."""
    beside = [path for file in model.options.operators for path in sorted(file.parent.glob("*.[ch]"))]
    return [*model.options.operators, *dict.fromkeys(beside)]


def read_files(model: Model) -> list[Path]:
    """The files beside a model's own that decide what is generated."""
    calibration = model.options.quantize.files if model.options.quantize else []
    return [*external_files(model.path), *calibration, *operator_files(model)]


def generated_files(name: str) -> tuple[str, ...]:
    """The files that compiling a model writes, the C file first."""
    return (f"{name}.c", f"{name}.h", f"{name}_weights.h", f"{name}.json")


def remove_stale(folder: Path, names: Iterable[str]) -> None:
    """Delete generated files and objects of models that are no longer in the project."""
    current = {stem for name in names for stem in (name, f"{name}_weights")}
    for path in folder.glob("*"):
        if path.is_file() and path.name.split(".")[0] not in current:
            path.unlink()
