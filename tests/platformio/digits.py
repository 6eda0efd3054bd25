# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The digits samples as test projects, and how to read the output of a build."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.platformio.conftest import REPOSITORY, Project, platform

SAMPLE = REPOSITORY / "samples" / "platformio_digits"
GOLDEN = REPOSITORY / "samples" / "platformio_test"
HOST = f"[env:host]\n{platform('host')}\n"
QEMU = f"[env:m3]\n{platform('qemu_arm')}\nboard = mps2_an385\n"


def sample(project: Project) -> Project:
    """Fill a project with the sample's source and model."""
    shutil.copytree(SAMPLE / "src", project.folder / "src")
    shutil.copytree(SAMPLE / "models", project.folder / "models")
    return project


def require(*programs: str) -> None:
    """Skip a test if programs are missing that only this test needs."""
    if absent := [name for name in programs if shutil.which(name) is None]:
        pytest.skip(f"no {', '.join(absent)}")


def answers(output: str) -> list[str]:
    """What the sample says about its images."""
    return [line for line in output.splitlines() if line.startswith("this is")]


def built(output: str) -> list[str]:
    """The names of the things that a build made."""
    return [
        re.split(r"[ /]", line)[-1] for line in output.splitlines() if re.match(r"Compiling|Linking", line)
    ]
