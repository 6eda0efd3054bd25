# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A project that `tinyml new --platformio` made builds and runs as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.platformio.conftest import REPOSITORY, Project, platform
from tinyml.verbs.cli import main


def test_a_new_project_runs(tmp_path: Path, pio_environment: dict[str, str]) -> None:
    """Only the platform is another one: PlatformIO's own comes from its registry."""
    app = tmp_path / "app"
    model = REPOSITORY / "samples" / "digits" / "model.onnx"
    assert main(["new", str(app), "--platformio", "--model", str(model), "--name", "digits"]) == 0
    ini = (app / "platformio.ini").read_text()
    assert "platform = native" in ini
    (app / "platformio.ini").write_text(ini.replace("platform = native", platform("host")))
    project = Project(app, {**pio_environment, "PYTHONPATH": str(REPOSITORY / "plugin")})
    project.build("-e", "native")
    said = subprocess.run([project.program("native")], capture_output=True, text=True, check=True).stdout
    assert "PASS: the result is as the computer's" in said
