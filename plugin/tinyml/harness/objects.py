# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A cache of compiled objects: the same source, flags and compiler are compiled once."""

from __future__ import annotations

import atexit
import functools
import hashlib
import logging
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tinyml.errors import ToolError
from tinyml.harness.tools import Compiler
from tinyml.whole_files import write_whole
from tinyml.workspace import cache_folder

LOG = logging.getLogger(__name__)
MAX_CACHE_BYTES = 512 * 2**20


@dataclass(frozen=True)
class Unit:
    """One source file and how to compile it. ``part`` is the part of the image that it belongs to."""

    source: Path
    part: str
    flags: tuple[str, ...]
    includes: tuple[Path, ...] = ()


def compile_all(compiler: Compiler, units: Sequence[Unit]) -> list[Path]:
    """The object files of ``units``, in order; cached ones are not compiled again."""
    headers = {folder: _headers_digest(folder) for unit in units for folder in _folders(unit)}
    folder = _folder()

    def one(unit: Unit) -> Path:
        digests = [headers[path] for path in _folders(unit)]
        path = folder / f"{_key(compiler, unit, digests)}.o"
        if _whole(path):
            os.utime(path)  # used now: the last to be pruned
        else:
            _compile(compiler, unit, path)
        return path

    _prune(folder)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, units))


def _folder() -> Path:
    """The cache, or a folder that ends with this process if there is no home that can be written."""
    folder = cache_folder() / "objects"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return _temporary_folder()
    return folder if os.access(folder, os.W_OK | os.X_OK) else _temporary_folder()


@functools.cache
def _temporary_folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="west-tinyml-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def _folders(unit: Unit) -> tuple[Path, ...]:
    """The folders that hold the headers of a unit: its include path, and its own folder."""
    return (unit.source.parent, *unit.includes)


def _headers_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.h")):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _key(compiler: Compiler, unit: Unit, headers: Iterable[str]) -> str:
    source = hashlib.sha256(unit.source.read_bytes()).hexdigest()
    text = "\0".join((compiler.identity, unit.source.name, source, *unit.flags, *headers))
    return hashlib.sha256(text.encode()).hexdigest()


def _compile(compiler: Compiler, unit: Unit, path: Path) -> None:
    """Compile into a private file first: other processes may build the same object at the same time."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    os.close(handle)
    partial = Path(name)
    includes = [f"-I{folder}" for folder in unit.includes]
    command = [str(compiler.path), *unit.flags, *includes, "-c", str(unit.source), "-o", name]
    try:
        LOG.debug("%s", shlex.join(command))
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise ToolError(
                f"{compiler.path.name} cannot compile {unit.source.name}:\n{excerpt(done.stderr)}",
                "the command was: " + " ".join(command),
            )
        digest = hashlib.sha256(partial.read_bytes()).hexdigest()
        partial.replace(path)
        write_whole(_digest_of(path), digest.encode("ascii"))
    finally:
        partial.unlink(missing_ok=True)


def _digest_of(path: Path) -> Path:
    """The file next to an object that holds the hash of its bytes."""
    return path.with_suffix(".sha256")


def _whole(path: Path) -> bool:
    """Whether the cache has an object, all of it: one that was cut off or changed is compiled again."""
    try:
        wanted = _digest_of(path).read_text(encoding="ascii")
        return hashlib.sha256(path.read_bytes()).hexdigest() == wanted
    except (OSError, ValueError):
        return False


def _prune(folder: Path) -> None:
    """Delete the least recently used objects when the cache is too large."""
    aged = []
    for path in folder.glob("*.o"):
        try:
            stat = path.stat()
        except FileNotFoundError:  # another process prunes too
            continue
        aged.append((stat.st_mtime, stat.st_size, path))
    excess = sum(size for _, size, _ in aged) - MAX_CACHE_BYTES
    for _, size, path in sorted(aged):
        if excess <= 0:
            break
        path.unlink(missing_ok=True)
        _digest_of(path).unlink(missing_ok=True)
        excess -= size


def excerpt(text: str, lines: int = 40) -> str:
    """The beginning of a long output."""
    kept = text.strip().splitlines()
    more = [f"... and {len(kept) - lines} more lines"] if len(kept) > lines else []
    return "\n".join([*kept[:lines], *more])
