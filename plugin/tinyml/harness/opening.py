# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Links to devices by what a user calls them: a serial port, a URL, a Zephyr build folder, native_sim; or to
an emulated core with a model and nothing else."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tinyml.base.errors import ConfigError, ToolError
from tinyml.cores.machines import find_machine
from tinyml.harness.device_session import EMULATOR_SECONDS, HARDWARE_SECONDS
from tinyml.harness.generated import read_generated
from tinyml.harness.links import Link, NativeSim, Program, SerialPort
from tinyml.harness.program_build import Options, build
from tinyml.harness.run import command


def open_device(to: str | Path, baud: int) -> tuple[Link, float]:
    """The link, and how long its first answer may take. What a build folder has for it is started."""
    path = Path(to)
    if path.is_dir():
        return _started(path), EMULATOR_SECONDS
    if path.is_file():
        return NativeSim(path.resolve()), EMULATOR_SECONDS
    return SerialPort(str(to), baud), HARDWARE_SECONDS


REQUESTS = "requests"
"""The pipe that ``c/line_qemu.c`` reads."""


class BareMachine(Program):
    """A model on the host or on an emulated core, without an operating system."""

    def __init__(self, files: Mapping[str, str], machine: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tinyml-")
        self.folder = place = Path(self._folder.name)
        try:
            for name, text in files.items():
                (place / name).write_text(text, encoding="utf-8")
            image = build(read_generated(place), find_machine(machine), place, Options(serve=True))
            pipe = place / REQUESTS
            if image.machine.board is not None:
                if not hasattr(os, "mkfifo"):
                    raise ToolError(
                        "named pipes are not available on Windows", "connect to a Zephyr image instead"
                    )
                os.mkfifo(pipe)
            super().__init__(command(image), place, os.environ)
            if (
                image.machine.board is not None
            ):  # for both directions: opening does not wait for the other side
                self._writer = os.open(pipe, os.O_RDWR)
        except BaseException:
            self._folder.cleanup()
            raise

    def close(self) -> None:
        super().close()
        self._folder.cleanup()


def _started(folder: Path) -> Link:
    program, config = folder / "zephyr" / "zephyr.exe", folder / "zephyr" / ".config"
    if not config.is_file():
        raise ConfigError(
            f"{folder} is not a build of a Zephyr application", "west build -d FOLDER, then its FOLDER"
        )
    settings = config.read_text(encoding="utf-8").splitlines()
    if "CONFIG_TINYML_HOST=y" not in settings:
        raise ConfigError(
            f"the firmware in {folder} cannot be driven from here", "CONFIG_TINYML_HOST=y in prj.conf"
        )
    if program.is_file():
        return NativeSim(program.resolve())
    if "CONFIG_QEMU_TARGET=y" in settings:
        words = ["ninja", "-C", str(folder.resolve()), "run"]
        return Program(words, folder, os.environ, multiplexed=True)
    raise ConfigError(
        f"the firmware in {folder} is for hardware", "`west flash`, then connect to the board's serial port"
    )
