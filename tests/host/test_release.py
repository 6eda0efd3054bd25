# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One version everywhere, and that of the tag if there is one; a second tag for Zephyr 3.7 and 4.0."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

import tinyml
from tinyml.setup import zephyr_descriptor
from tools import release
from tools.environment import ROOT


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for place in release.PLACES:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    return tmp_path


def test_all_places_agree() -> None:
    assert set(release.versions().values()) == {tinyml.__version__}
    assert release.problems([]) == []


def test_a_tag_with_another_version_is_refused(copy: Path) -> None:
    assert release.problems(["v9.8.7", "latest"], copy)[0].endswith("not 9.8.7")
    assert release.problems([f"v{tinyml.__version__}"], copy) == []


def test_a_version_is_written_everywhere_but_in_the_changelog(copy: Path) -> None:
    release.set_version("9.8.7", copy)
    assert release.versions(copy) == {
        place: tinyml.__version__ if place == "CHANGELOG.md" else "9.8.7" for place in release.PLACES
    }
    assert release.problems(["v9.8.7"], copy) == [f"CHANGELOG.md has {tinyml.__version__}, not 9.8.7"]


def test_only_versions_are_taken() -> None:
    assert release.main(["0.2"]) == 1


def git(root: Path, *words: str) -> str:
    command = ["git", "-C", str(root), "-c", "user.name=Ann", "-c", "user.email=ann@example.com", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_second_tag_differs_in_the_descriptor_only(copy: Path) -> None:
    """It is made without touching branch or files, and is the same whenever it is made."""
    version = f"v{tinyml.__version__}"
    git(copy, "init", "-q")
    git(copy, "add", ".")
    git(copy, "commit", "-qm", "a release")
    with pytest.raises(SystemExit, match=f"git tag {version}"):
        release.tag_for_old_zephyr(copy)
    git(copy, "tag", version)
    tag = release.tag_for_old_zephyr(copy)
    assert tag == f"{version}-zephyr-3.7"
    assert git(copy, "status", "--porcelain") == ""
    assert git(copy, "diff", "--name-only", version, tag).split() == ["module.yml", "zephyr/module.yml"]
    assert git(copy, "rev-parse", tag, f"{tag}~").split() == [
        release.commit_for_old_zephyr(copy),
        git(copy, "rev-parse", version).strip(),
    ]
    for place in release.DESCRIPTORS:
        newer, older = (yaml.safe_load(git(copy, "show", f"{each}:{place}")) for each in (version, tag))
        assert newer.pop("package-managers") == {"pip": {"requirement-files": ["zephyr/requirements.txt"]}}
        assert newer == older


def test_each_tag_has_its_descriptor(copy: Path) -> None:
    version = f"v{tinyml.__version__}"
    assert "package-managers, which the Zephyr versions of" in release.problems(
        [f"{version}-zephyr-3.7"], copy
    )[0]  # fmt: skip
    for place in release.DESCRIPTORS:
        text = (copy / place).read_text()
        (copy / place).write_text(zephyr_descriptor.without_packages(text))
    assert release.problems([f"{version}-zephyr-3.7"], copy) == []
    assert release.problems(["v9.8.7-zephyr-3.7"], copy)[0].endswith("not 9.8.7")
    assert [line.partition(" ")[0] for line in release.problems([version], copy)] == [*release.DESCRIPTORS]
