# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A cache of compiled objects: the same source, flags and compiler are compiled once.

The name of an object is a hash of its source, its flags, the compiler and all headers in its include path. A
source may include files that are not headers, as ``cmsis_nn_once.c`` includes the sources of CMSIS-NN: the
compiler lists these, and an object is used only while they are what they were.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import logging
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tinyml.base.errors import ToolError
from tinyml.base.whole_files import write_whole
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


def compile_all(compiler: Compiler, units: Sequence[Unit]) -> list[Path]:
    """The object files of ``units``, in order; cached ones are not compiled again."""
    headers = {folder: _headers_digest(folder) for unit in units for folder in _folders(unit)}
    folder = _folder()

    def one(unit: Unit) -> Path:
        digests = [headers[path] for path in _folders(unit)]
        path = folder / f"{_key(compiler, unit, digests)}.o"
        if _whole(path) and _current(path, unit):
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
    source = _digest(unit.source)
    text = "\0".join((compiler.identity, unit.source.name, source, *unit.flags, *headers))
    return hashlib.sha256(text.encode()).hexdigest()


def _compile(compiler: Compiler, unit: Unit, path: Path) -> None:
    """Compile into a private file first: other processes may build the same object at the same time."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    os.close(handle)
    partial = Path(name)
    includes = [f"-I{folder}" for folder in unit.includes]
    rule = partial.with_suffix(".d")
    command = [str(compiler.path), *unit.flags, *includes, "-c", str(unit.source), "-o", name]
    command += ["-MD", "-MF", str(rule)]
    try:
        LOG.debug("%s", shlex.join(command))
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise ToolError(
                f"{compiler.path.name} cannot compile {unit.source.name}:\n{excerpt(done.stderr)}",
                "the command was: " + " ".join(command),
            )
        digest = _digest(partial)
        write_whole(_included_in(path), json.dumps(_included(rule, unit)).encode())
        partial.replace(path)
        write_whole(_digest_of(path), digest.encode("ascii"))
    finally:
        partial.unlink(missing_ok=True)
        rule.unlink(missing_ok=True)


def _included(rule: Path, unit: Unit) -> list[tuple[int, str, str]]:
    """The files that a source includes and that are no headers, from the compiler's rule for make.

    Each is a number of a folder of the unit, the path from there, and a hash: another clone with the same
    headers looks for its own file.
    """
    text = rule.read_text(encoding="utf-8", errors="surrogateescape").replace("\\\n", " ")
    words = re.findall(r"(?:\\.|[^\s\\])+", text.split(": ", 1)[1])
    paths = [Path(re.sub(r"\\(.)", r"\1", word).replace("$$", "$")) for word in words]
    found = []
    for path in paths:
        if path.suffix == ".h" or path == unit.source:
            continue
        folders = [folder.absolute() for folder in _folders(unit)]
        shared = [len(os.path.commonpath((folder, path.absolute()))) for folder in folders]
        index = shared.index(max(shared))
        found.append((index, os.path.relpath(path, folders[index]), _digest(path)))
    return found


def _current(path: Path, unit: Unit) -> bool:
    """Whether the files that an object was made from, besides its source and headers, are still the same."""
    folders = _folders(unit)
    try:
        included = json.loads(_included_in(path).read_text(encoding="utf-8"))
        return all(_digest(folders[index] / name) == digest for index, name, digest in included)
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _included_in(path: Path) -> Path:
    """The file next to an object that lists the other files that it was made from."""
    return path.with_suffix(".json")


def _digest_of(path: Path) -> Path:
    """The file next to an object that holds the hash of its bytes."""
    return path.with_suffix(".sha256")


def _whole(path: Path) -> bool:
    """Whether the cache has an object, all of it: one that was cut off or changed is compiled again."""
    try:
        wanted = _digest_of(path).read_text(encoding="ascii")
        return _digest(path) == wanted
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
    for _, size, path in sorted(aged):
        if excess <= 0:
            break
        for file in (path, _digest_of(path), _included_in(path)):
            file.unlink(missing_ok=True)
        _included_in(path).unlink(missing_ok=True)
        excess -= size


def excerpt(text: str, lines: int = 40) -> str:
    """The beginning of a long output."""
    kept = text.strip().splitlines()
    more = [f"... and {len(kept) - lines} more lines"] if len(kept) > lines else []
    return "\n".join([*kept[:lines], *more])
