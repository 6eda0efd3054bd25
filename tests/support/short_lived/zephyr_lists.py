# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Zephyr's lists of boards, shields, chips and bindings, kept from one build of the tests to the next.

Four scripts read thousands of YAML files in each run of CMake, a quarter of its time, and find the same every
time. What one of them printed or wrote is kept under a name that is made from its arguments, the revision of
Zephyr, and the files of all other folders that it reads (our boards and bindings).
"""

from __future__ import annotations

import atexit
import hashlib
import io
import os
import sys
from pathlib import Path
from typing import TextIO

FOLDERS = {
    "list_boards.py": {"--board-root": "boards", "--arch-root": "arch", "--soc-root": "soc"},
    "list_shields.py": {"--board-root": "boards"},
    "list_hardware.py": {"--arch-root": "arch", "--soc-root": "soc"},
    "gen_driver_kconfig_dts.py": {"--bindings-dirs": ""},
}
"""The scripts, and which folder below the one that an option names each of them reads."""

WRITTEN = "--kconfig-out"
"""The option that names the file which a script writes."""


def _stamp(folder: Path, zephyr: Path) -> str:
    """The files of a folder with sizes and times; for Zephyr's own, its revision stands for them."""
    if folder.is_relative_to(zephyr):
        return folder.name
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return "\n".join(f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)


def _name(script: Path, words: list[str], zephyr: Path) -> str:
    """The name of an answer. Folders that do not exist, as most applications have no boards, do not count."""
    revision = (zephyr / ".git" / "HEAD").read_text()
    parts = [script.name, sys.version, str(zephyr), revision]
    reads, option = FOLDERS[script.name], ""
    for word in words:
        if word.startswith("--"):
            option, _, value = word.partition("=")
        else:
            value = word
        if option == WRITTEN:
            continue
        if option not in reads:
            parts.append(word)
        elif value and (folder := Path(value).resolve() / reads[option]).is_dir():
            parts += [option, str(folder), _stamp(folder, zephyr)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _written(words: list[str]) -> Path | None:
    return Path(words[words.index(WRITTEN) + 1]) if WRITTEN in words else None


class _Twice(io.TextIOBase):
    """Prints, and keeps what was printed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self.kept = stream, ""

    def write(self, text: str) -> int:
        self.kept += text
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()


def _keep(place: Path, out: _Twice, errors: _Twice, written: Path | None) -> None:
    """Keep an answer. A script that printed an error has none."""
    if errors.kept or not (out.kept or written):
        return
    text = out.kept if written is None else written.read_text()
    place.parent.mkdir(parents=True, exist_ok=True)
    whole = place.with_suffix(f".{os.getpid()}")
    whole.write_text(text)
    whole.replace(place)


def answer_or_keep(command: list[str], cache: Path) -> None:
    """For one of these scripts: give the answer that is kept and end, or keep the one that it will give."""
    if len(command) < 2 or Path(command[1]).name not in FOLDERS:
        return
    script, words = Path(command[1]).resolve(), command[2:]
    zephyr = next((folder for folder in script.parents if (folder / "VERSION").is_file()), None)
    if zephyr is None or not (zephyr / ".git" / "HEAD").is_file():
        return  # no clone of Zephyr: nothing tells its revision
    place, written = cache / _name(script, words, zephyr), _written(words)
    if place.is_file():
        if written is None:
            sys.stdout.write(place.read_text())
            sys.stdout.flush()
        else:
            written.write_text(place.read_text())
        os._exit(0)
    out, errors = _Twice(sys.stdout), _Twice(sys.stderr)
    sys.stdout, sys.stderr = out, errors
    atexit.register(_keep, place, out, errors, written)
