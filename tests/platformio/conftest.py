# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Real PlatformIO without its registry: SCons from PyPI, platforms from ``platforms/``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SHORT_LIVED = REPOSITORY / "tests" / "support" / "short_lived"
PLATFORMS = Path(__file__).resolve().parent / "platforms"
TIMEOUT_SECONDS = 900  # only for processes that hang
CROSS = ("arm-none-eabi-", "riscv64-unknown-elf-")
COMPILERS = ("cc", "c++", *(f"{prefix}{name}" for prefix in CROSS for name in ("gcc", "g++")))


@dataclass(frozen=True)
class Project:
    """A PlatformIO project on disk."""

    folder: Path
    environment: dict[str, str]

    @property
    def of_a_copy(self) -> Project:
        """The same with a copy of the compiler, beside which Python keeps its bytecode."""
        return Project(self.folder, {**self.environment, "PYTHONPYCACHEPREFIX": ""})

    def pio(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run pio in the project; output and errors together, as a user sees them."""
        return subprocess.run(
            [sys.executable, "-m", "platformio", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )

    def build(self, *arguments: str) -> str:
        """``pio run``, which must succeed; returns the output."""
        done = self.pio("run", *arguments)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def fail(self, *arguments: str) -> str:
        """``pio run``, which must fail with a message instead of a traceback; returns the output."""
        done = self.pio("run", *arguments)
        assert done.returncode != 0, done.stdout
        assert "Traceback" not in done.stdout, done.stdout
        return done.stdout

    def program(self, environment: str = "host") -> Path:
        return self.folder / ".pio" / "build" / environment / "program"

    def generated(self, file: str, environment: str = "host") -> Path:
        return self.folder / ".pio" / "build" / environment / "tinyml" / file

    def write(self, file: str, text: str) -> None:
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def lend_bytecode(own: Path, copy: Path) -> None:
    """Put Python's bytecode of ``own`` beside a copy with the same dates, where it need not be made again."""
    for path in copy.rglob("*.py"):
        made = Path(cache_from_source(own / path.relative_to(copy)))
        if made.is_file():
            (path.parent / "__pycache__").mkdir(exist_ok=True)
            shutil.copy(made, path.parent / "__pycache__")


def platform(name: str) -> str:
    """A line of platformio.ini for one of the test platforms."""
    return f"platform = symlink://{PLATFORMS / name}"


def describe_package(folder: Path, name: str, version: str) -> None:
    """The file by which PlatformIO knows what it has installed."""
    spec = {"owner": "platformio", "id": None, "name": name, "requirements": None, "uri": None}
    content = {"type": "tool", "name": name, "version": version, "spec": spec}
    (folder / ".piopm").write_text(json.dumps(content))


@pytest.fixture(scope="session")
def pio_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables under which pio finds its SCons and never looks for a network."""
    return without_registry(tmp_path_factory.mktemp("pio-core"))


def without_registry(core: Path) -> dict[str, str]:
    """Environment variables for a folder of PlatformIO's own, which gets its SCons."""
    from platformio.dependencies import get_core_dependencies

    scons = core / "packages" / "tool-scons"
    scons.mkdir(parents=True)
    (scons / "scons.py").write_text("from SCons.Script.Main import main\n\nmain()\n")
    describe_package(scons, "tool-scons", get_core_dependencies()["tool-scons"].lstrip("~^"))
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PLATFORMIO_")},
        "PLATFORMIO_CORE_DIR": str(core),
        "PLATFORMIO_DISABLE_UPGRADE_CHECK": "true",
        "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no",
        "PATH": f"{cached_compilers(core / 'compilers')}{os.pathsep}{os.environ['PATH']}",
        "CCACHE_NOHASHDIR": "1",  # projects are in different folders
        "PYTHONPATH": os.pathsep.join(filter(None, [str(SHORT_LIVED), os.environ.get("PYTHONPATH")])),
    }


def cached_compilers(folder: Path) -> Path:
    """Compilers that take an object from the cache if an earlier project has compiled it: links to ccache."""
    folder.mkdir()
    if ccache := shutil.which("ccache"):
        for name in COMPILERS:
            (folder / name).symlink_to(ccache)
    return folder


MakeProject = Callable[..., Project]


@pytest.fixture
def make_project(tmp_path: Path, pio_environment: dict[str, str]) -> MakeProject:
    """A new project with this repository as its one library; ``ini`` goes into platformio.ini."""

    def make(ini: str, name: str = "project") -> Project:
        project = Project(tmp_path / name, pio_environment)
        project.write("platformio.ini", f"[env]\nlib_deps = symlink://{REPOSITORY}\n\n{ini}")
        return project

    return make
