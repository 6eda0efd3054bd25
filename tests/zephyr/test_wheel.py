# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A Zephyr application built with nothing of this project but its wheel."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests import wheel
from tests.zephyr.building import DIGITS, SHORT_LIVED, TWISTER_SECONDS, run
from tinyml.setup.workspace import find_cmsis_nn
from tools import workspace

BOARD = "mps2/an521/cpu1"
pytestmark = pytest.mark.timeout(TWISTER_SECONDS)


def test_digits_with_the_module_of_the_wheel(tmp_path: Path) -> None:
    """ZEPHYR_MODULES replaces what west finds, so that the clone in the workspace takes no part.

    The target follows what Kconfig says of the board's core.
    """
    site = wheel.install()
    module = Path(wheel.run(site, "-m", "tinyml", "zephyr-module", cwd=tmp_path).strip())
    assert module.is_relative_to(site)
    assert (
        Path(wheel.run(site, "-m", "tinyml", "zephyr-module", "--boards", cwd=tmp_path).strip()) / "zephyr"
    ).is_dir()
    app = tmp_path / "app"
    shutil.copytree(DIGITS, app, ignore=shutil.ignore_patterns("build"))
    cmsis = find_cmsis_nn()
    modules = [str(module), *([str(cmsis)] if cmsis else []), *map(str, hal_modules())]
    build = tmp_path / "build"
    west = [sys.executable, "-m", "west", "build", "--cmake-only", "-b", BOARD]
    run(
        [*west, "-d", build, app, "--", f"-DZEPHYR_MODULES={';'.join(modules)}"],
        workspace.location(),
        more={"EXTRA_ZEPHYR_MODULES": "", "PYTHONPATH": f"{site}{os.pathsep}{SHORT_LIVED}"},
    )
    assert "#define DIGITS_" in (build / "tinyml" / "digits" / "digits.h").read_text()
    assert (build / "tinyml" / "target.txt").read_text().strip() == "cortex-m33"
    objects = (build / "build.ninja").read_text()
    assert str(site / "tinyml" / "runtime") in objects
    assert str(DIGITS.parents[1] / "plugin") not in objects


def hal_modules() -> list[Path]:
    """What a Cortex-M board requires of the workspace."""
    return [path for path in (workspace.location() / "modules" / "hal").iterdir() if path.is_dir()]
