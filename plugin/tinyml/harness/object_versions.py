# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The objects in the cache that were made from one source, with other contents of the files that it includes.

A list in the cache, ``KEY.json``, has the versions of a source with its flags. Each names the files that the
compiler read, with their hashes, and the files of the same names in other places that it did not read: a
header that appears earlier in the include path makes an object stale. Headers of the C library belong to the
compiler.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath

from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.whole_files import write_whole

MAX_VERSIONS = 16
Place = tuple[int, str]
"""A path from one of a unit's folders: another clone with the same contents looks for its own file."""


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Disk:
    """Files as they are during one build: each is read once."""

    def __init__(self) -> None:
        self._digests: dict[Path, str] = {}
        self._exist: dict[Path, bool] = {}

    def digest(self, path: Path) -> str:
        """The hash of a file's bytes; empty if it cannot be read."""
        if path not in self._digests:
            try:
                self._digests[path] = digest_of(path)
            except OSError:
                self._digests[path] = ""
        return self._digests[path]

    def exists(self, path: Path) -> bool:
        if path not in self._exist:
            self._exist[path] = path.is_file()
        return self._exist[path]


@dataclass(frozen=True)
class Version:
    """An object, and the files besides its source that it was made from."""

    path: Path
    files: Sequence[tuple[int, str, str]]  # a place and the hash of what is there
    rivals: Sequence[Place]  # files with the names of these that the compiler did not read


class Versions:
    """The objects of one source with its flags (``key``), the one that was made last first."""

    def __init__(self, folder: Path, key: str, folders: Sequence[Path], disk: Disk) -> None:
        self.folder = folder
        self.key = key
        self.disk = disk
        self.folders = [path.absolute() for path in folders]
        self.list = folder / f"{key}.json"

    def current(self) -> Iterator[Path]:
        """Objects that were made from the files as they are now."""
        for version in self._read():
            if self._same(version):
                yield version.path

    def use(self, path: Path) -> None:
        """Mark an object as used now: the last to be deleted."""
        for file in (path, self.list):
            with contextlib.suppress(OSError):  # another process deletes old ones
                os.utime(file)

    def made_from(self, paths: Iterable[Path]) -> Version:
        """The version for an object that the compiler has made from ``paths``."""
        files = []
        for path in paths:
            index, name = self._place(path.absolute())
            files.append((index, name, self.disk.digest(path)))
        rivals = self._rivals([(index, name) for index, name, _ in files])
        name = hashlib.sha256(json.dumps([self.key, files, rivals]).encode()).hexdigest()
        return Version(self.folder / f"{name}.o", files, rivals)

    def add(self, version: Version) -> None:
        """Remember a version; the oldest are forgotten."""
        others = [one for one in self._read() if one.path != version.path]
        kept = [asdict(one) | {"path": one.path.name} for one in [version, *others][:MAX_VERSIONS]]
        write_whole(self.list, json.dumps(kept).encode())

    def _read(self) -> list[Version]:
        try:
            entries = json.loads(self.list.read_text(encoding="utf-8"))
            return [
                Version(
                    self.folder / entry["path"],
                    [(int(index), str(name), str(digest)) for index, name, digest in entry["files"]],
                    [(int(index), str(name)) for index, name in entry["rivals"]],
                )
                for entry in entries
            ]
        except (OSError, ValueError, LookupError, TypeError):
            return []

    def _same(self, version: Version) -> bool:
        places = [(index, name) for index, name, _ in version.files]
        if not all(index < len(self.folders) for index, _ in places):
            return False
        return version.rivals == self._rivals(places) and all(
            self.disk.digest(self.folders[index] / name) == digest for index, name, digest in version.files
        )

    def _place(self, path: Path) -> Place:
        shared = [len(os.path.commonpath((folder, path))) for folder in self.folders]
        index = shared.index(max(shared))
        return index, Path(os.path.relpath(path, self.folders[index])).as_posix()

    def _rivals(self, files: Sequence[Place]) -> list[Place]:
        """Files that an include of one of these names could mean too."""
        parents = {(index, PurePosixPath(name).parent) for index, name in files}
        places = {*((index, PurePosixPath()) for index in range(len(self.folders))), *parents}
        rivals = {
            (index, (parent / name).as_posix())
            for index, parent in places
            for name in {name for _, name in files}
            if self.disk.exists(self.folders[index] / parent / name)
        }
        return sorted(rivals - set(files))


def included(rule: Path, source: Path) -> list[Path]:
    """The files that a source includes, from the compiler's rule for make."""
    text = rule.read_text(encoding="utf-8", errors="surrogateescape").replace("\\\n", " ")
    words = re.findall(r"(?:\\.|[^\s\\])+", text.split(": ", 1)[1])
    paths = [Path(re.sub(r"\\(.)", r"\1", word).replace("$$", "$")) for word in words]
    return [path for path in paths if path != source]


def delete_lists_before(folder: Path, time: float) -> None:
    """Delete lists that were last used before the oldest object that is kept."""
    for path in folder.glob("*.json"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < time:
                path.unlink()
