# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One version everywhere, and that of the tag if there is one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import tinyml
from tools import release


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for place in release.PLACES:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(release.ROOT / place, tmp_path / place)
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
