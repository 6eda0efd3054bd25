# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Change several of the user's files in one step: all of them, or none."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tinyml.errors import ConfigError


def replace_all(contents: Mapping[Path, bytes | None]) -> None:
    """Give every file its new content; ``None`` deletes it.

    New content is first written next to each file, so a full disk or a read-only folder is noticed
    before the first file changes; the renames at the end are undone if one of them fails.
    """
    staged: dict[Path, Path] = {}
    before: dict[Path, bytes | None] = {}
    try:
        for path, content in contents.items():
            before[path] = path.read_bytes() if path.exists() else None
            if content is not None:
                staged[path] = _stage(path, content)
        changed: list[Path] = []
        try:
            for path in contents:
                _commit(path, staged.pop(path, None))
                changed.append(path)
        except OSError:
            for path in changed:
                _restore(path, before[path])
            raise
    except OSError as error:
        raise ConfigError(
            f"cannot write {error.filename or ''}: {error.strerror}; nothing was changed"
        ) from None
    finally:
        for leftover in staged.values():
            leftover.unlink(missing_ok=True)


def _stage(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    staged = Path(name)
    # Temporary files are private; the user's file keeps its mode, a new file gets the default mode.
    staged.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
    return staged


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _commit(path: Path, staged: Path | None) -> None:
    if staged is None:
        path.unlink(missing_ok=True)
    else:
        staged.replace(path)


def _restore(path: Path, content: bytes | None) -> None:
    with contextlib.suppress(OSError):
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(content)
