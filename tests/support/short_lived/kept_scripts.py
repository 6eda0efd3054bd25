# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What scripts of Zephyr wrote in an earlier build that was the same: ccache, for Kconfig and its neighbours.

While a script runs for the first time, everything is noted that it looks at: files and folders with their
contents, files that it asks for and that do not exist, variables of the environment. Its answer, the files
that it wrote and what it printed, is given again while all of that is unchanged. Zephyr's own files and
Python's are known by Zephyr's revision and Python's version.

The build folder may be another one, if its name is in nothing that the script wrote or printed.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import io
import json
import os
import sys
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TextIO

ENTRIES = 3
"""Answers that are kept for a command in a build folder, for several revisions of our own files."""

NEIGHBOURS = 4
"""Answers in other build folders that are compared, too."""

KEPT_DAYS = 30
"""An answer that nobody has used for so long goes when another one comes."""

BUILD = "@BUILD@"
WRITES = os.O_WRONLY | os.O_RDWR
NEVER = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "os.remove", "os.rename", "subprocess.Popen")
"""Events after which nothing is kept: what these do is not followed."""


def build_folder(words: list[str]) -> str:
    """The outermost folder of CMake around the first file that a command names and that has one."""
    for word in words:
        path = Path(word.rpartition("=")[2])
        if path.is_absolute():
            inside = [folder for folder in path.parents if (folder / "CMakeFiles").is_dir()]
            if inside:
                return str(inside[-1])
    return ""


def state(path: str) -> str:
    """What is there: the digest of a file, the names in a folder, or nothing."""
    try:
        if os.path.isdir(path):
            return "folder " + "/".join(sorted(os.listdir(path)))
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return "nothing"


def used(path: Path) -> float:
    """When an answer was last given; another build may just have removed it."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0


def newest_first(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=used, reverse=True)


def kind(path: str) -> str:
    return "folder" if os.path.isdir(path) else "file" if os.path.isfile(path) else "nothing"


class _Heard(io.TextIOBase):
    """Prints, and keeps what was printed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self.kept = stream, ""

    def write(self, text: str) -> int:
        self.kept += text
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()


