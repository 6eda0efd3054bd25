# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Writes a folder of C: each file is complete or not written at all, and unchanged files are not touched."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tinyml.errors import ConfigError


def write_files(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write each file by renaming a finished copy into place; returns those that changed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        changed = []
        for name, text in files.items():
            path = folder / name
            if path.is_file() and path.read_text(encoding="utf-8") == text:
                continue
            handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
            changed.append(path)
        return changed
    except OSError as error:
        raise ConfigError(
            f"cannot write to {folder}: {error.strerror}", "choose another folder with -o"
        ) from None


def write_depfile(depfile: Path, target: Path, sources: Sequence[Path]) -> None:
    """Write a Makefile rule with the dependencies of ``target``, for ninja and make."""
    escaped = [str(p).replace(" ", "\\ ") for p in (target, *sources)]
    depfile.write_text(f"{escaped[0]}: \\\n  " + " \\\n  ".join(escaped[1:]) + "\n", encoding="utf-8")
