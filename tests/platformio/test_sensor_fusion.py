# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""samples/sensor_fusion as a PlatformIO project: it prints what Twister expects of the Zephyr application."""

from __future__ import annotations

import re
import shutil
import subprocess

import yaml

from tests.platformio.conftest import REPOSITORY, MakeProject, platform

SAMPLE = REPOSITORY / "samples" / "sensor_fusion"


def test_on_the_host(make_project: MakeProject) -> None:
    """The sample as it is, but for the platform, which is PlatformIO's registry's."""
    project = make_project("", name="samples/sensor_fusion")
    for folder in ("src", "models"):
        shutil.copytree(SAMPLE / folder, project.folder / folder)
    shutil.copy(SAMPLE / "tinyml.yaml", project.folder)
    ini = (SAMPLE / "platformio.ini").read_text()
    for theirs, ours in {
        "platform = native": platform("host"),
        "symlink://../..": f"symlink://{REPOSITORY}",
    }.items():
        assert theirs in ini
        ini = ini.replace(theirs, ours)
    project.write("platformio.ini", ini)
    project.build()
    done = subprocess.run([project.program("native")], capture_output=True, text=True, check=True)
    config = yaml.safe_load((SAMPLE / "sample.yaml").read_text())["common"]["harness_config"]
    assert done.stdout.splitlines() == [re.sub(r"\\(.)", r"\1", line) for line in config["regex"]]
