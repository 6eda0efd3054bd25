# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Notices sources that were replaced by older files, which ninja does not: it compares times.

    sources.py STAMP RECORD ...
    sources.py --record RECORD DEPFILE OUTPUT ... -- COMMAND ...

The second form runs a command that writes a depfile, and records what the outputs were made from: time,
size and digest of each source. The first one runs whenever ninja does, before anything else. Files that
look as they did are not read. If a source has another content and is not newer than the outputs, its
outputs are deleted, so that ninja makes them, and STAMP gets a new time, so that CMake runs: a model may
need other kernels. Sources that are newer or missing are left to ninja.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def sources(depfile: Path) -> list[Path]:
    """What a file depends on: the rule that `tinyml` wrote."""
    rule = os.fsdecode(depfile.read_bytes()).replace("\\\n", " ")
    words = re.split(r"(?<!\\)\s+", rule.strip())
    return [Path(word.replace("\\ ", " ")) for word in words[1:]]


def look(path: Path) -> list[int]:
    """What changes whenever a file does."""
    about = path.stat()
    return [about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino]


def digest(path: Path) -> str:
    with path.open("rb") as file:
        found = hashlib.sha256()
        while part := file.read(1 << 20):
            found.update(part)
        return found.hexdigest()


def remember(
    record: Path, files: Sequence[Path], outputs: Sequence[Path], more: Sequence[Path], started_ns: int
) -> None:
    """Record ``files``, from which ``outputs`` were made; ``more`` is deleted with the outputs.

    A file that has changed since the work started may have been read before or after: it has no digest.
    """
    made = min(path.stat().st_mtime_ns for path in outputs)
    seen: dict[str, Any] = {}
    for path in dict.fromkeys(files):
        if path.is_file():
            looks = look(path)
            seen[str(path)] = [looks, digest(path) if looks[1] <= started_ns else ""]
    deleted = [str(path) for path in (*outputs, *more)]
    text = json.dumps({"made": made, "delete": deleted, "files": seen}, indent=0)
    record.write_text(text, encoding="utf-8")


def replaced(record: Path) -> bool:
    """Whether a source has become another file that is not newer; then the outputs are gone."""
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
        before = json.dumps(content["files"])
        if any(_differs(Path(name), facts, content["made"]) for name, facts in content["files"].items()):
            for each in (*content["delete"], str(record)):
                Path(each).unlink(missing_ok=True)
            return True
        if json.dumps(content["files"]) != before:
            record.write_text(json.dumps(content, indent=0), encoding="utf-8")
    except (OSError, ValueError, KeyError, TypeError):  # not written yet, or a file is being replaced
        pass
    return False


def _differs(path: Path, facts: list[Any], made_ns: int) -> bool:
    """Whether a file has another content; if it only looks different, ``facts`` says so from now on."""
    looks, known = facts
    if not path.is_file() or (now := look(path))[0] > made_ns or (now == looks and known):
        return False
    facts[0] = now
    return digest(path) != known


def run_and_record(words: Sequence[str]) -> int:
    end = words.index("--")
    record, depfile, *outputs = map(Path, words[:end])
    record.unlink(missing_ok=True)
    started_ns = time.time_ns()
    status = subprocess.run(words[end + 1 :], check=False).returncode
    if status == 0:
        remember(record, sources(depfile), outputs, [], started_ns)
    return status


def main(argv: list[str]) -> int:
    if argv[0] == "--record":
        return run_and_record(argv[1:])
    stamp = Path(argv[0])
    if sum(replaced(Path(record)) for record in argv[1:]):
        stamp.touch()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
