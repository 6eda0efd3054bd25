# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The version comes from the tag: ``python -m tools.release v0.2.0`` writes it everywhere, then tag it.

Without a version it checks that all places agree and, if the current commit has a tag, that they agree with
it; a pipeline runs this for every tag. Generated C carries the version, so it is in the sources: the same
sources give the same C, with or without git.

``python -m tools.release --old-zephyr`` adds to the current commit's tag, such as v0.2.0, a second one,
v0.2.0-zephyr-3.7. Its commit differs in nothing but the module's descriptor, which Zephyr 3.7 and 4.0 accept.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml.setup import zephyr_descriptor

DESCRIPTORS = ("module.yml", zephyr_descriptor.FILE.as_posix())
PLACES = {
    "plugin/tinyml/__init__.py": r'(?m)^__version__ = "([^"]+)"$',
    "library.json": r'(?m)^  "version": "([^"]+)",$',
    **dict.fromkeys(DESCRIPTORS, r"pkg:pypi/west-tinyml@(\S+)"),
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
    releases = [tag.removesuffix(zephyr_descriptor.TAG_SUFFIX) for tag in tags]
    expected = [tag.removeprefix("v") for tag in releases if TAG.fullmatch(tag)] or [found["library.json"]]
    wrong = [
        f"{place} has {version}, not {expected[0]}"
        for place, version in found.items()
        if version != expected[0]
    ]
    old = [tag for tag in tags if tag.endswith(zephyr_descriptor.TAG_SUFFIX)]
    for place in DESCRIPTORS:
        has_packages = zephyr_descriptor.has_packages((root / place).read_text(encoding="utf-8"))
        if old and has_packages:
            wrong.append(f"{place} has package-managers, which the Zephyr versions of {old[0]} refuse")
        elif not has_packages and any(map(TAG.fullmatch, tags)):
            wrong.append(f"{place} has no package-managers, for `west packages pip`")
    return wrong


def commit_for_old_zephyr(root: Path = ROOT) -> str:
    """A commit after the current one with the descriptor for Zephyr 3.7 and 4.0; always the same one.

    Neither the working tree nor a branch changes.
    """
    name, email, date = _git(root, "log", "-1", "--format=%cn%n%ce%n%cI").splitlines()
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
           for what, value in (("NAME", name), ("EMAIL", email), ("DATE", date))}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        own = {**who, "GIT_INDEX_FILE": str(Path(folder) / "index")}
        _git(root, "read-tree", "HEAD", more=own)
        for place in DESCRIPTORS:
            text = zephyr_descriptor.without_packages(_git(root, "show", f"HEAD:{place}", strip=False))
            blob = _git(root, "hash-object", "-w", "--stdin", given=text)
            _git(root, "update-index", "--cacheinfo", f"100644,{blob},{place}", more=own)
        tree = _git(root, "write-tree", more=own)
    message = "zephyr: descriptor for Zephyr 3.7 and 4.0"
    return _git(root, "commit-tree", tree, "-p", "HEAD", "-m", message, more=who)


def tag_for_old_zephyr(root: Path = ROOT) -> str:
    """Tag such a commit; the current one must have the tag of its release."""
    version = versions(root)["library.json"]
    if f"v{version}" not in _git(root, "tag", "--points-at", "HEAD").split():
        raise SystemExit(f"the current commit does not have the tag v{version}: git tag v{version}")
    tag = zephyr_descriptor.revision_for_old_zephyr(version)
    _git(root, "tag", tag, commit_for_old_zephyr(root))
    return tag


def _git(
    root: Path, *words: str, given: str | None = None, more: dict[str, str] | None = None, strip: bool = True
) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *words],
        input=given,
        env={**os.environ, **(more or {})},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip() if strip else done.stdout


def _match(root: Path, place: str) -> re.Match[str]:
    found = re.search(PLACES[place], (root / place).read_text(encoding="utf-8"))
    assert found, f"{place} has no version"
    return found


def _tags() -> list[str]:
    command = ["git", "-C", str(ROOT), "tag", "--points-at", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


def main(arguments: list[str]) -> int:
    if arguments == ["--old-zephyr"]:
        print(f"push the tag {tag_for_old_zephyr()} too")
        return 0
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
