# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A cache of compiled objects: the same source, headers, flags and compiler are compiled once.

``object_versions.py`` decides which files an object depends on: those that the compiler read, not all headers
in the include path.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import logging
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tinyml.base.errors import ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.whole_files import write_whole
from tinyml.harness.object_versions import Disk, Versions, delete_lists_before, digest_of, included
from tinyml.harness.tools import Compiler
from tinyml.setup.workspace import cache_folder

LOG = logging.getLogger(__name__)
MAX_CACHE_BYTES = 512 * 2**20
PRUNE_SECONDS = 600


@dataclass(frozen=True)
class Unit:
    """One source file and how to compile it. ``part`` is the part of the image that it belongs to."""

    source: Path
    part: str
    flags: tuple[str, ...]
    includes: tuple[Path, ...] = ()

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that hold its headers: its own, and its include path."""
        return (self.source.parent, *self.includes)


def compile_all(compiler: Compiler, units: Sequence[Unit]) -> list[Path]:
    """The object files of ``units``, in order; cached ones are not compiled again."""
    folder = _folder()
    disk = Disk()

    def one(unit: Unit) -> Path:
        versions = Versions(folder, _key(compiler, unit, disk), unit.folders, disk)
        for path in versions.current():
            if _whole(path):
                versions.use(path)
                return path
        return _compile(compiler, unit, versions)

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


def _key(compiler: Compiler, unit: Unit, disk: Disk) -> str:
    """What is known before the compiler has read the source."""
    source = disk.digest(unit.source)
    text = "\0".join((compiler.identity, unit.source.name, source, str(len(unit.includes)), *unit.flags))
    return hashlib.sha256(text.encode()).hexdigest()


def _compile(compiler: Compiler, unit: Unit, versions: Versions) -> Path:
    """Compile into a private file first: other processes may build the same object at the same time."""
    handle, name = tempfile.mkstemp(dir=versions.folder, suffix=".tmp")
    os.close(handle)
    partial = Path(name)
    includes = [f"-I{folder}" for folder in unit.includes]
    rule = partial.with_suffix(".d")
    command = [str(compiler.path), *unit.flags, *includes, "-c", str(unit.source), "-o", name]
    command += ["-MMD", "-MF", str(rule)]
    start = time.time()
    try:
        LOG.debug("%s", shlex.join(command))
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise ToolError(
                f"{compiler.path.name} cannot compile {unit.source.name}:\n{excerpt(done.stderr)}",
                "the command was: " + " ".join(command),
            )
        files = included(rule, unit.source)
        version = versions.made_from(files)
        digest = digest_of(partial)
        partial.replace(version.path)
        write_whole(_digest_of(version.path), digest.encode("ascii"))
        if all(file.stat().st_mtime <= start for file in (unit.source, *files)):  # else: which one was read?
            versions.add(version)
        return version.path
    finally:
        partial.unlink(missing_ok=True)
        rule.unlink(missing_ok=True)


def _digest_of(path: Path) -> Path:
    """The file next to an object that holds the hash of its bytes."""
    return path.with_suffix(".sha256")


def _whole(path: Path) -> bool:
    """Whether the cache has an object, all of it: one that was cut off or changed is compiled again."""
    try:
        return digest_of(path) == _digest_of(path).read_text(encoding="ascii")
    except (OSError, ValueError):
        return False


def _prune(folder: Path) -> None:
    """Delete the least recently used objects when the cache is too large.

    Looking at thousands of objects takes longer than compiling a small one: it is done now and then only.
    """
    stamp = folder / "pruned"
    if stamp.exists() and 0 <= time.time() - stamp.stat().st_mtime < PRUNE_SECONDS:
        return
    stamp.touch()
    for path in (*folder.glob("*.tmp"), *folder.glob("*.d")):  # of commands that were killed
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > PRUNE_SECONDS:
                path.unlink()
    aged = []
    for path in folder.glob("*.o"):
        try:
            stat = path.stat()
        except FileNotFoundError:  # another process prunes too
            continue
        aged.append((stat.st_mtime, stat.st_size, path))
    excess = sum(size for _, size, _ in aged) - MAX_CACHE_BYTES
    for used, size, path in sorted(aged):
        if excess <= 0:
            delete_lists_before(folder, used)
            break
        for file in (path, _digest_of(path)):
            file.unlink(missing_ok=True)
        excess -= size


def excerpt(text: str, lines: int = 40) -> str:
    """The beginning of a long output."""
    kept = text.strip().splitlines()
    more = [f"... and {len(kept) - lines} more lines"] if len(kept) > lines else []
    return "\n".join([*kept[:lines], *more])
