# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Samples that are PlatformIO projects, too: they print what Twister expects of the Zephyr applications."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import yaml

from tests.platformio.conftest import REPOSITORY, MakeProject, Project, platform
from tests.platformio.digits import built


def project_of(sample: Path, folders: tuple[str, ...], make_project: MakeProject) -> Project:
    """The sample as it is, but for the platform, which is PlatformIO's registry's."""
    project = make_project("", name=f"samples/{sample.name}")
    for folder in folders:
        shutil.copytree(sample / folder, project.folder / folder)
    for file in sample.iterdir():
        if file.suffix in (".onnx", ".yaml", ".csv", ".py", ".c"):
            shutil.copy(file, project.folder)
    ini = (sample / "platformio.ini").read_text()
    for theirs, ours in {
        "platform = native": platform("host"),
        "symlink://../..": f"symlink://{REPOSITORY}",
    }.items():
        assert theirs in ini
        ini = ini.replace(theirs, ours)
    project.write("platformio.ini", ini)
    project.build()
    return project


def printed(project: Project) -> list[str]:
    done = subprocess.run(
        [project.program("native")], cwd=project.folder, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def expected(sample: Path) -> list[str]:
    config = yaml.safe_load((sample / "sample.yaml").read_text())["common"]["harness_config"]
    return [re.sub(r"\\(.)", r"\1", line) for line in config["regex"]]


def test_sensor_fusion(make_project: MakeProject) -> None:
    sample = REPOSITORY / "samples" / "sensor_fusion"
    assert printed(project_of(sample, ("src", "models"), make_project)) == expected(sample)


def test_custom_operator(make_project: MakeProject) -> None:
    """A change of the operator, of its C or of more C that it calls compiles the model again."""
    sample = REPOSITORY / "samples" / "custom_operator"
    project = project_of(sample, ("src", "models"), make_project)
    assert printed(project) == expected(sample)

    folder = project.folder
    with (folder / "tinyml.yaml").open("a") as manifest:
        manifest.write("    sources: [more/twice.c]\n")
    project.write("more/twice.c", "static float twice(float x) { return 2.0f * x; }\n")
    kernel = folder / "mexican_hat.c"
    kernel.write_text(kernel.read_text().replace("y[i] = ", "y[i] = 0.5f * twice(1.0f) * "))
    assert built(project.build()) == ["curve.onnx", "curve.o"]  # the same machine code: nothing to link

    project.write("more/twice.c", "static float twice(float x) { return 4.0f * x; }\n")
    assert built(project.build()) == ["curve.onnx", "curve.o", "program"]
    assert printed(project) != expected(sample)

    operator = folder / "mexican_hat.py"
    operator.write_text(operator.read_text() + "\n# another\n")
    assert built(project.build()) == ["curve.onnx"]
    assert built(project.build()) == []


def test_gesture(make_project: MakeProject) -> None:
    """The samples come from a file, so that only the last line differs."""
    sample = REPOSITORY / "samples" / "gesture"
    lines = printed(project_of(sample, ("platformio",), make_project))
    assert lines[:-1] == expected(sample)[:-1]
    assert lines[-1] == "the samples have ended: 1350 samples, 81 runs"
