# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The west workspace that images are built in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from tinyml.base.errors import ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.harness.zephyr.compilers import compiler_for
from tinyml.setup import installation
from tinyml.setup.workspace import find_zephyr

_EMULATED = re.compile(r"SUPPORTED_EMU_PLATFORMS")
"""In a board's board.cmake: `west build -t run` has something to run the image with."""

OUR_BOARDS = ("qemu_cortex_m4", "qemu_cortex_m7")


@dataclass(frozen=True)
class Site:
    """A Zephyr tree, and the west that builds with it."""

    zephyr: Path
    west: tuple[str, ...]

    @property
    def version(self) -> str:
        text = (self.zephyr / "VERSION").read_text(encoding="utf-8")
        words = dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)
        return ".".join(words.get(key, "0") for key in ("VERSION_MAJOR", "VERSION_MINOR", "PATCHLEVEL"))

    def environment(self, board: str) -> dict[str, str]:
        """Variables for west and CMake: this Zephyr, this project if the workspace lacks it, our boards."""
        settings = {**os.environ, "ZEPHYR_BASE": str(self.zephyr)}
        settings |= compiler_for(board, settings)
        modules = [word for word in settings.get("EXTRA_ZEPHYR_MODULES", "").split(";") if word]
        if self.module is None:
            modules.append(str(self.our_module))
        boards = str(self.our_module / "boards")
        if board.startswith(OUR_BOARDS) and boards not in modules:
            modules.append(boards)
        if modules:
            settings["EXTRA_ZEPHYR_MODULES"] = ";".join(modules)
        return settings

    def has_emulator(self, board: str) -> bool:
        """Whether Zephyr can run an image for this board here; True if the board is not known."""
        name = board.partition("/")[0].partition("@")[0]
        command = [*self.west, "boards", "-n", f"^{re.escape(name)}$", "-f", "{dir}"]
        done = subprocess.run(
            command, cwd=self.zephyr, env=self.environment(board), capture_output=True, text=True, check=False
        )
        folders = [Path(line) for line in done.stdout.splitlines()]
        known = [folder for folder in folders if (folder / "board.cmake").is_file()]
        return not known or any(is_emulated(folder) for folder in known)

    @property
    def our_module(self) -> Path:
        """The Zephyr module: the workspace's, else that of this installation."""
        if found := self.module or installation.zephyr_module():
            return found
        raise ToolError(
            f"neither the workspace of {self.zephyr} nor this installation of tinyml has the Zephyr module",
            "add west-tinyml to the workspace's manifest and run `west update`",
        )

    @cached_property
    def module(self) -> Path | None:
        """This project in the workspace, if its manifest includes it, as ours does."""
        command = [*self.west, "list", "-f", "{abspath}"]
        done = subprocess.run(command, cwd=self.zephyr, capture_output=True, text=True, check=False)
        for folder in map(Path, done.stdout.splitlines()):
            descriptor = folder / "zephyr" / "module.yml"
            if descriptor.is_file() and "name: tinyml\n" in descriptor.read_text(encoding="utf-8"):
                return folder
        return None


def is_emulated(board: Path) -> bool:
    """Whether Zephyr runs images of the board in this folder."""
    script = board / "board.cmake"
    return script.is_file() and bool(_EMULATED.search(script.read_text(encoding="utf-8")))


def find_site() -> Site:
    """The workspace to build in; raises ToolError with what is missing if there is none."""
    zephyr = find_zephyr()
    if zephyr is None:
        raise ToolError(
            "Zephyr was not found: $ZEPHYR_BASE is not set, and this is not a west workspace",
            "run `west tinyml` inside the workspace",
        )
    if find_spec("west") is not None:
        west: tuple[str, ...] = (sys.executable, "-m", "west")
    elif found := shutil.which("west"):
        west = (found,)
    else:
        raise ToolError("west was not found", "pip install west")
    site = Site(zephyr, west)
    _ = site.our_module  # complains before a build does
    return site
