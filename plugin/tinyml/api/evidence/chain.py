# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Hashes from the model's file to the image, and object files that are compiled again."""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from tinyml.api.evidence.models import Remade
from tinyml.base.errors import ConfigError
from tinyml.bounds.elf import read_elf
from tinyml.cores.toolchains import ARM
from tinyml.harness import tools
from tinyml.setup import installation
from tinyml.setup.compiler_sources import compiler_sources

SAME, DIFFERENT = "the same code and data", "other code or data"


def chain(models: Sequence[Remade], build: Path) -> dict[str, Any]:
    """Everything that the image was made of, in the order in which it was made."""
    image = models[0].built.image
    loaded = sha256()
    for section in read_elf(image).sections:
        if section.content is not None:
            loaded.update(f"{section.name} {section.address:#x} {section.bytes}\n".encode())
            loaded.update(section.content)
    package = installation.runtime().parent
    return {
        "compiler": _together(compiler_sources(), package),
        "models": [_model(model) for model in models],
        "objects": list(_objects(models, build)),
        "image": {
            **_link(image, image.name),
            "loaded_sha256": loaded.hexdigest(),
            "configuration": [
                _link(path, path.name) for path in [image.parent / ".config"] if path.is_file()
            ],
        },
    }


def _model(model: Remade) -> dict[str, Any]:
    generated, runtime = model.built.generated, installation.runtime()
    files = model.model.compiled.files_read
    return {
        "name": model.name,
        "files": [_link(path, path.name) for path in files],
        "options": model.model.options.describe(),
        "generated": [_link(generated.folder / name, name) for name in sorted(model.model.compiled.files)],
        "kernels": [_link(runtime / name, f"runtime/{name}") for name in sorted(generated.runtime_sources)],
        "headers": _together(runtime.rglob("*.h"), runtime),
        "cmsis_nn": sorted(generated.cmsis_nn_sources),
    }


def _link(path: Path, name: str) -> dict[str, Any]:
    content = path.read_bytes()
    return {"file": name, "bytes": len(content), "sha256": sha256(content).hexdigest()}


def _together(files: Iterable[Path], root: Path) -> dict[str, Any]:
    """One hash of many files: of the list of their names and hashes."""
    rows = sorted(
        f"{sha256(path.read_bytes()).hexdigest()}  {_below(path, root)}\n" for path in files if path.is_file()
    )
    return {"files": len(rows), "sha256": sha256("".join(rows).encode()).hexdigest()}


def _below(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def _objects(models: Sequence[Remade], build: Path) -> Iterator[dict[str, Any]]:
    """The object files of the models and their kernels, each compiled once more with the build's command.

    Only debug information may differ: ninja names sources differently than the list of commands does.
    """
    root = models[0].built.image.parent.parent
    listed = root / "compile_commands.json"
    if not listed.is_file():
        return
    try:
        commands = json.loads(listed.read_text(encoding="utf-8"))
        rows = [(Path(row["file"]), Path(row["directory"]), shlex.split(row["command"])) for row in commands]
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{listed} is not a list of commands", "build again") from None
    names = {name for model in models for name in model.built.generated.runtime_sources}
    own = {model.built.generated.source.resolve() for model in models}
    for source, folder, words in rows:
        place = source if source.is_absolute() else folder / source
        kernel = next((name for name in names if place.as_posix().endswith(f"/runtime/{name}")), "")
        if not (kernel or place.resolve() in own) or "-o" not in words:
            continue
        if kernel and place.read_bytes() != (installation.runtime() / kernel).read_bytes():
            raise ConfigError(
                f"the image was built with another {kernel} than this version has",
                "build again, with the module of the same version",
            )
        at = words.index("-o") + 1
        kept = folder / words[at]
        if not kept.is_file():
            continue
        yield {
            **_link(kept, kept.name),  # the folders in it are those of the computer
            "source": place.name,
            "compiled_again": SAME if _again(words, at, folder, kept) else DIFFERENT,
        }


def _again(words: Sequence[str], at: int, folder: Path, kept: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
        other = Path(scratch) / "again.o"
        command = [*words[:at], str(other), *words[at + 1 :]]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return False
        stripped = [
            tools.without_debugging(ARM, file, Path(scratch) / "stripped.o") for file in (other, kept)
        ]
        return stripped[0] == stripped[1]
