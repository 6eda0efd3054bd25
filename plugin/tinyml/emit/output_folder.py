# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Writes a folder of C: each file is complete or not written at all, and unchanged files are not touched."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tinyml.base import whole_files
from tinyml.base.errors import ConfigError
from tinyml.base.lock import locked

_NOT_IN_RULES = frozenset("$#'\"&?*<>|;`^%[]\\\t\n\r")
"""Readers of rules (ninja's, make's, and CMake's, which rewrites them) stop at them, lose or expand them."""


def write_files(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write all files, or none if one cannot be written; returns those that changed.

    All copies are finished before the first is renamed into place, and sources come last: a process that is
    killed between two renames leaves a source that is older than the model, so the build generates all files
    again. A source refuses headers of another set (see ``emit/templates/model.c.j2``), and no
    two processes write to a folder at once.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            return _write(folder, sorted(files.items(), key=lambda item: item[0].endswith(".c")))
    except OSError as error:
        raise ConfigError(
            f"cannot write to {folder}: {error.strerror}", "choose another folder with -o"
        ) from None


def _write(folder: Path, files: Sequence[tuple[str, str]]) -> list[Path]:
    ready: list[tuple[Path, Path]] = []
    try:
        for name, text in files:
            path = folder / name
            content = text.encode()
            if not path.is_file() or path.read_bytes() != content:
                ready.append((whole_files.staged(path, content), path))
        for finished, path in ready:
            finished.replace(path)
    finally:
        for finished, _ in ready:
            finished.unlink(missing_ok=True)
    return [path for _, path in ready]


def write_depfile(depfile: Path, target: Path, sources: Sequence[Path]) -> None:
    """Write a Makefile rule with the dependencies of ``target``, for ninja and make.

    Sources whose names such a rule cannot hold are left out: ninja would look for other files, not find
    them, and build again every time. The model itself is a dependency without this file, too.
    """
    sources = [source for source in sources if not set(str(source)) & _NOT_IN_RULES]
    escaped = [str(p).replace(" ", "\\ ") for p in (target, *sources)]
    rule = f"{escaped[0]}: \\\n  " + " \\\n  ".join(escaped[1:]) + "\n"
    whole_files.save(depfile, os.fsencode(rule))  # names of files need not be UTF-8
