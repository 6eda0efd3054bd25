# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which tests a change reaches, and how near: the imports of all files, and the files that they name.

A file knows the modules that it imports, anywhere in its text. It also knows the other files whose names, or
whose folders' names, are among its strings: C sources, templates, cases that are discovered automatically.
"""

from __future__ import annotations

import ast
import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tools.environment import ROOT

FOLDERS = ("plugin", "tests", "tools")
TESTS = "tests/host/test_"


@dataclass
class Known:
    """What one Python file mentions."""

    imports: set[str] = field(default_factory=set)  # dotted names of modules, or of their members
    words: set[str] = field(default_factory=set)  # the parts of its strings that look like names of files


def read(source: str) -> Known:
    """The imports and strings of a file; nothing for one that is no Python (yet)."""
    known = Known()
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return known
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known.imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            known.imports |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            known.words |= {part for word in node.value.split() for part in word.split("/")}
    return known


def module_of(path: str) -> str:
    """The dotted name by which a file is imported."""
    parts = list(Path(path).with_suffix("").parts)
    if parts[0] == "plugin":
        parts = parts[1:]
    if parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts)


NEAR, FAR = 1, 3
"""The steps to a file that imports or names a changed one, and to one that names only its folder."""


def readers(files: Mapping[str, Known], others: Iterable[str] = ()) -> dict[str, dict[str, int]]:
    """The Python files that know each file, with the steps to them."""
    places = {module_of(path): path for path in files}
    found: dict[str, dict[str, int]] = {path: {} for path in (*files, *others)}
    by_word: dict[str, set[str]] = {}
    for path, known in files.items():
        for name in known.imports:
            target = places.get(name) or places.get(name.rpartition(".")[0])
            if target and target != path:
                found[target][path] = NEAR
        for word in known.words:
            by_word.setdefault(word, set()).add(path)
    for path, near in found.items():
        place = Path(path)
        for reader in by_word.get(place.name, set()) - {path}:
            near[reader] = NEAR
        if not near or place.suffix != ".py":  # discovered by somebody who knows the folder
            for parent in set(place.parts[-3:-1]) - {*FOLDERS, "tinyml"}:
                for reader in by_word.get(parent, set()) - {path}:
                    near.setdefault(reader, FAR)
    return found


def distances(changed: Iterable[str], known_by: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """The number of steps from a changed file to each file that it reaches."""
    found: dict[str, int] = {}
    border = [(0, path) for path in changed]
    while border:
        steps, path = heapq.heappop(border)
        if path in found:
            continue
        found[path] = steps
        for reader, more in known_by.get(path, {}).items():
            if reader not in found:
                heapq.heappush(border, (steps + more, reader))
    return found


def likeness(test: str, changed: Iterable[str]) -> int:
    """How many words the name of a test shares with the names of changed files."""
    words = set(Path(test).stem.split("_")) - {"test"}
    return max((len(words & set(Path(path).stem.split("_"))) for path in changed), default=0)


@cache
def known_files() -> dict[str, Known]:
    """All Python files of this project and what they mention, which takes seconds to read."""
    return {
        path.relative_to(ROOT).as_posix(): read(path.read_text(encoding="utf-8", errors="replace"))
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def host_tests(changed: Iterable[str]) -> list[str]:
    """The files of tests on the host that a change reaches, the nearest first."""
    changed = list(changed)
    files = known_files()
    reached = distances(changed, readers(files, [path for path in changed if path not in files]))
    tests = {path: steps for path, steps in reached.items() if path.startswith(TESTS) and path in files}
    return sorted(tests, key=lambda path: (tests[path] - likeness(path, changed), path))