class Place:
    """Where the answers to one command are, with the build folder written as ``BUILD``."""

    def __init__(self, command: list[str], zephyr: Path, cache: Path) -> None:
        self.zephyr = str(zephyr)
        self.root = build_folder(command)
        revision = (zephyr / ".git" / "HEAD").read_text()
        parts = [sys.version, self.zephyr, revision, os.getcwd(), *command]
        digest = hashlib.sha256("\0".join(map(self.packed, parts)).encode()).hexdigest()
        self.folder = cache / digest[:2] / digest

    def packed(self, text: str) -> str:
        return text.replace(self.root, BUILD) if self.root else text

    def unpacked(self, text: str) -> str:
        return text.replace(BUILD, self.root) if self.root else text

    def mine(self) -> str:
        """How the names of answers in this build folder start."""
        return hashlib.sha256(self.root.encode()).hexdigest()[:12]

    def entries(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        paths = newest_first(self.folder.glob("*.z"))
        own = [path for path in paths if path.name.startswith(self.mine())]
        for path in own + [path for path in paths if path not in own][:NEIGHBOURS]:
            try:
                yield path, json.loads(zlib.decompress(path.read_bytes()))
            except (OSError, ValueError, zlib.error):  # being replaced
                continue

    def keep(self, entry: dict[str, Any]) -> None:
        content = zlib.compress(json.dumps(entry).encode(), 1)
        self.folder.mkdir(parents=True, exist_ok=True)
        whole = self.folder / f"{os.getpid()}"
        whole.write_bytes(content)
        whole.replace(self.folder / f"{self.mine()}-{hashlib.sha256(content).hexdigest()[:12]}.z")
        old = newest_first(self.folder.glob(f"{self.mine()}-*.z"))[ENTRIES:]
        limit = time.time() - KEPT_DAYS * 86400
        old += [path for path in self.folder.parent.glob("*/*.z") if used(path) < limit]
        for path in old:
            path.unlink(missing_ok=True)

    def is_right(self, entry: dict[str, Any]) -> bool:
        """Whether all that the script looked at is as it was."""
        return (
            (entry["movable"] or entry["root"] == self.root)
            and all(os.environ.get(name, None) == self._value(text) for name, text in entry["asked"].items())
            and all(kind(self.unpacked(path)) == what for path, what in entry["seen"].items())
            and all(state(self.unpacked(path)) == what for path, what in entry["read"].items())
        )

    def _value(self, text: str | None) -> str | None:
        return None if text is None else self.unpacked(text)

    def answer(self, entry: dict[str, Any]) -> NoReturn:
        for name, text in entry["written"].items():
            path = Path(self.unpacked(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("latin-1"))
        sys.stdout.write(entry["out"])
        sys.stdout.flush()
        sys.stderr.write(entry["errors"])
        sys.stderr.flush()
        os._exit(0)


class Notes:
    """What a script looks at and does."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.read: dict[str, str] = {}
        self.seen: dict[str, str] = {}
        self.asked: dict[str, str | None] = {}
        self.written: set[str] = set()
        self.failed = self.busy = False
        known = (place.zephyr, sys.prefix, sys.base_prefix, os.path.dirname(__file__), sys.pycache_prefix)
        self.known = tuple(f"{os.path.join(folder, '')}" for folder in known if folder)
        self.out, self.errors = _Heard(sys.stdout), _Heard(sys.stderr)

    def start(self) -> None:
        notes = self

        class Environment(type(os.environ)):  # type: ignore[misc]  # the class has no public name
            def __getitem__(self, name: str) -> str:
                notes.asked.setdefault(name, self._data_of(name))
                return super().__getitem__(name)

            def _data_of(self, name: str) -> str | None:
                try:
                    return super().__getitem__(name)
                except KeyError:
                    return None

        os.environ.__class__ = Environment
        sys.stdout, sys.stderr = self.out, self.errors
        self._listen_to_stat("stat")
        self._listen_to_stat("lstat")
        leave = sys.exit

        def end(status: Any = None) -> NoReturn:
            self.failed |= bool(status)
            leave(status)

        def fail(*about: Any) -> None:
            self.failed = True
            sys.__excepthook__(*about)

        sys.exit, sys.excepthook = end, fail
        sys.addaudithook(self.hear)
        atexit.register(self.keep)

    def _listen_to_stat(self, name: str) -> None:
        original = getattr(os, name)

        def listening(path: Any, *args: Any, **words: Any) -> Any:
            if not self.busy and (full := self.own(path)) and full not in self.seen:
                self.busy = True
                self.seen[full] = kind(full)
                self.busy = False
            return original(path, *args, **words)

        setattr(os, name, listening)

    def own(self, path: Any) -> str | None:
        """The full name of a file that may change; files of Zephyr and Python do not."""
        if isinstance(path, int):
            return None
        full = os.path.normpath(os.path.join(os.getcwd(), os.fsdecode(path)))
        if f"{full}/".startswith(self.known) or full == os.devnull or "__pycache__" in full:
            return None
        return full

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self.busy:
            return
        if event in ("os.scandir", "os.listdir"):
            self.look(args[0] if args[0] is not None else ".")
        elif event == "open":
            if not args[2] & WRITES:
                self.look(args[0])
            elif path := self.own(args[0]):
                self.look(path)
                self.written.add(path)
        elif event in NEVER:
            self.failed = True

    def look(self, path: Any) -> None:
        full = self.own(path)
        if full and full not in self.read and full not in self.written:
            self.busy = True
            self.read[full] = state(full)
            self.busy = False

    def keep(self) -> None:
        """At the end. What a script wrote without failing is its answer."""
        self.busy = True
        place = self.place
        try:
            written = {path: Path(path).read_bytes().decode("latin-1") for path in self.written}
        except OSError:
            return
        if self.failed:
            return
        said = (self.out.kept, self.errors.kept, *written.values())
        entry = {
            "root": place.root,
            "movable": bool(place.root) and not any(place.root in text for text in said),
            "asked": {name: text and place.packed(text) for name, text in self.asked.items()},
            "seen": {place.packed(path): what for path, what in self.seen.items()},
            "read": {place.packed(path): what for path, what in self.read.items()},
            "written": {place.packed(path): text for path, text in written.items()},
            "out": self.out.kept,
            "errors": self.errors.kept,
        }
        place.keep(entry)


def answer_or_keep(command: list[str], cache: Path) -> None:
    """Give the answer to a command that is kept and end, or keep the one that the script will give."""
    script = Path(command[1]).resolve()
    zephyr = next((folder for folder in script.parents if (folder / "VERSION").is_file()), None)
    if zephyr is None or not (zephyr / ".git" / "HEAD").is_file():
        return  # no clone of Zephyr: nothing tells its revision
    place = Place(command[1:], zephyr, cache)
    for path, entry in place.entries():
        if place.is_right(entry):
            with contextlib.suppress(OSError):
                os.utime(path)
            place.answer(entry)
    Notes(place).start()
