# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`pip install` without -e: everything that the compiler needs at run time is in the package."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import wheel
from tests.wheel import ROOT
from tinyml.setup import zephyr_descriptor

DIGITS = ROOT / "samples" / "digits" / "model.onnx"


@pytest.fixture(scope="module")
def site() -> Path:
    """A folder like site-packages with the installed project; the sources it came from are gone."""
    return wheel.install()


def test_the_installed_compiler_runs_without_its_sources(site: Path, tmp_path: Path) -> None:
    where = wheel.run(site, "-c", "import tinyml; print(tinyml.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(site)
    wheel.run(site, "-m", "tinyml", "compile", str(DIGITS), "-o", "out", "--report", cwd=tmp_path)
    assert (tmp_path / "out" / "model_report.html").exists(), "templates are in the package"
    said = wheel.run(site, "-m", "tinyml", "run", str(DIGITS), "--on", "host", cwd=tmp_path)
    assert "logits" in said, "the kernels in C are in the package"


def test_the_installed_module_suits_every_zephyr(site: Path, tmp_path: Path) -> None:
    """For EXTRA_ZEPHYR_MODULES: Zephyr 3.7 and 4.0 would refuse the key that `west packages pip` reads."""
    module = Path(wheel.run(site, "-m", "tinyml", "zephyr-module", cwd=tmp_path).strip())
    text = (module / zephyr_descriptor.FILE).read_text()
    assert module.is_relative_to(site)
    assert "name: tinyml\n" in text
    assert not zephyr_descriptor.has_packages(text)


def test_the_workspace_runs_its_own_copy(site: Path, tmp_path: Path) -> None:
    """`west tinyml` in a workspace takes the project that is there, and the boards beside it."""
    (tmp_path / ".west").mkdir()
    (tmp_path / ".west" / "config").write_text("[manifest]\npath = west-tinyml\nfile = west.yml\n")
    (tmp_path / "west-tinyml").symlink_to(ROOT, target_is_directory=True)
    copy = tmp_path / "site"
    shutil.copytree(site, copy)
    (copy / "tinyml" / "verbs" / "__init__.py").write_text("raise RuntimeError('the installed copy runs')\n")
    said = wheel.run(copy, "-m", "west", "tinyml", "ops", str(DIGITS), cwd=tmp_path)
    assert "Conv" in said
