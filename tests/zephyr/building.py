# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Building Zephyr applications in the tests, with west and ninja."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tinyml.harness.links import Program
from tools import workspace

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "samples" / "digits"
SHORT_LIVED = ROOT / "tests" / "support" / "short_lived"
TWISTER_SECONDS = 3600  # a dozen builds
QEMU_SECONDS = 300  # of a busy machine
SAME_RUN = "TC_RUNID=same"
"""Twister gives the compiler a random number in each run of a test, so that ccache would know no object."""


@cache
def archives() -> tuple[str, ...]:
    """Variables of CMake with which archives are made in less time.

    Those that GNU ar makes have their index: ranlib, which CMake runs after it, has nothing to do. Where LLVM
    is installed, ar loads it as a plugin each time, which takes 35 ms; so it gets GCC's plugin alone.
    """
    asked = ["gcc", "-print-file-name=liblto_plugin.so"]
    plugin = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    create = f"CMAKE_C_ARCHIVE_CREATE=<CMAKE_AR> --plugin {plugin} -qc <TARGET> <LINK_FLAGS> <OBJECTS>"
    return ("CMAKE_C_ARCHIVE_FINISH=", *([create] if Path(plugin).is_absolute() else []))


def west_settings() -> Path:
    """A configuration of west with these variables, which Twister does not read."""
    path = workspace.cache_folder() / "zephyr-lists" / "west.conf"
    words = shlex.join(f"-D{variable}" for variable in archives())
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_name(f"{path.name}.{os.getpid()}")
    whole.write_text(f"[build]\ncmake-args = {words}\n")
    whole.replace(path)
    return path


def short_lived() -> dict[str, str]:
    """Variables with which the scripts of a build take less time: see the folder."""
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [str(SHORT_LIVED), *(path for path in known if path not in ("", str(SHORT_LIVED)))]
    return {
        "PYTHONPATH": os.pathsep.join(paths),
        "TINYML_TEST_ZEPHYR_LISTS": str(workspace.cache_folder() / "zephyr-lists"),
        # CMake asks for Python's folders through distutils, and setuptools' own takes 0.3 s to import
        "SETUPTOOLS_USE_DISTUTILS": "stdlib",
        "WEST_CONFIG_GLOBAL": str(west_settings()),
    }


def environment() -> dict[str, str]:
    """That of the workspace, with our boards."""
    return {
        **workspace.environment(workspace.location()),
        **short_lived(),
        "EXTRA_ZEPHYR_MODULES": str(ROOT / "boards"),
        "COLUMNS": "200",
    }


def run(
    command: list[str | Path],
    cwd: Path,
    check: bool = True,
    timeout_seconds: float = 1200,
    more: Mapping[str, str] | None = None,
) -> str:
    """Run a program of the workspace, with ``more`` in its environment; what it printed. Fails with it."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**environment(), **(more or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    assert not check or done.returncode == 0, f"{command} failed:\n{done.stdout}"
    return done.stdout


@dataclass(frozen=True)
class Build:
    """A build folder. ``app`` is the application's, for tests to change."""

    app: Path
    folder: Path

    @property
    def elf(self) -> Path:
        return self.folder / "zephyr" / "zephyr.elf"

    def generated(self, name: str) -> str:
        """The text of a file that the compiler wrote for the model digits."""
        return (self.folder / "tinyml" / "digits" / name).read_text()

    def again(self, check: bool = True, target: str = "all") -> str:
        """Build what is out of date; returns ninja's output."""
        return run(["ninja", "-C", self.folder, target], self.folder, check)

    def compiled(self, said: str) -> set[str]:
        """The C sources of the application and of models that ``again`` compiled, by name."""
        objects = re.findall(r"Building C object (\S+)\.obj", said)
        return {Path(name).name for name in objects if "zephyr/" not in name}

    def in_qemu(self, until: str) -> str:
        """Run the image until it prints ``until``; all that it printed. Nothing of it goes on running."""
        said, end = "", time.monotonic() + QEMU_SECONDS
        with Program(["ninja", "-C", str(self.folder), "run"], self.folder, environment()) as qemu:
            while until not in said:
                assert time.monotonic() < end, f"no {until!r} within {QEMU_SECONDS} seconds:\n{said}"
                said += qemu.read(1).decode(errors="replace")
        return said


def copy_of_digits(folder: Path) -> Path:
    """The sample application, to be changed at will."""
    wanted = ("CMakeLists.txt", "prj.conf", "tinyml.yaml", "model.onnx", "src")
    shutil.copytree(DIGITS, folder, ignore=lambda _, names: [n for n in names if n not in wanted])
    shutil.copytree(DIGITS / "src", folder / "src", dirs_exist_ok=True)
    return folder


def west_build(
    app: Path,
    folder: Path,
    board: str,
    *cmake: str,
    under: Sequence[str] = (),
    compiled: bool = True,
    sysbuild: bool = False,
) -> Build:
    """`west build` from scratch, or CMake only; ``under`` is a command that runs it (`unshare --net`)."""
    west: list[str | Path] = ["west", "build", *([] if compiled else ["--cmake-only"]), "-p", "always"]
    west += ["--sysbuild"] if sysbuild else []
    run([*under, *west, "-b", board, "-d", folder, app, "--", *cmake], app)
    return Build(app, folder)


def symbols(elf: Path) -> dict[str, tuple[int, int, str]]:
    """Name -> address, size, section."""
    with elf.open("rb") as stream:
        file = ELFFile(stream)
        table = file.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        found = {}
        for symbol in table.iter_symbols():
            index = symbol["st_shndx"]
            section = file.get_section(index).name if isinstance(index, int) else str(index)
            found[symbol.name] = (symbol["st_value"], symbol["st_size"], section)
        return found


def options_of(build: Path, source: str) -> list[str]:
    """The -O options with which a source is compiled, in their order; the last one counts."""
    commands = json.loads((build / "compile_commands.json").read_text())
    (found,) = [command["command"] for command in commands if command["file"].endswith(source)]
    return re.findall(r" (-O\w+) ", found)


def rewrite(path: Path, text: str) -> None:
    """Give a file this text, and a new time only if it had another."""
    if path.read_text() != text:
        path.write_text(text)


def change_model(path: Path) -> None:
    """Another model of the same shape: its largest table of weights changes sign."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(path)
    weights = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    values = -numpy_helper.to_array(weights)
    weights.CopyFrom(numpy_helper.from_array(values, weights.name))
    onnx.save(model, path)


def twister(
    folders: list[Path], boards: list[str], cwd: Path, *options: str, more: Mapping[str, str] | None = None
) -> dict[tuple[str, str], str]:
    """Run the tests in ``folders``; how each ended, by its name and the platform."""
    words: list[str | Path] = [word for folder in folders for word in ("-T", folder)]
    words += [word for board in boards for word in ("-p", board)]
    out = cwd / "twister-out"
    command: list[str | Path] = [
        "west",
        "twister",
        *words,
        "-O",
        out,
        "-j",
        "2",
        f"-x={SAME_RUN}",
        *(f"-x={variable}" for variable in archives()),
    ]
    command += [] if "--no-clean" in options else ["--clobber-output"]
    said = run([*command, *options], cwd, check=False, timeout_seconds=TWISTER_SECONDS, more=more)
    report = out / "twister.json"
    assert report.exists(), said
    return {
        (
            suite["name"].rpartition("/")[2],
            suite["platform"],
        ): f"{suite['status']} {suite.get('reason', '')}".strip()
        for suite in json.loads(report.read_text())["testsuites"]
    }
