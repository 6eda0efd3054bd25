# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The version comes from the tag: ``python -m tools.release v0.2.0`` writes it everywhere, then tag it.

Without a version it checks that all places agree and, if the current commit has a tag, that they agree with
it; a pipeline runs this for every tag. Generated C carries the version, so it is in the sources: the same
sources give the same C, with or without git.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = {
    "plugin/tinyml/__init__.py": r'(?m)^__version__ = "([^"]+)"$',
    "library.json": r'(?m)^  "version": "([^"]+)",$',
    "module.yml": r"pkg:pypi/west-tinyml@(\S+)",
    "zephyr/module.yml": r"pkg:pypi/west-tinyml@(\S+)",
    "CHANGELOG.md": r"(?m)^## (\S+)",
}
"""Each with the pattern whose first match is the version."""
TAG = re.compile(r"v(\d+\.\d+\.\d+)")


def versions(root: Path = ROOT) -> dict[str, str]:
    """The version in each place."""
    return {place: _match(root, place)[1] for place in PLACES}


def set_version(version: str, root: Path = ROOT) -> None:
    """Write the version everywhere; the changelog has its own heading, which its author writes."""
    for place in PLACES:
        if place != "CHANGELOG.md":
            found = _match(root, place)
            text = found.string[: found.start(1)] + version + found.string[found.end(1) :]
            (root / place).write_text(text, encoding="utf-8")


def problems(tags: list[str], root: Path = ROOT) -> list[str]:
    """What does not agree; ``tags``: of the current commit."""
    found = versions(root)
    expected = [tag.removeprefix("v") for tag in tags if TAG.fullmatch(tag)] or [found["library.json"]]
    return [
        f"{place} has {version}, not {expected[0]}"
        for place, version in found.items()
        if version != expected[0]
    ]


def _match(root: Path, place: str) -> re.Match[str]:
    found = re.search(PLACES[place], (root / place).read_text(encoding="utf-8"))
    assert found, f"{place} has no version"
    return found


def _tags() -> list[str]:
    command = ["git", "-C", str(ROOT), "tag", "--points-at", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


def main(arguments: list[str]) -> int:
    if arguments:
        tag = TAG.fullmatch(arguments[0])
        if tag is None:
            print(f"{arguments[0]} is not a version such as v0.2.0", file=sys.stderr)
            return 1
        set_version(tag[1])
    wrong = problems([] if arguments else _tags())
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
