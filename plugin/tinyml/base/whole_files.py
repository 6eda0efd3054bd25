# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Writes files whole or not at all: a finished copy beside the file is renamed into its place."""

from __future__ import annotations

import secrets
from pathlib import Path

from tinyml.base.errors import writing


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; on an error the old one is unchanged. Creates missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_whole(path, content)


def save(path: Path, content: str | bytes) -> None:
    """Write a file that the user named, whole or not at all, in a folder that exists."""
    with writing(path):
        replace_whole(path, content.encode() if isinstance(content, str) else content)


def replace_whole(path: Path, content: bytes) -> None:
    if path.parent == Path("/dev") or (path.exists() and not path.is_file()):  # /dev/stdout, a pipe, a folder
        path.write_bytes(content)
        return
    path = behind_links(path)
    finished = staged(path, content)
    try:
        finished.replace(path)
    finally:
        finished.unlink(missing_ok=True)


def behind_links(path: Path) -> Path:
    """The file that a symbolic link leads to: the link itself must stay when the file is replaced."""
    return path.resolve() if path.is_symlink() else path


def staged(path: Path, content: bytes) -> Path:
    """A finished copy of a file, in its folder, for the caller to rename or delete.

    It has the mode of the file, or the default mode if the file is new (``tempfile`` makes private files).
    """
    finished = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with finished.open("xb") as stream:
            stream.write(content)
        if path.exists():
            finished.chmod(path.stat().st_mode & 0o777)
    except OSError:
        finished.unlink(missing_ok=True)
        raise
    return finished
