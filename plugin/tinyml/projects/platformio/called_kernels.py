# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which files of the runtime a PlatformIO build compiles: those that its models, player and code may call."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base.errors import TinymlError
from tinyml.base.whole_files import write_whole
from tinyml.projects.platformio.model_files import RUNTIME, read_files
from tinyml.projects.platformio.project import Model

if TYPE_CHECKING:
    from tinyml.pipeline import Compiled

SERVICES = ("adapt", "host", "signal", "slot", "watch")
"""Folders with functions that applications call themselves."""
PLAYER = "player"
SUFFIX = ".kernels"

_compiled: dict[str, Compiled] = {}
"""Models by their digests: what was compiled while scripts were read, for the command that writes the C."""


def every_source() -> list[Path]:
    """All files, for a build that does not know its models."""
    return sorted(RUNTIME.rglob("*.c"))


def sources(models: Iterable[Model], compiler: str, folder: Path, player: Iterable[str] = ()) -> list[Path]:
    """The files that a build needs; the linker takes from their archive what the program calls.

    ``player`` are those of the kernels that the firmware can play, if it has a player.
    """
    played = set(player)
    names = {name for model in models for name in _kernels(model, compiler, folder)} | played
    for path in every_source():
        room = path.relative_to(RUNTIME).parts[0]
        if room in SERVICES or (room == PLAYER and played and not path.name.startswith("play_")):
            names.add(path.relative_to(RUNTIME).as_posix())
    return [RUNTIME / name for name in sorted(names)]


def write_player(words: Sequence[str], target: str, project: Path, folder: Path) -> list[str]:
    """Write the table of the kernels that the firmware can play, if any; returns the files that it calls."""
    if not words:
        return []
    from tinyml.player import table
    from tinyml.slots.firmware import kernels_of_firmware, write_firmware

    kernels = kernels_of_firmware(words, target, project)
    write_firmware(kernels, folder / PLAYER)
    return table.sources(kernels)


def compile_once(model: Model, compiler: str) -> Compiled:
    """Compile a model, unless the scripts that this build has read did."""
    from tinyml.pipeline import compile_model

    known = _compiled.pop(_digest(model, compiler), None)
    return known or compile_model(model.path, model.options)


def _kernels(model: Model, compiler: str, folder: Path) -> list[str]:
    """The files that a model calls: as the last build wrote them down, or by compiling the model now.

    None of a model that cannot be compiled: the command that writes its C tells why.
    """
    try:
        digest = _digest(model, compiler)
        record = folder / f"{model.name}{SUFFIX}"
        known = record.read_text(encoding="utf-8", errors="replace").split() if record.is_file() else []
        if known[:1] != [digest]:
            made = _compiled[digest] = compile_once(model, compiler)
            known = [digest, *made.summary["sources"].get("runtime", ())]
            write_whole(record, ("\n".join(known) + "\n").encode())  # half of a list would be believed
    except (TinymlError, OSError):
        return []
    return known[1:]


def _digest(model: Model, compiler: str) -> str:
    found = hashlib.sha256(model.key(compiler).encode())
    for path in (model.path, *read_files(model)):
        content = path.read_bytes() if path.is_file() else b""
        found.update(hashlib.sha256(content).digest())
    return found.hexdigest()
