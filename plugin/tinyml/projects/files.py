# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The user's files: read one, or change several in one step, all of them or none."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from tinyml.base import whole_files
from tinyml.base.errors import ConfigError


def read_text(path: Path) -> str:
    """A file's text with its own line endings; empty if there is no file."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None


def replace_all(contents: Mapping[Path, bytes | None]) -> None:
    """Give every file its new content; ``None`` deletes it.

    New content is first written next to each file, so a full disk or a read-only folder is noticed
    before the first file changes; the renames at the end are undone if one of them fails, or if the
    command is interrupted between two of them.
    """
    contents = {
        path if content is None else whole_files.behind_links(path): content
        for path, content in contents.items()
    }
    current = Path()
    finished: dict[Path, Path] = {}
    before: dict[Path, bytes | None] = {}
    try:
        for path, content in contents.items():
            current = path
            before[path] = path.read_bytes() if path.exists() else None
            if content is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                finished[path] = whole_files.staged(path, content)
        changed: list[Path] = []
        try:
            for path in contents:
                current = path
                changed.append(path)
                _commit(path, finished.get(path))
        except BaseException:
            for path in changed:
                _restore(path, before[path])
            raise
    except OSError as error:
        raise ConfigError(f"cannot write {current}: {error.strerror}; nothing was changed") from None
    finally:
        for leftover in finished.values():
            leftover.unlink(missing_ok=True)


def _commit(path: Path, finished: Path | None) -> None:
    if finished is None:
        path.unlink(missing_ok=True)
    else:
        finished.replace(path)


def _restore(path: Path, content: bytes | None) -> None:
    with contextlib.suppress(OSError):
        if content is None:
            path.unlink(missing_ok=True)
        else:
            whole_files.write_whole(path, content)
