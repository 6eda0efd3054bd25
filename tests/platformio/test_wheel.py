# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A PlatformIO project built with nothing of this project but its wheel."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests import wheel
from tests.platformio.conftest import Project, platform

DIGITS = wheel.ROOT / "samples" / "digits" / "model.onnx"
MAIN = """\
#include <stdio.h>
#include <digits.h>

int main(void)
{
	printf("%d\\n", digits_run());
	return 0;
}
"""


def test_digits_with_the_hook_of_the_wheel(tmp_path: Path, pio_environment: dict[str, str]) -> None:
    site = wheel.install()
    hook = wheel.run(site, "-m", "tinyml", "platformio-hook", cwd=tmp_path).strip()
    assert Path(hook).is_relative_to(site)
    project = Project(tmp_path / "project", pio_environment).of_a_copy
    project.write("platformio.ini", f"[env:host]\n{platform('host')}\nextra_scripts = pre:{hook}\n")
    project.write("src/main.c", MAIN)
    (project.folder / "models").mkdir()
    shutil.copy(DIGITS, project.folder / "models" / "digits.onnx")
    said = project.build()
    assert "Compiling model digits.onnx" in said
    assert project.program().is_file()
