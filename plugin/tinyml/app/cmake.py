# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The manifest for CMake: ``python -m tinyml.app.cmake MANIFEST OUT`` writes one call per model.

The build runs it at configure time, so it loads quickly. It also checks that the Python packages that
the compiler requires are installed: a clear message now is better than a traceback during the build.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tinyml import requirements


def calls(manifest_path: Path) -> str:
    """CMake text: one call of zephyr_tinyml_model() per model."""
    from tinyml.app.manifest import load

    lines = []
    for entry in load(manifest_path).models:
        words = [entry.name, (manifest_path.parent / entry.file).as_posix()]
        if entry.kernels:
            words += ["KERNELS", entry.kernels]
        if entry.optimize:
            words += ["OPTIMIZE", entry.optimize]
        if entry.io:
            words += ["IO", entry.io]
        if entry.shapes:
            words += ["SHAPES", *(f"{name}={shape}" for name, shape in entry.shapes.items())]
        if entry.budget:
            words += ["BUDGET", *(f"{kind}={amount}" for kind, amount in entry.budget.items())]
        if entry.interface:
            words += ["INTERFACE", *(f"{name}={kind.plain}" for name, kind in entry.interface.items())]
        if entry.classes:
            words += ["CLASSES", ",".join(entry.classes)]
        if request := entry.request(manifest_path.parent):
            request.check_files()
            settings = entry.quantize.items()
            words += ["QUANTIZE", *(f"{key}={_absolute(key, text, manifest_path)}" for key, text in settings)]
        if entry.frontend:
            words += ["FRONTEND", *(f"{key}={value}" for key, value in entry.frontend.given)]
        if entry.operators:
            words += ["OPERATORS", *((manifest_path.parent / f).as_posix() for f in entry.operators)]
        if entry.npu:
            words += ["NPU", entry.npu]
        if entry.arena_region:
            words += ["ARENA_REGION", entry.arena_region]
        if entry.weights:
            words += ["WEIGHTS", entry.weights]
        for word in words:
            refuse_semicolon(word, f"model {entry.name}: ")
        lines.append(f"zephyr_tinyml_model({' '.join(map(_quoted, words))})\n")
    return "".join(lines)


def refuse_semicolon(word: str, where: str = "") -> None:
    """It separates the elements of CMake's lists, however a word is quoted."""
    from tinyml.errors import ConfigError

    if ";" in word:
        raise ConfigError(
            f"{where}{word!r} has a semicolon, at which CMake splits words",
            "rename the file or folder without it",
        )


def _absolute(key: str, text: str, manifest_path: Path) -> str:
    from tinyml.quantize.request import PATHS

    return (manifest_path.parent / text).as_posix() if key in PATHS else text


def _quoted(word: str) -> str:
    """A CMake bracket argument: nothing inside it is interpreted, whatever a path contains."""
    level = "="
    while f"]{level}]" in word:
        level += "="
    return f"[{level}[{word}]{level}]"


def main(argv: Sequence[str]) -> int:
    manifest_path, out = Path(argv[0]), Path(argv[1])
    missing = requirements.missing()
    if missing:
        project = Path(__file__).resolve().parents[3]
        print(f"TinyML requires Python packages that {sys.executable} does not have: {', '.join(missing)}")
        print(f"  try: {sys.executable} -m pip install {project}")
        return 1
    from tinyml.errors import TinymlError

    try:
        text = f"# SPDX-License-Identifier: Apache-2.0\n\n{calls(manifest_path)}"
    except TinymlError as error:
        print(error)
        return 1
    if not out.exists() or out.read_text(encoding="utf-8") != text:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
