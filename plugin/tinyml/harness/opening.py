# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Links to devices by what a user calls them: a serial port, a URL, a Zephyr build folder, native_sim."""

from __future__ import annotations

import os
from pathlib import Path

from tinyml.errors import ConfigError
from tinyml.harness.links import Link, NativeSim, Program, SerialPort
from tinyml.harness.session import EMULATOR_SECONDS, HARDWARE_SECONDS


def open_device(to: str | Path, baud: int) -> tuple[Link, float]:
    """The link, and how long its first answer may take. What a build folder has for it is started."""
    path = Path(to)
    if path.is_dir():
        return _started(path), EMULATOR_SECONDS
    if path.is_file():
        return NativeSim(path.resolve()), EMULATOR_SECONDS
    return SerialPort(str(to), baud), HARDWARE_SECONDS


def _started(build: Path) -> Link:
    program, config = build / "zephyr" / "zephyr.exe", build / "zephyr" / ".config"
    if not config.is_file():
        raise ConfigError(
            f"{build} is not a build of a Zephyr application", "west build -d FOLDER, then its FOLDER"
        )
    settings = config.read_text(encoding="utf-8").splitlines()
    if "CONFIG_TINYML_HOST=y" not in settings:
        raise ConfigError(
            f"the firmware in {build} cannot be driven from here", "CONFIG_TINYML_HOST=y in prj.conf"
        )
    if program.is_file():
        return NativeSim(program.resolve())
    if "CONFIG_QEMU_TARGET=y" in settings:
        command = ["ninja", "-C", str(build.resolve()), "run"]
        return Program(command, build, os.environ, multiplexed=True)
    raise ConfigError(
        f"the firmware in {build} is for hardware", "`west flash`, then connect to the board's serial port"
    )
